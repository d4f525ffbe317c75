import assert from "node:assert/strict";
import test from "node:test";
import { inspect } from "node:util";
import { InvalidArgumentError, NotFoundError, PolicyInvalidError, Run, WrongStateError } from "drayhorse";
import { openQueue, runWorker, sql } from "./support.mjs";

const by = { actor: "ana", reason: "maintenance" };
const handlers = [{ type: "job" }];

test("an endpoint is configured, seen and listed; null removes, absent keeps", async (t) => {
  const { queue } = await openQueue(t);
  assert.equal(await queue.endpoints.get("payments-api"), undefined);
  const configured = await queue.endpoints.configure("payments-api", {
    ...by,
    rateLimit: { limit: 10, intervalMs: 1_000 },
    maxConcurrency: 5,
    retryPolicy: { type: "standard" },
    circuit: { failureThreshold: 2 },
  });
  assert.deepEqual(configured.rateLimit, { limit: 10, intervalMs: 1_000, burst: 10 });
  assert.deepEqual([configured.maxConcurrency, configured.slotsUsed, configured.tokensLeft], [5, 0, 10]);
  assert.equal(configured.retryPolicy.type, "custom");
  const { state, failures, failureThreshold, cooldownMs } = configured.circuit;
  assert.deepEqual([state, failures, failureThreshold, cooldownMs], ["closed", 0, 2, 60_000]);
  assert.equal(configured.events, undefined);

  const changed = await queue.endpoints.configure("payments-api", {
    actor: "ana",
    rateLimit: null,
    retryPolicy: null,
    circuit: { cooldownMs: 5_000, failureThreshold: undefined },
  });
  assert.deepEqual(
    [changed.rateLimit, changed.retryPolicy, changed.maxConcurrency],
    [undefined, undefined, 5],
  );
  assert.deepEqual([changed.circuit.failureThreshold, changed.circuit.cooldownMs], [2, 5_000]);

  const { events } = await queue.endpoints.get("payments-api");
  assert.deepEqual(
    events.map(({ event, actor, reason }) => [event, actor, reason]),
    [
      ["configured", "ana", "maintenance"],
      ["configured", "ana", undefined],
    ],
  );
  assert.deepEqual(events[0].circuit, { failureThreshold: 2 });
  // What was taken away is said, not left out.
  assert.deepEqual(
    [events[1].rateLimit, events[1].retryPolicy, events[1].maxConcurrency],
    [null, null, undefined],
  );
  assert.ok(events[1].at instanceof Date);

  await queue.enqueue("job", 1, { endpoint: "mail-api" });
  const names = async (page) => (await queue.endpoints.list(page)).map(({ name }) => name);
  assert.deepEqual(await names(), ["mail-api", "payments-api"]);
  assert.deepEqual(await names({ limit: 1 }), ["mail-api"]);
  assert.deepEqual(await names({ after: "mail-api" }), ["payments-api"]);
});

test("a pause holds jobs back until it ends, for an endpoint and for a queue", async (t) => {
  const { queue } = await openQueue(t);
  const job = await queue.enqueue("job", 1, { endpoint: "api" });
  const paused = await queue.endpoints.pause("api", by);
  assert.deepEqual([paused.paused.actor, paused.paused.reason, paused.waiting], ["ana", "maintenance", 1]);
  assert.ok(paused.paused.at instanceof Date);
  assert.deepEqual(await queue.claim({ handlers }), []);
  const waiting = (await queue.get(job)).waiting.find(({ kind }) => kind === "paused");
  assert.deepEqual([waiting.name, waiting.by], ["api", "ana"]);
  assert.equal((await queue.endpoints.resume("api", { actor: "ana" })).paused, undefined);

  await queue.queues.pause("default", { actor: "bo" });
  assert.deepEqual(await queue.claim({ handlers }), []);
  assert.equal((await queue.queues.get("default")).paused.actor, "bo");
  await queue.queues.resume("default", { actor: "bo" });
  assert.equal((await queue.claim({ handlers })).length, 1);
  assert.equal((await queue.queues.get("default")).running, 1);
});

test("a queue has a rate and a concurrency, and no circuit", async (t) => {
  const { queue } = await openQueue(t);
  const mail = await queue.queues.configure("mail", { actor: "ana", maxConcurrency: 1 });
  assert.deepEqual([mail.name, mail.maxConcurrency, "circuit" in mail], ["mail", 1, false]);
  await queue.enqueueMany([
    { type: "job", options: { queue: "mail" } },
    { type: "job", options: { queue: "mail" } },
  ]);
  assert.equal((await queue.claim({ queues: ["mail"], handlers, limit: 2 })).length, 1);
  const [listed] = await queue.queues.list();
  assert.deepEqual([listed.name, listed.slotsUsed, listed.waiting], ["mail", 1, 1]);
  await queue.queues.configure("mail", { actor: "ana", maxConcurrency: null });
  assert.equal((await queue.claim({ queues: ["mail"], handlers, limit: 2 })).length, 1);
});

