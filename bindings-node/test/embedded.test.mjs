import assert from "node:assert/strict";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { Queue } from "drayhorse";
import { defer, runWorker, startScript } from "./support.mjs";

const { embeddedBin } = createRequire(import.meta.url)("../dist/embedded.js");

test("the application's own PostgreSQL is passed down, for embedded: only", () => {
  const bin = embeddedBin("embedded:./x", {});
  assert.ok(existsSync(join(bin, "postgres")), bin);
  assert.equal(embeddedBin("postgresql://localhost/x", {}), undefined);
  assert.equal(embeddedBin("embedded:./x", { postgresBin: "/given" }), "/given");
});

test("embedded: starts a server, two processes share it, and it ends with the last", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "drayhorse-embedded-"));
  defer(t, () => rmSync(folder, { recursive: true, force: true }));
  const queue = await Queue.connect(`embedded:${folder}`);
  defer(t, () => queue.close());
  await queue.migrate();
  runWorker(t, queue, { job: (payload) => payload.n + 1 });
  const script = startScript(
    t,
    `import { Queue } from "drayhorse";
    const queue = await Queue.connect(process.env.QUEUE);
    const job = await queue.enqueue("job", { n: 41 });
    console.log((await queue.wait(job, 20_000)).result);`,
    { QUEUE: `embedded:${folder}` },
  );
  const { code, stdout, stderr } = await script.ended;
  assert.deepEqual([code, stderr, stdout.trim()], [0, "", "42"]);
});
