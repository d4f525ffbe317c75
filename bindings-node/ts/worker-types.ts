/** The public types of workers, handlers and running jobs; `types.ts` hands them on with all the others. */

/** What an error means for its job. */
export interface ErrorDecision {
  retryable: boolean;
  retryAfterMs?: number | undefined;
  uncertain?: boolean | undefined;
}

/** Decides about an error; `undefined` leaves it to the next one asked. */
export type ErrorClassifier = (error: unknown, job: Job) => ErrorDecision | undefined;

/** Options of `Worker`. */
export interface WorkerOptions {
  /** Default `["default"]`. */
  queues?: readonly string[] | undefined;
  /** Handlers at one time; default 10. */
  concurrency?: number | undefined;
  /** Default 30,000. */
  leaseMs?: number | undefined;
  /** How long a drain waits for running handlers; default 25,000. */
  graceMs?: number | undefined;
  /** The wait after a failed attempt that this worker reports; `undefined` defers to the job's policy. */
  retryDelayMs?: number | ((attempt: number, job: Job) => number | undefined) | undefined;
  classifyError?: ErrorClassifier | undefined;
  /** Default 1,000. */
  pollMs?: number | undefined;
  /** Jobs claimed beyond the free slots; default 0, never for jobs with an endpoint. */
  prefetch?: number | undefined;
  /** Default host and pid. */
  name?: string | undefined;
  /** Told of what has no other place to go; default `console.error`. */
  onError?: ((error: Error, context: ErrorContext) => void) | undefined;
  /** Whether `run()` drains on SIGTERM and SIGINT; default true, on the main thread only. */
  handleSignals?: boolean | undefined;
}

/** Which job an error given to `onError` belongs to, if any. */
export interface ErrorContext {
  jobId?: string;
}

/** Options of `Worker.handle`. */
export interface HandleOptions {
  /** Default `"1"`. */
  version?: string | undefined;
  /** Asked before the worker's. */
  classifyError?: ErrorClassifier | undefined;
}

/** A running job, as its handler sees it. */
export interface Job {
  readonly id: string;
  readonly type: string;
  readonly version: string;
  readonly queue: string;
  readonly payload: unknown;
  /** Tells a missing payload from `null`. */
  readonly hasPayload: boolean;
  /** Counted from 1. */
  readonly attempt: number;
  readonly maxAttempts: number;
  readonly tags: readonly string[];
  readonly endpoint: string | undefined;
  readonly deadline: Date | undefined;
  readonly runId: string | undefined;
  /** A test of its endpoint. */
  readonly synthetic: boolean;
  /** The caller's key, else the job's id: the same on every attempt, to be passed to the destination. */
  readonly idempotencyKey: string;
  /** Aborted when the job is canceled, has timed out or lost its lease, or when the worker's grace is over. */
  readonly signal: AbortSignal;
  /** How long the lease still holds; it is renewed as long as the handler runs. */
  readonly leaseRemainingMs: number;
  /** Runs `fn` once and stores its value; later attempts get the value and `fn` does not run. */
  checkpoint<T>(name: string, fn: () => T | Promise<T>): Promise<T>;
  /** Keeps the last value, shown by `Queue.get` while the attempt runs. */
  progress(value: unknown): void;
}

/** Why a handler is asked to stop. */
export type AbortReason = "cancel" | "timeout" | "deadline" | "lease_lost" | "shutdown";

/** The state of a worker, for probes. */
export interface WorkerHealth {
  /** Whether the worker runs or drains. */
  alive: boolean;
  phase: "running" | "draining" | "stopped";
  /** Whether its last contact with the database was good. */
  connected: boolean;
  /** Whether wake-ups arrive; without them it polls. */
  listening: boolean;
  slots: number;
  running: number;
  /** Handlers that ignore an abort. */
  stuck: { jobId: string; reason: AbortReason; sinceMs: number }[];
  /** How long ago it last asked for jobs. */
  lastClaimMsAgo?: number;
}
