import assert from "node:assert/strict";
import test from "node:test";
import { inspect } from "node:util";
import {
  ClosedError,
  Enqueued,
  IdempotencyConflictError,
  InvalidArgumentError,
  LeaseLostError,
  NonRetryableError,
  NotFoundError,
  PayloadInvalidError,
  PayloadTooLargeError,
  PolicyInvalidError,
  Queue,
  RetryableError,
  SchemaMissingError,
  WaitTimeoutError,
  Worker,
  WrongStateError,
} from "drayhorse";
import pg from "pg";
import { defer, freshSchema, openQueue, sql, testUrl } from "./support.mjs";

const handlers = [{ type: "job" }];

test("a job from its enqueue to its outcome, by the low-level loop", async (t) => {
  const { queue } = await openQueue(t);
  const enqueued = await queue.enqueue(
    "job",
    { a: [1, null, "é"] },
    { tags: ["x"], priority: 3, maxAttempts: 2 },
  );
  assert.ok(enqueued instanceof Enqueued);
  assert.equal(`${enqueued}`, enqueued.id);
  assert.equal(enqueued.replayed, false);

  const ready = await queue.get(enqueued);
  assert.equal(ready.state, "ready");
  assert.deepEqual(ready.payload, { a: [1, null, "é"] });
  assert.deepEqual(ready.tags, ["x"]);
  assert.equal(ready.attempt, 0);
  assert.ok(ready.enqueuedAt instanceof Date && Math.abs(ready.enqueuedAt - Date.now()) < 600_000);
  assert.equal(ready.retryPolicy, undefined);
  assert.equal(ready.waiting[0].kind, "no_worker");

  const [first] = await queue.claim({ handlers, limit: 5, leaseMs: 10_000 });
  assert.equal(first.id, enqueued.id);
  assert.equal(first.attempt, 1);
  assert.equal(first.idempotencyKey, enqueued.id);
  assert.ok(first.leaseUntil instanceof Date);
  assert.deepEqual(first.payload, { a: [1, null, "é"] });
  assert.deepEqual(await queue.heartbeat([first]), ["accepted"]);
  const cause = new TypeError("inner");
  const failure = await queue.fail(first, new Error("outer", { cause }), { delayMs: 0 });
  assert.deepEqual(
    { state: failure.state, delayMs: failure.delayMs, source: failure.source },
    {
      state: "ready",
      delayMs: 0,
      source: "override",
    },
  );

  const [second] = await queue.claim({ handlers });
  assert.equal(second.attempt, 2);
  assert.notEqual(second.fence, first.fence);
  assert.deepEqual(await queue.heartbeat([first, second]), ["lease_lost", "accepted"]);
  await assert.rejects(queue.complete(first, "old"), LeaseLostError);
  assert.equal((await queue.complete(second, { done: true })).state, "succeeded");
  await queue.complete(second, { done: true });

  const outcome = await queue.wait(enqueued, 1_000);
  assert.equal(outcome.state, "succeeded");
  assert.deepEqual(outcome.result, { done: true });
  assert.ok(outcome.finishedAt instanceof Date);
  const timeline = await queue.timeline(enqueued);
  assert.deepEqual(
    timeline.map((event) => event.kind).filter((kind) => kind !== "promoted"),
    ["enqueued", "claimed", "retry_scheduled", "claimed", "succeeded"],
  );
  const retry = timeline.find((event) => event.kind === "retry_scheduled");
  assert.equal(retry.error.message, "outer");
  assert.ok(retry.at instanceof Date && retry.runAt instanceof Date);
  const { lastError } = await queue.get(enqueued);
  assert.equal(lastError.causes[0].name, "TypeError");
  assert.match(lastError.stack, /queue\.test\.mjs/);
});

test("missing, null and empty payloads stay distinct", async (t) => {
  const { queue } = await openQueue(t);
  await queue.enqueueMany([
    { type: "job" },
    { type: "job", payload: null },
    { type: "job", payload: "" },
    { type: "job", payload: undefined, options: { priority: undefined } },
  ]);
  const claims = await queue.claim({ handlers, limit: 10 });
  assert.deepEqual(
    claims.map(({ hasPayload, payload }) => [hasPayload, payload]),
    [
      [false, undefined],
      [true, null],
      [true, ""],
      [false, undefined],
    ],
  );
  const [, second] = claims;
  assert.equal((await queue.get(second.id)).payload, null);
  assert.ok(!("payload" in (await queue.get(claims[0].id))));
});

