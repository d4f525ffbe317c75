/** The public types of endpoints and queues: what operators set and see. `types.ts` hands them on. */
import type { JobError, RetryPolicy } from "./types.js";

/** Who acts and why; kept with the act. */
export interface By {
  actor: string;
  reason?: string | undefined;
}

/** At most `burst + limit * w / intervalMs` claims in any window of w ms. */
export interface RateLimit {
  limit: number;
  intervalMs: number;
  /** How many may come at once; default `limit`. */
  burst?: number | undefined;
}

/** When a circuit opens and how long it cools down; what is absent stays as it is. */
export interface CircuitSettings {
  /** Default 5. */
  failureThreshold?: number | undefined;
  /** Default 60,000. */
  cooldownMs?: number | undefined;
  /** When a probe without a timeout counts as lost; default 900,000. */
  probeTimeoutMs?: number | undefined;
}

/** Settings of a queue; what is absent stays as it is, `null` removes. */
export interface QueueConfig extends By {
  rateLimit?: RateLimit | null | undefined;
  maxConcurrency?: number | null | undefined;
}

/** Settings of an endpoint; what is absent stays as it is, `null` removes. */
export interface EndpointConfig extends QueueConfig {
  /** For jobs enqueued from now on: a policy of a job, or a preset such as `{ type: "standard" }`. */
  retryPolicy?: RetryPolicy | null | undefined;
  circuit?: CircuitSettings | undefined;
}

/** A page of a list by name. */
export interface NamePage {
  /** Default 200, at most 1,000. */
  limit?: number | undefined;
  /** The last name of the page before. */
  after?: string | undefined;
}

/** A queue and what may hold its jobs back. */
export interface QueueSnapshot {
  name: string;
  /** By whom, why and since when. */
  paused?: { actor: string; reason?: string; at: Date };
  rateLimit?: { limit: number; intervalMs: number; burst: number };
  tokensLeft?: number;
  maxConcurrency?: number;
  slotsUsed?: number;
  running: number;
  /** Ready jobs, counted up to 100,000. */
  waiting: number;
  /** The last 100, oldest first; lists and changes come without. */
  events?: GateEvent[];
}

/** An endpoint: the same, its retry policy and its circuit. */
export interface EndpointSnapshot extends QueueSnapshot {
  /** Normalized. */
  retryPolicy?: RetryPolicy;
  circuit: CircuitSnapshot;
}

/** Whether an endpoint is given work. */
export type CircuitState = "closed" | "open" | "half_open";

/** The circuit of an endpoint. */
export interface CircuitSnapshot {
  state: CircuitState;
  /** When an operator holds it. */
  forced?: "open" | "closed";
  /** Consecutive ones. */
  failures: number;
  /** Reports of attempts claimed in an earlier one do not count. */
  generation: number;
  since?: Date;
  openedAt?: Date;
  /** From when on a probe may be claimed. */
  probeAt?: Date;
  /** The probe that is out, due back by `overdueAt`. */
  probeJob?: string;
  overdueAt?: Date;
  lastFailedJob?: string;
  lastError?: JobError;
  failureThreshold: number;
  cooldownMs: number;
  probeTimeoutMs: number;
}

/** Something that happened to an endpoint or queue. */
export interface GateEvent {
  /** `circuit_opened`, `paused`, `configured` and so on. */
  event: string;
  at: Date;
  jobId?: string;
  actor?: string;
  reason?: string;
  [key: string]: unknown;
}