test("a circuit opens by itself, is forced and reset", async (t) => {
  const { queue } = await openQueue(t);
  await queue.endpoints.configure("api", { actor: "ana", circuit: { failureThreshold: 1 } });
  const jobs = await queue.enqueueMany(
    [1, 2].map((n) => ({ type: "job", payload: n, options: { endpoint: "api" } })),
  );
  const [claim] = await queue.claim({ handlers });
  await queue.fail(claim, new TypeError("down"));
  const { circuit, events } = await queue.endpoints.get("api");
  assert.deepEqual([circuit.state, circuit.failures, circuit.lastFailedJob], ["open", 1, jobs[0].id]);
  assert.equal(circuit.lastError.message, "down");
  for (const time of [circuit.since, circuit.openedAt, circuit.probeAt])
    assert.ok(time instanceof Date, inspect(circuit));
  assert.equal(events.at(-1).event, "circuit_opened");
  assert.deepEqual(await queue.claim({ handlers }), []);

  assert.equal((await queue.endpoints.forceClose("api", by)).circuit.forced, "closed");
  assert.equal((await queue.claim({ handlers })).length, 1);
  assert.equal((await queue.endpoints.forceOpen("api", by)).circuit.state, "open");
  await queue.enqueue("job", 3, { endpoint: "api" });
  const probe = await queue.enqueue("job", 4, { endpoint: "api", synthetic: true });
  const admitted = await queue.claim({ handlers, limit: 5 });
  assert.deepEqual(
    admitted.map(({ id }) => id),
    [probe.id],
  );
  assert.equal((await queue.get(probe)).synthetic, true);
  const reset = (await queue.endpoints.reset("api", by)).circuit;
  assert.deepEqual([reset.state, reset.forced, reset.failures], ["closed", undefined, 0]);
});

test("acts without an actor and settings out of bounds are refused by name", async (t) => {
  const { queue } = await openQueue(t);
  const refused = async (promise, field, Class = InvalidArgumentError) => {
    const error = await promise.then(assert.fail, (thrown) => thrown);
    assert.ok(error instanceof Class, inspect(error));
    assert.equal(error.details.field, field);
  };
  await refused(queue.endpoints.pause("api"), "actor");
  await refused(queue.endpoints.configure("api"), "actor");
  await refused(queue.queues.pause("q", { actor: null }), "actor");
  await refused(queue.endpoints.configure("api", { actor: "a", colour: 1 }), "colour");
  await refused(
    queue.endpoints.configure("api", { actor: "a", rateLimit: { limit: 1 } }),
    "rateLimit.intervalMs",
  );
  await refused(
    queue.endpoints.configure("api", { actor: "a", circuit: { cooldownMs: 0 } }),
    "circuit.cooldownMs",
  );
  await refused(
    queue.endpoints.configure("api", { actor: "a", retryPolicy: { type: "none" } }),
    "retryPolicy.type",
    PolicyInvalidError,
  );
  await refused(
    queue.queues.configure("q", { actor: "a", retryPolicy: { type: "standard" } }),
    "retryPolicy",
  );
  assert.deepEqual(await queue.endpoints.list(), []);
});

test("a run: a follow-up, a fallback that is skipped, and its verdict", async (t) => {
  const { queue } = await openQueue(t);
  const run = await queue.startRun("invoice 7");
  assert.ok(run instanceof Run);
  const charge = await run.enqueue("charge", { amount: 7 });
  const mail = await run.enqueue("mail", undefined, { after: { jobId: charge, on: "succeeded" } });
  const apology = await run.enqueue("mail", undefined, { after: { jobId: charge.id, on: "failed" } });
  const waiting = await queue.get(mail);
  assert.deepEqual([waiting.state, waiting.runId, waiting.afterId], ["blocked", run.id, charge.id]);
  const before = await run.get();
  assert.deepEqual(
    [before.name, before.state, before.jobs],
    ["invoice 7", "running", { ready: 1, blocked: 2 }],
  );
  const seen = [];
  runWorker(t, queue, {
    charge: (_, job) => seen.push(job.runId),
    mail: (_, job) => seen.push(job.id),
  });
  assert.equal((await queue.wait(mail, 20_000)).state, "succeeded");
  assert.equal((await queue.wait(apology, 20_000)).state, "skipped");
  assert.deepEqual(seen, [run.id, mail.id]);
  const finished = await run.finish();
  assert.deepEqual([finished.state, finished.jobs], ["succeeded", { succeeded: 2, skipped: 1 }]);
  assert.ok(finished.startedAt instanceof Date && finished.finishedAt instanceof Date);
  assert.deepEqual(finished.jobIds, [charge.id, mail.id, apology.id]);
  await assert.rejects(run.enqueue("late"), WrongStateError);

  // Another process makes its own of the id.
  assert.deepEqual(await new Run(queue, run.id).get(), finished);
  const unknown = new Run(queue, "00000000-0000-7000-8000-000000000000");
  assert.equal(await unknown.get(), undefined);
  await assert.rejects(unknown.finish(), NotFoundError);
  await assert.rejects(queue.startRun(""), InvalidArgumentError);
  await assert.rejects(
    queue.enqueue("job", 1, { after: { jobId: "00000000-0000-7000-8000-000000000000", on: "failed" } }),
    NotFoundError,
  );
});