test("bad input is refused by name before anything is written", async (t) => {
  const { queue } = await openQueue(t);
  const refused = async (promise, Class, details) => {
    const error = await promise.then(assert.fail, (thrown) => thrown);
    assert.ok(error instanceof Class, `${inspect(error)} is a ${Class.name}`);
    for (const [key, value] of Object.entries(details))
      assert.deepEqual(error.details[key], value, error.message);
    assert.equal(error.retryable, false);
    assert.ok(error.cause);
    assert.match(error.stack, /queue\.test\.mjs/);
  };
  await refused(queue.enqueue("job", { a: ["x\u0000y"] }), PayloadInvalidError, { path: "payload.a[0]" });
  await refused(queue.enqueue("job", { a: "\ud800" }), PayloadInvalidError, { path: "payload.a" });
  await refused(queue.enqueue("job", new Date()), PayloadInvalidError, { path: "payload" });
  await refused(queue.enqueue("job", "x".repeat(1_100_000)), PayloadTooLargeError, {});
  await refused(queue.enqueue("", 1), InvalidArgumentError, { field: "type" });
  await refused(queue.enqueue(undefined, 1), InvalidArgumentError, { field: "type" });
  for (const maxAttempts of [0, -1, 2 ** 31, 1.5, null, Number.POSITIVE_INFINITY]) {
    const error = await queue.enqueue("job", 1, { maxAttempts }).then(assert.fail, (thrown) => thrown);
    assert.ok(error instanceof InvalidArgumentError, inspect(error));
    assert.equal(error.details.field, "maxAttempts");
  }
  await refused(queue.enqueue("job", 1, null), InvalidArgumentError, { field: "options" });
  await refused(queue.enqueue("job", 1, { queue: null }), InvalidArgumentError, { field: "queue" });
  await refused(queue.enqueue("job", 1, { maxAttempt: 3 }), InvalidArgumentError, { field: "maxAttempt" });
  await refused(queue.enqueue("job", 1, { retryPolicy: { type: "fixed" } }), PolicyInvalidError, {});
  await refused(queue.enqueue("job", 1, { retryPolicy: null }), PolicyInvalidError, {});
  const batch = [{ type: "job" }, { type: "job", payload: { n: Number.NaN } }];
  await refused(queue.enqueueMany(batch), PayloadInvalidError, { path: "jobs[1].payload.n" });
  await refused(Queue.connect(undefined), InvalidArgumentError, { field: "url" });
  await refused(queue.complete({ id: "x", fence: "y" }, Number.NaN), PayloadInvalidError, { path: "result" });
  await refused(queue.get("no uuid"), InvalidArgumentError, { field: "id" });
  assert.deepEqual(await queue.list(), { jobs: [] });
});

test("times go in as Date and come back as Date", async (t) => {
  const { queue } = await openQueue(t);
  const runAt = new Date(Date.now() + 3_600_000);
  const deadline = new Date(Date.now() + 7_200_000);
  const { id } = await queue.enqueue("job", 1, { runAt, deadline: deadline.toISOString() });
  const job = await queue.get(id);
  assert.equal(job.state, "scheduled");
  assert.deepEqual([job.runAt, job.nextRunAt, job.deadline], [runAt, runAt, deadline]);
});

test("an idempotency key names one enqueue, and a conflict names the fields", async (t) => {
  const { queue } = await openQueue(t);
  const idempotencyKey = { key: "k" };
  const first = await queue.enqueue("job", { a: 2 }, { idempotencyKey });
  const again = await queue.enqueue("job", { a: 2.0 }, { idempotencyKey });
  assert.deepEqual({ ...again }, { id: first.id, replayed: true });
  const error = await queue
    .enqueue("job", { a: 3 }, { idempotencyKey })
    .then(assert.fail, (thrown) => thrown);
  assert.ok(error instanceof IdempotencyConflictError);
  assert.deepEqual(error.details.conflictingFields, ["payload"]);
  assert.equal(error.details.existingId, first.id);
});

