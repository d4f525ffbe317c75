import assert from "node:assert/strict";
import test from "node:test";
import { inspect } from "node:util";
import { InvalidArgumentError, NonRetryableError, RetryableError, Worker, WrongStateError } from "drayhorse";
import { defer, eventually, openQueue, runWorker, sleep } from "./support.mjs";

const fixed = (delayMs) => ({ type: "fixed", delayMs });
const retriesOf = async (queue, id) =>
  (await queue.timeline(id)).filter((event) => event.kind === "retry_scheduled");

test("a handler's value is the job's result, and its job carries the claim", async (t) => {
  const { queue } = await openQueue(t);
  let seen;
  runWorker(t, queue, {
    job: async (payload, job) => {
      seen = job;
      return { doubled: payload.n * 2, lease: job.leaseRemainingMs };
    },
    sync: () => "at once",
    nothing: () => undefined,
  });
  const deadline = new Date(Date.now() + 3_600_000);
  const options = { tags: ["a"], maxAttempts: 3, idempotencyKey: { key: "mine" }, deadline, endpoint: "api" };
  const job = await queue.enqueue("job", { n: 4 }, options);
  const outcome = await queue.wait(job, 20_000);
  assert.equal(outcome.result.doubled, 8);
  assert.ok(outcome.result.lease > 0 && outcome.result.lease <= 30_000);
  assert.deepEqual(
    [seen.id, seen.type, seen.version, seen.queue, seen.attempt, seen.maxAttempts, seen.tags, seen.endpoint],
    [job.id, "job", "1", "default", 1, 3, ["a"], "api"],
  );
  assert.deepEqual(
    [seen.idempotencyKey, seen.hasPayload, seen.deadline, seen.runId],
    ["mine", true, deadline, undefined],
  );
  assert.equal((await queue.wait(await queue.enqueue("sync"), 20_000)).result, "at once");
  assert.equal((await queue.wait(await queue.enqueue("nothing"), 20_000)).result, null);
});

test("hasPayload tells a missing payload from null", async (t) => {
  const { queue } = await openQueue(t);
  runWorker(t, queue, { job: (payload, job) => [payload, job.hasPayload] });
  const jobs = await queue.enqueueMany([
    { type: "job" },
    { type: "job", payload: null },
    { type: "job", payload: "" },
  ]);
  const results = await Promise.all(jobs.map(async (job) => (await queue.wait(job, 20_000)).result));
  assert.deepEqual(results, [
    [null, false],
    [null, true],
    ["", true],
  ]);
});

test("checkpoints and progress", async (t) => {
  const { queue } = await openQueue(t);
  const calls = [];
  const gate = deferred();
  runWorker(t, queue, {
    job: async (_, job) => {
      const value = await job.checkpoint("fetch", async () => {
        calls.push(job.attempt);
        return { rows: 3, big: 9007199254740993n, gone: undefined };
      });
      if (job.attempt === 1) {
        job.progress({ done: 1 });
        await gate.promise;
        throw new Error("again");
      }
      return { value, none: await job.checkpoint("none", () => undefined) };
    },
  });
  const job = await queue.enqueue("job", 1, { retryPolicy: fixed(0) });
  await eventually(async () => (await queue.get(job)).progress?.done === 1);
  gate.resolve();
  const outcome = await queue.wait(job, 20_000);
  assert.deepEqual(outcome.result, { value: { rows: 3, big: 9007199254740993n }, none: null });
  assert.deepEqual(calls, [1]);
  assert.ok((await queue.timeline(job)).some((event) => event.kind === "checkpointed"));
});

test("another value for a checkpoint ends the job", async (t) => {
  const { queue } = await openQueue(t);
  runWorker(t, queue, {
    job: async (_, job) => {
      const [a, b] = await Promise.all([
        job.checkpoint("x", () => sleep(20).then(() => 1)),
        job.checkpoint("x", () => sleep(200).then(() => 2)),
      ]);
      return [a, b];
    },
  });
  const outcome = await queue.wait(await queue.enqueue("job"), 20_000);
  assert.equal(outcome.state, "failed", inspect(outcome));
  assert.equal(outcome.error.name, "CheckpointConflictError");
  assert.equal(outcome.attempt, 1);
});