test("replay makes a new job of any ended one, after its risks were shown", async (t) => {
  const { queue } = await openQueue(t);
  const act = { actor: "ana", reason: "fixed", requestId: "r1" };
  const job = await queue.enqueue("job", { n: 9007199254740993n }, { endpoint: "api", maxAttempts: 4 });
  await assert.rejects(queue.replay(job, act), WrongStateError);
  assert.equal((await queue.replayPreview(job)).replayable, false);
  const [claim] = await queue.claim({ handlers });
  await queue.complete(claim, 1);
  const preview = await queue.replayPreview(job);
  assert.deepEqual(preview, {
    id: job.id,
    state: "succeeded",
    replayable: true,
    wouldRun: {
      type: "job",
      version: "1",
      queue: "default",
      endpoint: "api",
      maxAttempts: 1,
      hasPayload: true,
      idempotencyKey: job.id,
    },
    risks: {
      started: true,
      uncertain: false,
      acknowledgementNeeded: true,
      checkpoints: [],
      repeatedBefore: [],
      circuit: "closed",
    },
    payload: { n: 9007199254740993n },
  });
  const error = await queue.replay(job, act).then(assert.fail, (thrown) => thrown);
  assert.equal(error.details.field, "acknowledgeDuplicateRisk");
  const sure = { ...act, acknowledgeDuplicateRisk: true };
  const [made] = await queue.replay(job, sure);
  assert.deepEqual(await queue.replay(job.id, sure), [made]);
  const copy = await queue.get(made.id);
  assert.deepEqual([copy.maxAttempts, copy.sourceId, copy.payload], [1, job.id, { n: 9007199254740993n }]);
  const [twice] = await queue.replay(job, { ...sure, requestId: "r2", maxAttempts: 3 });
  assert.equal((await queue.get(twice.id)).maxAttempts, 3);
  assert.deepEqual((await queue.replayPreview(job)).risks.repeatedBefore, [made.id, twice.id]);

  const [first, second] = await queue.enqueueMany([{ type: "other" }, { type: "other", payload: null }]);
  await queue.cancel(first);
  await queue.cancel(second);
  assert.ok(!("payload" in (await queue.replayPreview(first))));
  assert.equal((await queue.replayPreview(second)).payload, null);
  assert.deepEqual(await queue.replayPreview({ type: "other" }), { count: 2, withEndpoint: 0, uncertain: 0 });
  const page = await queue.replay({ type: "other" }, { ...act, requestId: "r3", limit: 1 });
  const rest = await queue.replay(
    { type: "other" },
    { ...act, requestId: "r3", after: page.at(-1).sourceId },
  );
  assert.deepEqual(
    [...page, ...rest].map(({ sourceId }) => sourceId),
    [first.id, second.id],
  );
});

test("roles are granted and revoked", async (t) => {
  const { queue, schema } = await openQueue(t);
  const role = `${schema}_producer`;
  await sql(`create role "${role}"`);
  t.after(() => sql(`drop role "${role}"`));
  const may = async () =>
    (
      await sql(`select has_function_privilege($1, $2, 'execute') as may`, [
        role,
        `"${schema}".enqueue(jsonb)`,
      ])
    )[0].may;
  await queue.grant(role, "producer");
  assert.equal(await may(), true);
  await queue.revoke(role, "producer");
  assert.equal(await may(), false);
  await assert.rejects(queue.grant(role, "owner"), InvalidArgumentError);
});

test("a job's id stands for it in JSON", async (t) => {
  const { queue } = await openQueue(t);
  const first = await queue.enqueue("job");
  const second = await queue.enqueue("job", { follows: first });
  assert.deepEqual((await queue.get(second)).payload, { follows: first.id });
  assert.equal(JSON.stringify([first]), `["${first.id}"]`);
});
