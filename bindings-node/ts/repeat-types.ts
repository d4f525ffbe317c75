/** The public types of what runs again or together: redrive, replay and runs. `types.ts` hands them on. */
import type { CircuitState } from "./gate-types.js";
import type { JobState } from "./types.js";

/** Options of `redrive`. */
export interface RedriveOptions {
  reason: string;
  actor: string;
  /** Two calls with one request id make one job. */
  requestId: string;
  /** Needed when the source has an endpoint and an attempt ever started. */
  acknowledgeDuplicateRisk?: boolean | undefined;
  copyCheckpoints?: boolean | undefined;
  /** The copy gets an idempotency key of its own instead of its source's. */
  newEffectKey?: boolean | undefined;
  /** For a filter: at most this many, up to 1,000. */
  limit?: number | undefined;
  /** For a filter: the last `sourceId` of the page before. */
  after?: string | undefined;
}

/** A new job and the ended one it was made from. */
export interface Redriven {
  id: string;
  sourceId: string;
}

/** What a redrive or replay by filter would make, and what it risks. */
export interface RedrivePreview {
  count: number;
  /** Of these, jobs whose attempts may have reached an endpoint. */
  withEndpoint: number;
  uncertain: number;
}

/** Options of `replay`. */
export interface ReplayOptions extends RedriveOptions {
  /** The budget of each new job; default 1. */
  maxAttempts?: number | undefined;
}

/** What a replay of one job would run, and what speaks against it. */
export interface ReplayPreview {
  id: string;
  state: JobState;
  /** Whether it has ended and is no synthetic test. */
  replayable: boolean;
  wouldRun: {
    type: string;
    version: string;
    queue: string;
    endpoint?: string;
    maxAttempts: number;
    hasPayload: boolean;
    idempotencyKey: string;
  };
  risks: ReplayRisks;
  payload?: unknown;
  [key: string]: unknown;
}

/** What speaks against running a job again. */
export interface ReplayRisks {
  /** A handler had started. */
  started: boolean;
  /** Its effect may have happened. */
  uncertain: boolean;
  /** `acknowledgeDuplicateRisk` must be set. */
  acknowledgementNeeded: boolean;
  /** The names of its checkpoints. */
  checkpoints: string[];
  /** The jobs that were made from it already. */
  repeatedBefore: string[];
  /** The state of its endpoint's circuit. */
  circuit?: CircuitState;
  [key: string]: unknown;
}

/** A run: jobs that belong together. */
export interface RunSnapshot {
  id: string;
  name: string;
  /** `running` until it is finished and its jobs have ended. */
  state: "running" | "failed" | "canceled" | "succeeded";
  startedAt: Date;
  finishedAt?: Date;
  /** How many jobs are in each state; states without jobs are absent. */
  jobs: Partial<Record<JobState, number>>;
  /** The first 1,000. */
  jobIds: string[];
}