test("what an error says decides in fail, and options say more", async (t) => {
  const { queue } = await openQueue(t);
  await queue.enqueueMany([{ type: "job" }, { type: "job" }, { type: "job" }, { type: "job" }]);
  const [a, b, c, d] = await queue.claim({ handlers, limit: 4 });
  const refusal = new Error("wrap", { cause: new NonRetryableError("no") });
  assert.equal((await queue.fail(a, refusal)).state, "failed");
  assert.equal((await queue.fail(b, refusal, { retryable: true, delayMs: 5 })).delayMs, 5);
  const later = await queue.fail(c, new RetryableError("later", 3_600_000));
  assert.deepEqual([later.delayMs, later.source], [3_600_000, "retry_after"]);
  await assert.rejects(queue.fail(d, "text", { delayMs: -1 }), InvalidArgumentError);
  await assert.rejects(queue.fail(d, "text", { delay: 1 }), InvalidArgumentError);
  assert.equal((await queue.fail(d, "text", { retryable: false, uncertain: true })).state, "failed");
  const snapshot = await queue.get(d.id);
  assert.equal(snapshot.uncertain, true);
  assert.deepEqual([snapshot.lastError.name, snapshot.lastError.message], ["NonError", "text"]);
});

test("a hint that is none is ignored with a note", async (t) => {
  const { queue } = await openQueue(t);
  for (const hint of [Number.NaN, -1, 0, "soon", null]) {
    await queue.enqueue("job", 1, { retryPolicy: { type: "fixed", delayMs: 3_600_000 } });
    const [claim] = await queue.claim({ handlers });
    const { source } = await queue.fail(claim, new RetryableError("later", hint));
    assert.equal(source, "policy:fixed");
    const retry = (await queue.timeline(claim.id)).find(({ kind }) => kind === "retry_scheduled");
    assert.equal(typeof retry.hintIgnored, "string");
  }
});

test("cancel, release, counts and keyset lists", async (t) => {
  const { queue } = await openQueue(t);
  const jobs = await queue.enqueueMany(Array.from({ length: 5 }, (_, n) => ({ type: "job", payload: n })));
  assert.equal(await queue.cancel(jobs[0], { reason: "no need", actor: "test" }), "canceled");
  assert.equal(await queue.cancel(jobs[0]), "already_terminal");
  assert.equal(await queue.cancel("00000000-0000-7000-8000-000000000000"), "not_found");
  const [claim] = await queue.claim({ handlers });
  assert.equal(await queue.cancel(claim.id), "cancel_requested");
  assert.deepEqual(await queue.heartbeat([claim]), ["cancel_requested"]);
  await queue.release(claim);
  assert.equal((await queue.wait(claim.id, 1_000)).state, "canceled");
  const counts = await queue.counts({ type: "job" });
  assert.deepEqual([counts.ready, counts.canceled, counts.succeeded], [3, 2, 0]);
  const seen = [];
  let page = {};
  do {
    page = await queue.list({ queue: "default" }, { limit: 2, after: page.next });
    assert.ok(page.jobs.every((job) => !("payload" in job)));
    seen.push(...page.jobs.map((job) => job.id));
  } while (page.next);
  assert.deepEqual(seen.sort(), jobs.map(String).sort());
  const [{ payload }] = (await queue.list({ state: "ready" }, { limit: 1, payload: true })).jobs;
  assert.equal(typeof payload, "number");
});

test("wait times out with a typed error and leaves the job alone", async (t) => {
  const { queue } = await openQueue(t);
  const job = await queue.enqueue("job");
  const error = await queue.wait(job, 50).then(assert.fail, (thrown) => thrown);
  assert.ok(error instanceof WaitTimeoutError && error.retryable, inspect(error));
  assert.equal((await queue.get(job)).state, "ready");
  await assert.rejects(queue.wait("00000000-0000-7000-8000-000000000000", 50), NotFoundError);
});

test("redrive makes a new job, by id and by a previewed filter", async (t) => {
  const { queue } = await openQueue(t);
  const sources = await queue.enqueueMany([
    { type: "job", payload: 1 },
    { type: "job", payload: 2 },
  ]);
  const act = { actor: "test", reason: "repaired", requestId: "r1" };
  await assert.rejects(queue.redrive(sources[0], act), WrongStateError);
  for (const claim of await queue.claim({ handlers, limit: 2 }))
    await queue.fail(claim, "x", { retryable: false });
  assert.deepEqual(await queue.redrivePreview({ type: "job" }), { count: 2, withEndpoint: 0, uncertain: 0 });
  const [made] = await queue.redrive(sources[0], act);
  assert.equal(made.sourceId, sources[0].id);
  assert.deepEqual(await queue.redrive(sources[0].id, act), [made]);
  const job = await queue.get(made.id);
  assert.deepEqual(
    [job.state, job.attempt, job.sourceId, job.idempotencyKey],
    ["ready", 0, made.sourceId, made.sourceId],
  );
  assert.deepEqual((await queue.get(sources[0])).redrivenTo, [made.id]);
  const rest = await queue.redrive({ type: "job" }, { ...act, requestId: "r2", limit: 10 });
  assert.deepEqual(
    rest.map((one) => one.sourceId),
    [sources[1].id],
  );
});

