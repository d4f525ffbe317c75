/** T07, T37, T41: the process around the SDK: a blocked event loop, signals, exit codes, worker_threads. */
import assert from "node:assert/strict";
import test from "node:test";
import { eventually, openQueue, startScript, testUrl } from "../support.mjs";

const env = (schema, more = {}) => ({ DRAYHORSE_TEST_URL: testUrl(), SCHEMA: schema, ...more });

const PRELUDE = `
import { Queue, Worker } from "drayhorse";
const connect = () => Queue.connect(process.env.DRAYHORSE_TEST_URL, { schema: process.env.SCHEMA });
`;

test("T07: a handler that blocks the event loop for longer than its lease keeps the job", async (t) => {
  const { queue, schema } = await openQueue(t);
  const worker = `${PRELUDE}
    const queue = await connect();
    const worker = new Worker(queue, { leaseMs: 1_000, pollMs: 50, concurrency: 1 });
    worker.handle("job", () => {
      console.log("started");
      const end = Date.now() + 4_000;
      while (Date.now() < end);
      return process.pid;
    });
    const running = worker.run();
    console.log("ready");
    await running;
  `;
  const scripts = [startScript(t, worker, env(schema)), startScript(t, worker, env(schema))];
  await Promise.all(scripts.map((script) => script.says("ready")));
  const job = await queue.enqueue("job", 1, { maxAttempts: 3 });
  const outcome = await queue.wait(job, 30_000);
  const starts = scripts.map((script) => script.output.stdout.split("started").length - 1);
  assert.equal(starts[0] + starts[1], 1);
  assert.deepEqual([outcome.state, outcome.attempt], ["succeeded", 1]);
  for (const script of scripts) script.child.kill("SIGTERM");
  for (const script of scripts) assert.equal((await script.ended).code, 0);
});

test("T37: SIGTERM drains; what fits the grace ends well, the exit code is the script's own", async (t) => {
  const { queue, schema } = await openQueue(t);
  const script = startScript(
    t,
    `${PRELUDE}
    const queue = await connect();
    const before = process.listenerCount("SIGTERM") + process.listenerCount("SIGINT");
    const worker = new Worker(queue, { pollMs: 50, graceMs: 10_000, concurrency: 1 });
    worker.handle("job", () => new Promise((resolve) => setTimeout(resolve, 500, "done")));
    await worker.run();
    const after = process.listenerCount("SIGTERM") + process.listenerCount("SIGINT");
    await queue.close();
    console.log("restored", after === before);
    process.exitCode = 3;
    `,
    env(schema),
  );
  const jobs = await queue.enqueueMany([{ type: "job" }, { type: "job" }]);
  await eventually(async () => (await queue.get(jobs[0])).state === "active");
  script.child.kill("SIGTERM");
  const { code, stdout, stderr } = await script.ended;
  assert.equal(code, 3, stderr);
  assert.match(stdout, /restored true/);
  assert.equal((await queue.get(jobs[0])).state, "succeeded");
  const second = await queue.get(jobs[1]);
  assert.deepEqual([second.state, second.attempt], ["ready", 0]);
});

const STUBBORN = `${PRELUDE}
  const queue = await connect();
  const worker = new Worker(queue, { pollMs: 50, graceMs: Number(process.env.GRACE), onError: () => {} });
  worker.handle("job", () => new Promise((resolve) => setTimeout(resolve, 60_000)));
  await worker.run();
  console.log("run ended");
`;

test("T37: a handler that ignores everything is released at the end of the grace, and the process ends", async (t) => {
  const { queue, schema } = await openQueue(t);
  const script = startScript(t, STUBBORN, env(schema, { GRACE: "1000" }));
  const job = await queue.enqueue("job");
  await eventually(async () => (await queue.get(job)).state === "active");
  const killed = Date.now();
  script.child.kill("SIGTERM");
  const { code, stdout, stderr } = await script.ended;
  assert.equal(code, 143, stderr);
  assert.match(stdout, /run ended/);
  assert.ok(Date.now() - killed < 10_000);
  const released = await queue.get(job);
  assert.deepEqual([released.state, released.attempt], ["ready", 0]);
});

