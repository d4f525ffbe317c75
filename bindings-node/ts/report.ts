/**
 * The reports of ended handlers as JSON text: one function for each way a handler ends. `shift.ts` sends them in
 * batches.
 */
import { isCancellation, read } from "./decisions.js";
import { describe } from "./failure.js";
import { encodeValue } from "./json.js";
import type { ErrorDecision, Job, WorkerOptions } from "./types.js";

/** The handler returned `result`. One that has no JSON form is an output failure: the effect may have happened. */
export function succeeded(handle: number, result: unknown): string {
  let text: string | undefined;
  try {
    text = encodeValue(result, "result");
  } catch (error) {
    return JSON.stringify({ handle, verb: "fail", outputFailure: true, error: describe(error) });
  }
  const member = text === undefined ? "" : `,"result":${text}`;
  return `{"handle":${handle},"verb":"complete"${member}}`;
}

/** The handler threw `error`, which means `decision`. */
export function failed(handle: number, error: unknown, decision: ErrorDecision, delay: WorkerDelay): string {
  const hint = rawHint(read(decision, "retryAfterMs"));
  return JSON.stringify({
    handle,
    verb: "fail",
    error: describe(error),
    retryable: decision.retryable,
    ...(hint === undefined ? {} : { retryAfterMs: hint }),
    ...(decision.uncertain === true ? { uncertain: true } : {}),
    ...(isCancellation(error) ? { cancellation: true } : {}),
    ...delay,
  });
}

/** The payload could not be decoded: the handler never ran. */
export function unreadable(handle: number, error: unknown): string {
  return JSON.stringify({ handle, verb: "fail", inputFailure: true, error: describe(error) });
}

/** No handler has begun this job, nor will here: it goes back with its attempt. */
export function released(handle: number): string {
  return `{"handle":${handle},"verb":"release","started":false}`;
}

/** What the worker's `retryDelayMs` says about a job with a timeout, should it time out: no handler reports that. */
export function announced(handle: number, { workerDelayMs }: WorkerDelay): string | undefined {
  return workerDelayMs === undefined
    ? undefined
    : JSON.stringify({ handle, verb: "retryDelay", workerDelayMs });
}

/** The worker's own delay as it goes into a report, or why there is none. */
export type WorkerDelay = { workerDelayMs?: number; overrideRefused?: string };

/** Asks `retryDelayMs`; the core checks the bounds of a number. A throw is told to `onFault`. */
export function workerDelay(
  option: WorkerOptions["retryDelayMs"],
  job: Job,
  onFault: (error: Error) => void,
): WorkerDelay {
  let delayMs: unknown = option;
  if (typeof option === "function") {
    try {
      delayMs = option(job.attempt, job);
    } catch (cause) {
      onFault(new Error("retryDelayMs threw", { cause }));
      return {
        overrideRefused: `retryDelayMs threw ${describe(cause).message}`.slice(0, 500).toWellFormed(),
      };
    }
  }
  if (delayMs === undefined) return {};
  if (typeof delayMs === "number" && Number.isFinite(delayMs)) return { workerDelayMs: delayMs };
  if (delayMs instanceof Promise) delayMs.catch(() => {});
  const overrideRefused = `retryDelayMs gave ${describe(delayMs).message}, which is no number`.slice(0, 500);
  onFault(new TypeError(overrideRefused));
  return { overrideRefused };
}

/** A retry-after hint as the core can judge it: whatever JSON cannot say becomes a text that is no number. */
export function rawHint(hint: unknown): unknown {
  if (hint === undefined) return undefined;
  if (hint === Number.POSITIVE_INFINITY) return Number.MAX_VALUE;
  if (typeof hint === "number" && Number.isFinite(hint)) return hint;
  return typeof hint === "string" ? hint.toWellFormed() : String(describe(hint).message);
}
