/** T14 (a): an error that forbids a retry does so however deep it is wrapped. And the documented snippets. */
import assert from "node:assert/strict";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import test from "node:test";
import { NonRetryableError } from "drayhorse";
import ts from "typescript";
import { defer, openQueue, runWorker } from "../support.mjs";

test("T14 (a): one start, then failed, for a wrapped NonRetryableError", async (t) => {
  const { queue } = await openQueue(t);
  const starts = {};
  const wraps = {
    bare: (error) => error,
    cause: (cause) => new TypeError("outer", { cause: new Error("middle", { cause }) }),
    group: (error) => new AggregateError([new Error("harmless"), error]),
    both: (error) => new Error("outer", { cause: new AggregateError([new Error("x", { cause: error })]) }),
  };
  runWorker(t, queue, {
    job: (how) => {
      starts[how] = (starts[how] ?? 0) + 1;
      throw wraps[how](new NonRetryableError("no such account"));
    },
  });
  for (const how of Object.keys(wraps)) {
    const job = await queue.enqueue("job", how, {
      maxAttempts: 5,
      retryPolicy: { type: "fixed", delayMs: 0 },
    });
    const outcome = await queue.wait(job, 20_000);
    assert.deepEqual([outcome.state, outcome.attempt, starts[how]], ["failed", 1, 1], how);
    const told = [outcome.error, ...(outcome.error.causes ?? [])].map((error) => error.message);
    assert.ok(told.includes("no such account"), how);
  }
});

test("the documented retry snippets run as they stand", async (t) => {
  const { queue } = await openQueue(t);
  const source = readFileSync(new URL("../types/snippets.mts", import.meta.url), "utf8");
  const file = new URL(`../types/.snippets-${process.pid}.mjs`, import.meta.url);
  defer(t, () => rmSync(file, { force: true }));
  const options = {
    target: ts.ScriptTarget.ES2022,
    module: ts.ModuleKind.ES2022,
    verbatimModuleSyntax: true,
  };
  writeFileSync(file, ts.transpileModule(source, { compilerOptions: options }).outputText);
  const snippets = await import(file.href);
  await snippets.budget(queue, 7);
  await snippets.policy(queue, 8);
  const { jobs } = await queue.list({ type: "provider.sync" }, { payload: true });
  assert.deepEqual(
    jobs.map((job) => [job.payload.accountId, job.maxAttempts, job.retryPolicy]).sort((a, b) => a[0] - b[0]),
    [
      [7, 5, undefined],
      [8, 5, { type: "decorrelated-jitter", baseDelayMs: 1_000, maxDelayMs: 60_000 }],
    ],
  );
});