test("T37: a second signal ends the process at once", async (t) => {
  const { queue, schema } = await openQueue(t);
  const script = startScript(t, STUBBORN, env(schema, { GRACE: "60000" }));
  const job = await queue.enqueue("job");
  await eventually(async () => (await queue.get(job)).state === "active");
  script.child.kill("SIGTERM");
  await new Promise((resolve) => setTimeout(resolve, 300));
  const again = Date.now();
  script.child.kill("SIGINT");
  const { code } = await script.ended;
  assert.equal(code, 130);
  assert.ok(Date.now() - again < 3_000);
});

const ENDINGS = {
  "enqueue, close, end": `
    const queue = await connect();
    await queue.enqueue("job");
    await queue.close();`,
  "enqueue without close": `
    const queue = await connect();
    await queue.enqueue("job");`,
  "a promise of ours as the only work": `
    const job = await (await connect()).enqueue("job");
    console.log("waited");`,
  "an error of ours, caught": `
    const queue = await connect();
    const id = await queue.enqueue("job");
    await queue.wait(id, 1_000).catch((error) => console.log(error.code));`,
  "a worker with a long retry delay, then close": `
    const queue = await connect();
    const worker = new Worker(queue, { pollMs: 50, onError: () => {} });
    worker.handle("job", () => { setTimeout(() => worker.stop(), 100); throw new Error("x"); });
    await queue.enqueue("job", 1, { retryPolicy: { type: "fixed", delayMs: 30_000 } });
    await worker.run();
    await queue.close();`,
  "a queue that closes under a running worker": `
    const queue = await connect();
    const worker = new Worker(queue).handle("job", () => 1);
    const running = worker.run();
    await queue.enqueue("job");
    await queue.close();
    await running;`,
  "a worker thread that ends by itself": `
    import { Worker as Thread } from "node:worker_threads";
    const thread = new Thread(\`
      import("drayhorse").then(async ({ Queue }) => {
        const queue = await Queue.connect(process.env.DRAYHORSE_TEST_URL, { schema: process.env.SCHEMA });
        await queue.enqueue("job");
      });\`, { eval: true });
    await new Promise((resolve, reject) => thread.on("exit", resolve).on("error", reject));`,
};

test("T41: a script ends when its work has ended, with exit code 0", async (t) => {
  const { queue, schema } = await openQueue(t);
  for (const [name, body] of Object.entries(ENDINGS)) {
    const script = startScript(
      t,
      `${PRELUDE}${body}
      console.log("ended");
      const end = Date.now();
      process.on("exit", () => console.log("after", Date.now() - end));`,
      env(schema),
    );
    const { code, signal, stdout, stderr } = await script.ended;
    assert.deepEqual([code, signal, stderr], [0, null, ""], `${name}: ${stdout}${stderr}`);
    assert.match(stdout, /ended/, name);
    assert.ok(Number(/after (\d+)/.exec(stdout)[1]) < 3_000, `${name}: ${stdout}`);
  }
  const counts = await queue.counts();
  assert.equal(
    Object.values(counts).reduce((sum, n) => sum + n),
    Object.keys(ENDINGS).length,
  );
});

test("T41: terminate() of a thread with a running worker, queue and calls under way is no abort", async (t) => {
  const { queue, schema } = await openQueue(t);
  const script = startScript(
    t,
    `import { Worker as Thread } from "node:worker_threads";
    for (let round = 0; round < 5; round++) {
      const thread = new Thread(\`
        const { parentPort } = require("node:worker_threads");
        import("drayhorse").then(async ({ Queue, Worker }) => {
          const queue = await Queue.connect(process.env.DRAYHORSE_TEST_URL, { schema: process.env.SCHEMA });
          const worker = new Worker(queue, { pollMs: 20, graceMs: 100, onError: () => {} });
          worker.handle("long", () => new Promise((resolve) => setTimeout(resolve, 60_000)));
          worker.handle("short", () => 1);
          void worker.run();
          await queue.enqueue("long");
          for (;;) {
            const job = await queue.enqueue("short");
            parentPort.postMessage(String(job));
          }
        });\`, { eval: true });
      await new Promise((resolve) => thread.on("message", () => resolve()));
      await new Promise((resolve) => setTimeout(resolve, 100 * round));
      await thread.terminate();
    }
    console.log("survived");
    // The native threads of the terminated ones hand their jobs back.
    setTimeout(() => {}, 3_000);`,
    env(schema),
  );
  const { code, signal, stdout, stderr } = await script.ended;
  assert.deepEqual([code, signal, stderr], [0, null, ""]);
  assert.match(stdout, /survived/);
  const { active } = await queue.counts({ type: "long" });
  assert.equal(active, 0);
});