test("a cancel reaches the signal; what the handler throws then does not matter", async (t) => {
  const { queue } = await openQueue(t);
  let reason;
  runWorker(t, queue, {
    job: (_, job) =>
      new Promise((_resolve, reject) => {
        job.signal.addEventListener("abort", () => {
          reason = job.signal.reason.reason;
          reject(new NonRetryableError("stopped"));
        });
      }),
  });
  const job = await queue.enqueue("job");
  await eventually(async () => (await queue.get(job)).state === "active");
  assert.equal(await queue.cancel(job), "cancel_requested");
  const outcome = await queue.wait(job, 20_000);
  assert.equal(outcome.state, "canceled");
  assert.equal(outcome.started, true);
  assert.equal(reason, "cancel");
});

test("a timeout aborts the handler and is settled by the core", async (t) => {
  const { queue } = await openQueue(t);
  const reasons = [];
  runWorker(t, queue, {
    job: async (_, job) => {
      // The signal is asked for late: it must be aborted already.
      await sleep(600);
      reasons.push(job.signal.aborted && job.signal.reason.reason);
      return "too late";
    },
  });
  const job = await queue.enqueue("job", 1, { timeoutMs: 200, maxAttempts: 1 });
  const outcome = await queue.wait(job, 20_000);
  assert.equal(outcome.state, "failed");
  assert.equal(outcome.uncertain, true);
  await eventually(() => reasons.length === 1);
  assert.deepEqual(reasons, ["timeout"]);
});

test("retryDelayMs also decides after a timeout, as a number and as a function", async (t) => {
  for (const retryDelayMs of [7, () => 7]) {
    const { queue } = await openQueue(t);
    runWorker(
      t,
      queue,
      { job: (_, job) => (job.attempt === 1 ? sleep(400) : job.attempt) },
      { retryDelayMs },
    );
    const job = await queue.enqueue("job", 1, { timeoutMs: 200, retryPolicy: fixed(3_600_000) });
    assert.equal((await queue.wait(job, 20_000)).result, 2);
    const event = (await queue.timeline(job)).find(({ kind }) => kind === "timed_out");
    assert.deepEqual([event.delayMs, event.source], [7, "worker_override"]);
  }
});

test("the precedence of delays, and what onError is told of a bad override", async (t) => {
  const { queue } = await openQueue(t);
  const { failures } = runWorker(
    t,
    queue,
    {
      plain: (_, job) => {
        if (job.attempt === 1) throw new Error("once");
      },
      hinted: (_, job) => {
        if (job.attempt === 1) throw new Error("wrap", { cause: new RetryableError("busy", 3_600_000) });
      },
    },
    {
      retryDelayMs: (_attempt, job) => {
        if (job.tags[0] === "zero") return 0;
        if (job.tags[0] === "throws") throw new Error("bug in retryDelayMs");
        if (job.tags[0] === "nonsense") return Number.NaN;
        return undefined;
      },
    },
  );
  const options = (...tags) => ({ tags, retryPolicy: fixed(40) });
  const [policy, zero, throws, nonsense] = await queue.enqueueMany(
    [[], ["zero"], ["throws"], ["nonsense"]].map((tags) => ({ type: "plain", options: options(...tags) })),
  );
  const hinted = await queue.enqueue("hinted", 1, options());
  const retry = async (id) => await eventually(async () => (await retriesOf(queue, id))[0]);
  assert.deepEqual(pick(await retry(policy)), [40, "policy:fixed", undefined]);
  assert.deepEqual(pick(await retry(zero)), [0, "worker_override", undefined]);
  const [delayMs, source, refused] = pick(await retry(throws));
  assert.deepEqual([delayMs, source], [40, "policy:fixed"]);
  assert.match(refused, /bug in retryDelayMs/);
  assert.match(pick(await retry(nonsense))[2], /NaN/);
  const event = await retry(hinted);
  assert.deepEqual(
    [event.delayMs, event.source, event.chosenMs, event.chosenSource],
    [3_600_000, "retry_after", 40, "policy:fixed"],
  );
  assert.deepEqual(failures.map((failure) => failure.jobId).sort(), [throws.id, nonsense.id].sort());
});

const pick = (event) => [event.delayMs, event.source, event.overrideRefused];

