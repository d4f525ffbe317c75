/** The step `work`: a worker of the package whose handlers behave as the scenario says. */
import { NonRetryableError, RetryableError, Worker } from "drayhorse";
import { sleep } from "../support.mjs";
import { jobId } from "./values.mjs";

const GIVE_UP_MS = 60_000;

/** Runs a worker until the named jobs are where they should be; answers what it started. */
export async function work(queue, { handlers, options = {}, until }, kept) {
  const answer = { starts: {}, runs: [] };
  const worker = new Worker(queue, {
    pollMs: 100,
    handleSignals: false,
    onError: () => {},
    ...runnable(options),
  });
  for (const [key, behaviours] of Object.entries(handlers)) {
    const [type, version] = key.split("@");
    answer.starts[key] = 0;
    const handler = (payload, job) => {
      answer.starts[key] += 1;
      const run = { type, attempt: job.attempt, payload, hasPayload: job.hasPayload };
      answer.runs.push(run);
      return behave(behaviours[Math.min(answer.starts[key], behaviours.length) - 1], job, run);
    };
    worker.handle(type, handler, { version });
  }
  let failed = false;
  const ended = worker.run();
  ended.catch(() => {
    failed = true;
  });
  try {
    await reached(queue, until, kept, () => failed);
  } finally {
    worker.stop();
    await ended;
  }
  return answer;
}

async function reached(queue, until, kept, hasFailed) {
  const giveUp = Date.now() + GIVE_UP_MS;
  for (const [name, state] of Object.entries(until)) {
    const id = jobId(name, kept);
    for (;;) {
      const job = await queue.get(id);
      if (job?.state === state) break;
      if (hasFailed()) return;
      if (Date.now() > giveUp)
        throw new Error(`${name} should become ${state}, is ${job?.state} after ${GIVE_UP_MS} ms`);
      await sleep(20);
    }
  }
}

function runnable({ retryDelayMs, ...options }) {
  if (typeof retryDelayMs !== "object") return { ...options, retryDelayMs };
  if (retryDelayMs.throws) {
    return {
      ...options,
      retryDelayMs: () => {
        throw new Error("no delay");
      },
    };
  }
  return { ...options, retryDelayMs: (attempt) => retryDelayMs.byAttempt[attempt - 1] ?? undefined };
}

async function behave(behaviour, job, run) {
  if ("return" in behaviour) return behaviour.return;
  if (behaviour.returnNothing) return undefined;
  if (behaviour.returnUnstorable) return UNSTORABLE[behaviour.returnUnstorable];
  if (behaviour.throw) throw Object.assign(new Error(behaviour.throw.message), behaviour.throw);
  if (behaviour.throwNonRetryable) throw nonRetryable(behaviour.throwNonRetryable);
  if (behaviour.throwRetryable)
    throw new RetryableError(behaviour.throwRetryable.message, behaviour.throwRetryable.retryAfterMs);
  if (behaviour.waitForAbort) run.aborted = await aborted(job.signal);
  else if (behaviour.sleepMs) await sleep(behaviour.sleepMs);
  else if (behaviour.checkpoint) await checkpoint(behaviour.checkpoint, job, run);
  else if ("progress" in behaviour) job.progress(behaviour.progress);
  else throw new Error(`this runner knows no behaviour ${Object.keys(behaviour)}`);
  return behave(behaviour.then, job, run);
}

const UNSTORABLE = { nan: Number.NaN, nul: "a\u0000b", large: "x".repeat(2 * 1024 * 1024) };

function nonRetryable({ message, uncertain, wrapped }) {
  const error = new NonRetryableError(message, { uncertain });
  return wrapped ? new Error("around it", { cause: error }) : error;
}

function aborted(signal) {
  return new Promise((resolve) => {
    const tell = () => resolve(signal.reason.reason);
    if (signal.aborted) tell();
    else signal.addEventListener("abort", tell, { once: true });
  });
}

async function checkpoint({ name, value }, job, run) {
  let ran = false;
  const saved = await job.checkpoint(name, () => {
    ran = true;
    return value;
  });
  run.checkpoints ??= [];
  run.checkpoints.push({ name, value: saved, ran });
}