test("previewPolicy gives the published vectors", async (t) => {
  const { queue } = await openQueue(t);
  const policy = { type: "decorrelated-jitter", baseDelayMs: 1_000, maxDelayMs: 60_000 };
  const jobId = "01890a5d-ac96-774b-bcce-b302099a8057";
  const preview = await queue.previewPolicy(policy, { jobId, attempts: 6 });
  assert.deepEqual(preview.delaysMs, [2075, 1144, 1356, 3428, 6033, 15453]);
  assert.deepEqual(preview.policy, policy);
});

test("enqueueStatement joins the caller's transaction", async (t) => {
  const { queue } = await openQueue(t);
  const client = new pg.Client({ connectionString: testUrl() });
  await client.connect();
  defer(t, () => client.end());
  const jobs = [{ type: "job", payload: { n: 9007199254740993n } }, { type: "job" }];
  const lost = await queue.enqueueStatement(jobs);
  await client.query("begin");
  await client.query(lost.sql, lost.params);
  await client.query("rollback");
  assert.equal(await queue.get(lost.ids[0]), undefined);
  const kept = await queue.enqueueStatement(jobs);
  await client.query("begin");
  await client.query(kept.sql, kept.params);
  await client.query("commit");
  assert.deepEqual((await queue.get(kept.ids[0])).payload, { n: 9007199254740993n });
  assert.equal(kept.ids.length, 2);
});

test("a schema that is missing is named, before migrate and in run", async (t) => {
  const schema = freshSchema(t);
  const queue = await Queue.connect(testUrl(), { schema });
  defer(t, () => queue.close());
  const { version, expected } = await queue.schemaVersion();
  assert.equal(version, undefined);
  assert.ok(expected >= 1);
  await assert.rejects(queue.assertCompatible(), SchemaMissingError);
  await assert.rejects(queue.enqueue("job"), SchemaMissingError);
  const worker = new Worker(queue, { graceMs: 500 }).handle("job", () => 1);
  await assert.rejects(worker.run(), SchemaMissingError);
  assert.equal(worker.health().alive, false);
  await queue.migrate();
  await queue.assertCompatible();
  assert.equal((await queue.schemaVersion()).version, expected);
});

test("after close every call is a ClosedError, and close can be called again", async (t) => {
  const { queue } = await openQueue(t);
  await queue.close();
  await queue.close();
  await assert.rejects(queue.get("00000000-0000-7000-8000-000000000000"), ClosedError);
});

test("a password is in no error and no inspection", async () => {
  const url = new URL(testUrl());
  url.port = "1";
  url.password = "S3cr3t!";
  const queue = await Queue.connect(url.href, { connectTimeoutMs: 500 });
  const error = await queue.migrate().then(assert.fail, (thrown) => thrown);
  const bad = await Queue.connect("postgresql://u:S3cr3t%21@h:notaport/db").then(
    assert.fail,
    (thrown) => thrown,
  );
  const said = inspect([queue, error, bad], { depth: 9, showHidden: true });
  assert.ok(!/S3cr3t/.test(said), said);
  await queue.close();
});

test("a thousand calls at one time end one by one", async (t) => {
  const { queue } = await openQueue(t);
  const enqueued = await Promise.all(Array.from({ length: 1_000 }, (_, n) => queue.enqueue("job", n)));
  assert.equal(new Set(enqueued.map(String)).size, 1_000);
  assert.equal((await queue.counts()).ready, 1_000);
});

test("the migrated schema is the one that was named", async (t) => {
  const { queue, schema } = await openQueue(t);
  await queue.enqueue("job");
  const [{ n }] = await sql(`select count(*)::int as n from "${schema}".job`);
  assert.equal(n, 1);
});
