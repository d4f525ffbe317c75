// The worker program in Node; verbs, environment and records as in worker.py.
import { existsSync, openSync, writeSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { Queue, RetryableError, Worker } from "drayhorse";

const env = process.env;
const queues = (env.FAULT_QUEUES ?? "default").split(",");
const rounds = Number(env.FAULT_ROUNDS ?? 0);
const recordFile = openSync(env.FAULT_RECORD, "a");

function record(what, more = {}) {
  // Whole milliseconds, rounded up: what the database stamped before is never later.
  const at = (Date.now() + 1) / 1000;
  writeSync(recordFile, `${JSON.stringify({ what, pid: process.pid, at, ...more })}\n`);
}

const number = (name, absent) => Number(env[name] ?? absent);

// Ends early when the attempt is over.
async function sleep(job, ms) {
  try {
    await pause(ms, undefined, { signal: job.signal });
  } catch {
    const reason = job.signal.reason.reason;
    record("told", { job: job.id, attempt: job.attempt, reason });
    throw new Error(`told: ${reason}`);
  }
}

// Until the test lets it go on, whatever happens to the attempt.
async function waitForGo() {
  while (!existsSync(`${env.FAULT_RECORD}.go`)) await pause(20);
}

// The first attempt goes on when its lease is lost, and does everything it must not; the second is the good one.
async function outlive(job) {
  if (job.attempt === 1) {
    while (!job.signal.aborted) await pause(20);
    record("told", { job: job.id, attempt: 1, reason: job.signal.reason.reason });
    try {
      await job.checkpoint("step", () => 9);
    } catch (error) {
      record("refused", { job: job.id, code: error.code });
    }
    return "old";
  }
  await job.checkpoint("step", () => 1);
  record("saved", { job: job.id });
  await waitForGo();
  return "new";
}

async function act(payload, job) {
  record("start", { job: job.id, attempt: job.attempt });
  for (const [step, argument] of payload.do ?? []) {
    if (step === "sleep") await sleep(job, argument);
    else if (step === "stubborn") await pause(argument);
    else if (step === "wait") await waitForGo();
    else if (step === "busy") for (const end = Date.now() + argument; Date.now() < end; );
    else if (step === "kill") process.kill(process.pid, "SIGKILL");
    else if (step === "fail") throw new Error(argument);
    else if (step === "failFirst" && job.attempt === 1) throw new Error(argument);
    else if (step === "hintFirst" && job.attempt === 1) throw new RetryableError("later, please", argument);
    else if (step === "outlive") return outlive(job);
  }
  return payload.number;
}

function makeWorker() {
  const worker = new Worker(queue, {
    queues,
    name: env.FAULT_NAME ?? "node",
    concurrency: number("FAULT_CONCURRENCY", 8),
    leaseMs: number("FAULT_LEASE_MS", 2_000),
    graceMs: number("FAULT_GRACE_MS", 5_000),
    pollMs: number("FAULT_POLL_MS", 1_000),
    prefetch: number("FAULT_PREFETCH", 0),
    handleSignals: rounds === 0,
    // T42 wants a worker whose program listens to nothing.
    ...(env.FAULT_DEAF ? {} : { onError: (error) => record("error", { code: error.code, message: error.message }) }),
  });
  worker.handle("act", act);
  worker.handle("noop", (payload) => payload);
  return worker;
}

async function work() {
  if (rounds === 0) return makeWorker().run();
  let worker;
  process.on("SIGTERM", () => {
    worker?.stop();
    record("stopped");
  });
  for (let round = 0; round < rounds; round += 1) {
    worker = makeWorker();
    record("round", { round });
    await worker.run();
    record("ended", { round });
  }
  process.removeAllListeners("SIGTERM");
}

async function produce(verb, count) {
  const options = { queue: queues[0] };
  if (verb === "enqueue") {
    for (let n = 0; n < count; n += 1) await queue.enqueue("noop", n, options);
    return;
  }
  for (let first = 0; first < count; first += 500) {
    const length = Math.min(500, count - first);
    await queue.enqueueMany(Array.from({ length }, (_, n) => ({ type: "noop", payload: first + n, options })));
  }
}

const queue = await Queue.connect(env.FAULT_URL, { schema: env.FAULT_SCHEMA });
const [verb, count] = process.argv.slice(2);
if (verb === "work") await work();
else await produce(verb, Number(count));
await queue.close();