test("classifiers: the handler's before the worker's", async (t) => {
  const { queue } = await openQueue(t);
  const { failures } = runWorker(
    t,
    queue,
    {
      own: {
        fn: () => {
          throw new Error("x");
        },
        classifyError: () => ({ retryable: false, uncertain: true }),
      },
      common: () => {
        throw new Error("x");
      },
      broken: {
        fn: () => {
          throw new Error("x");
        },
        classifyError: () => {
          throw new Error("classifier bug");
        },
      },
    },
    { classifyError: () => ({ retryable: false }) },
  );
  const own = await queue.wait(await queue.enqueue("own"), 20_000);
  assert.deepEqual([own.state, own.attempt, own.uncertain], ["failed", 1, true]);
  assert.equal((await queue.wait(await queue.enqueue("common"), 20_000)).uncertain, false);
  const broken = await queue.enqueue("broken", 1, { retryPolicy: fixed(3_600_000) });
  await eventually(async () => (await queue.get(broken)).state === "scheduled");
  assert.equal(failures.length, 1);
  assert.equal(failures[0].error.cause.message, "classifier bug");
});

test("versions are handlers of their own; two of one kind are refused", async (t) => {
  const { queue } = await openQueue(t);
  runWorker(t, queue, { job: { fn: () => "two", version: "2" } });
  const one = await queue.enqueue("job");
  const two = await queue.enqueue("job", 1, { version: "2" });
  assert.equal((await queue.wait(two, 20_000)).result, "two");
  assert.equal((await queue.get(one)).state, "ready");
  const worker = new Worker(queue).handle("x", () => 1);
  assert.throws(() => worker.handle("x", () => 2), InvalidArgumentError);
  assert.throws(() => worker.handle("y", "no function"), InvalidArgumentError);
  assert.throws(() => new Worker({}), TypeError);
});

test("unknown and bad worker options are refused by run", async (t) => {
  const { queue } = await openQueue(t);
  for (const options of [
    { concurency: 5 },
    { concurrency: 0 },
    { leaseMs: "long" },
    { queues: [] },
    { pollMs: null },
    { retryDelayMs: -1 },
  ]) {
    const worker = new Worker(queue, options).handle("job", () => 1);
    await assert.rejects(worker.run(), InvalidArgumentError, inspect(options));
  }
});

test("stop drains: running handlers end, later jobs stay, and the worker can run again", async (t) => {
  const { queue } = await openQueue(t);
  const { worker, ended, stop } = runWorker(t, queue, { job: () => sleep(400).then(() => "done") });
  const running = await queue.enqueue("job");
  await eventually(() => worker.health().running === 1);
  const health = worker.health();
  assert.deepEqual([health.alive, health.phase, health.connected, health.slots], [true, "running", true, 10]);
  assert.throws(() => worker.handle("late", () => 1), WrongStateError);
  await assert.rejects(worker.run(), WrongStateError);
  assert.deepEqual(
    (await queue.workers.list()).map((one) => [one.language, one.pid]),
    [["node", process.pid]],
  );
  worker.stop();
  const later = await queue.enqueue("job");
  await stop();
  await ended;
  assert.equal((await queue.get(running)).state, "succeeded");
  assert.equal((await queue.get(later)).state, "ready");
  assert.equal(worker.health().alive, false);
  const again = worker.run();
  assert.equal((await queue.wait(later, 20_000)).state, "succeeded");
  worker.stop();
  await again;
});

test("a handler that outlives the grace is released, and close() waits no longer", async (t) => {
  const { queue, schema } = await openQueue(t);
  const { queue: other } = await openQueue(t, { schema });
  const gate = deferred();
  defer(t, () => gate.resolve());
  let reason;
  const { ended } = runWorker(
    t,
    queue,
    {
      job: (_, job) => {
        job.signal.addEventListener("abort", () => {
          reason = job.signal.reason.reason;
        });
        return gate.promise;
      },
    },
    { graceMs: 300 },
  );
  const job = await queue.enqueue("job");
  await eventually(async () => (await queue.get(job)).state === "active");
  const started = Date.now();
  await queue.close();
  await ended;
  assert.ok(Date.now() - started < 5_000);
  assert.equal(reason, "shutdown");
  assert.equal((await other.get(job)).state, "ready");
  assert.equal((await other.get(job)).attempt, 0);
});

test("hundreds of jobs go through a few slots", async (t) => {
  const { queue } = await openQueue(t);
  let most = 0;
  let now = 0;
  runWorker(
    t,
    queue,
    {
      job: async (n) => {
        now += 1;
        most = Math.max(most, now);
        await sleep(1);
        now -= 1;
        return n;
      },
    },
    { concurrency: 7 },
  );
  await queue.enqueueMany(Array.from({ length: 500 }, (_, n) => ({ type: "job", payload: n })));
  await eventually(async () => (await queue.counts()).succeeded === 500);
  assert.ok(most <= 7, `${most} at one time`);
});

function deferred() {
  let resolve;
  const promise = new Promise((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}
