/** T42: the database goes away and comes back; nothing of the SDK ends the process. */
import assert from "node:assert/strict";
import test from "node:test";
import { ConnectionLostError } from "drayhorse";
import { eventually, openProxy, openQueue, runWorker, sleep, startScript, testUrl } from "../support.mjs";

test("T42: a worker rides out a restart, idle, claiming and with a handler running", async (t) => {
  const proxy = await openProxy(t);
  const { queue, schema } = await openQueue(t);
  const stray = [];
  const note = (error) => stray.push(error);
  process.on("unhandledRejection", note);
  process.on("uncaughtExceptionMonitor", note);
  t.after(() => {
    process.off("unhandledRejection", note);
    process.off("uncaughtExceptionMonitor", note);
  });
  const { queue: through } = await openQueue(t, { schema, connectTimeoutMs: 2_000 }, proxy.url);
  const { worker } = runWorker(
    t,
    through,
    { job: (ms, job) => sleep(ms).then(() => job.progress(1)) },
    { leaseMs: 20_000 },
  );
  await queue.wait(await queue.enqueue("job", 1), 20_000);
  for (const before of [0, 3_000]) {
    const running = before > 0 ? await queue.enqueue("job", before) : undefined;
    if (running) await eventually(async () => (await queue.get(running)).state === "active");
    proxy.down();
    await eventually(() => !worker.health().connected, { timeoutMs: 30_000 });
    await sleep(1_500);
    proxy.up();
    const job = await queue.enqueue("job", 1);
    assert.equal((await queue.wait(job, 30_000)).state, "succeeded");
    await eventually(() => worker.health().connected);
    if (running) {
      const outcome = await queue.wait(running, 30_000);
      assert.deepEqual([outcome.state, outcome.attempt], ["succeeded", 1]);
    }
  }
  proxy.down();
  const error = await through.counts().then(assert.fail, (thrown) => thrown);
  assert.ok(error instanceof ConnectionLostError && error.retryable, String(error));
  proxy.up();
  await eventually(() => through.counts().catch(() => undefined));
  assert.deepEqual(stray, []);
});

test("T42: the user's stray rejection ends the process, and the job is offered again and counted", async (t) => {
  const { queue, schema } = await openQueue(t);
  const script = startScript(
    t,
    `import { Queue, Worker } from "drayhorse";
    const queue = await Queue.connect(process.env.DRAYHORSE_TEST_URL, { schema: process.env.SCHEMA });
    const worker = new Worker(queue, { leaseMs: 1_000, pollMs: 50 });
    worker.handle("job", () => {
      Promise.reject(new Error("stray"));
      return new Promise((resolve) => setTimeout(resolve, 60_000));
    });
    await worker.run();`,
    { DRAYHORSE_TEST_URL: testUrl(), SCHEMA: schema },
  );
  const job = await queue.enqueue("job", 1, { maxAttempts: 2 });
  const { code, stderr } = await script.ended;
  assert.equal(code, 1);
  assert.match(stderr, /stray/);
  runWorker(t, queue, { job: (_, { attempt }) => attempt });
  const outcome = await queue.wait(job, 30_000);
  assert.deepEqual([outcome.state, outcome.result], ["succeeded", 2]);
});
