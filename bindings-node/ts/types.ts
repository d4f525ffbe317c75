/**
 * The public types, written by hand: what users import beside the classes. Durations are whole milliseconds,
 * ids are strings, times are `Date`. `undefined` means absent everywhere; `null` is refused.
 */
import type { Enqueued } from "./enqueued.js";

export type * from "./contract-types.js";
export type * from "./gate-types.js";
export type * from "./repeat-types.js";
export type * from "./worker-types.js";

/** A job by its id, or by what `enqueue` returned. */
export type JobRef = string | Enqueued;

/** A retry policy as plain data; SQL validates it. */
export type RetryPolicy = { type: string; [key: string]: unknown };

/** Options of `Queue.connect`. */
export interface ConnectOptions {
  /** The PostgreSQL schema; default `drayhorse`. */
  schema?: string | undefined;
  connectTimeoutMs?: number | undefined;
  statementTimeoutMs?: number | undefined;
  /** Connections for control calls; default 4. */
  poolSize?: number | undefined;
  tls?: { mode?: string; caFile?: string } | undefined;
  /** For `embedded:` URLs: the folder of PostgreSQL's programs. */
  postgresBin?: string | undefined;
}

/** What a database role may do. */
export type Access = "worker" | "producer" | "reader";

/** Options of one enqueue. */
export interface EnqueueOptions {
  /** Default `default`. */
  queue?: string | undefined;
  /** The handler's version; default `"1"`. */
  version?: string | undefined;
  /** -100 to 100; default 0. */
  priority?: number | undefined;
  /** Not before this time; excludes `delayMs`. */
  runAt?: Date | string | undefined;
  /** Not before this long from now, by the database's clock. */
  delayMs?: number | undefined;
  /** The job must not start at or after it, and is ended there; excludes `deadlineMs`. */
  deadline?: Date | string | undefined;
  deadlineMs?: number | undefined;
  /** The limit of one attempt, from its claim. */
  timeoutMs?: number | undefined;
  /** 1 to 100, the first execution included; default 25. */
  maxAttempts?: number | undefined;
  retryPolicy?: RetryPolicy | undefined;
  /** Up to 20, of up to 100 characters. */
  tags?: readonly string[] | undefined;
  /** Names this enqueue for `ttlMs` (default 24 h): an equal one gets the same job, another one is a conflict. */
  idempotencyKey?: { key: string; ttlMs?: number } | undefined;
  /** The destination the job talks to. */
  endpoint?: string | undefined;
  /** The job waits for the end of another one; at another end than `on` it is skipped. */
  after?: { jobId: JobRef; on: "succeeded" | "failed" } | undefined;
  /** The run the job belongs to; `Run.enqueue` sets it. */
  runId?: string | undefined;
  /** A test of the endpoint: one attempt, also while the circuit is open, and nothing to the circuit. */
  synthetic?: boolean | undefined;
}

/** Where an enqueue runs: on the caller's own connection, inside its transaction, when `tx` is there. */
export interface InTransaction {
  tx?: Transaction | undefined;
}

/**
 * A transaction of the caller's own driver: a client of node-postgres (`query`), `sql` of postgres.js (`unsafe`), or
 * a function that runs one statement and gives its rows.
 */
export type Transaction =
  | { query(sql: string, params: string[]): PromiseLike<unknown> }
  | { unsafe(sql: string, params: string[]): PromiseLike<unknown> }
  | ((sql: string, params: string[]) => PromiseLike<unknown>);

/** One job of `enqueueMany`. */
export interface NewJob {
  type: string;
  payload?: unknown;
  options?: EnqueueOptions | undefined;
}

/** One statement that enqueues on the caller's own connection, inside the caller's transaction. */
export interface EnqueueStatement {
  sql: string;
  params: string[];
  /** The ids of the jobs, in order. */
  ids: string[];
}

/** Where a job is. */
export type JobState =
  | "blocked"
  | "scheduled"
  | "ready"
  | "active"
  | "succeeded"
  | "failed"
  | "canceled"
  | "skipped";

/** An error as it is stored. */
export interface JobError {
  name: string;
  message: string;
  stack?: string;
  causes?: JobError[];
}

/** The error that ended the last attempt without success. */
export interface LastError extends JobError {
  attempt: number;
  /** `error`, `timeout`, `lease`, `output` and so on. */
  cause: string;
  at: Date;
}

/** One reason why a job waits, and what helps. */
export interface Waiting {
  kind: string;
  message: string;
  action: string;
  [key: string]: unknown;
}

/** Everything known of one job. */
export interface JobSnapshot {
  id: string;
  queue: string;
  type: string;
  version: string;
  priority: number;
  endpoint?: string;
  state: JobState;
  /** Started and not released: 0 before the first. */
  attempt: number;
  maxAttempts: number;
  /** Normalized. */
  retryPolicy?: RetryPolicy;
  tags: string[];
  hasPayload: boolean;
  /** Absent in lists unless asked for. */
  payload?: unknown;
  result?: unknown;
  /** The last progress of a running attempt. */
  progress?: unknown;
  /** The caller's key, else the id of the job or of the one it was redriven from. */
  idempotencyKey: string;
  enqueuedAt: Date;
  runAt?: Date;
  nextRunAt?: Date;
  deadline?: Date;
  timeoutMs?: number;
  claimedAt?: Date;
  leaseUntil?: Date;
  finishedAt?: Date;
  /** The name of the worker that had it last. */
  worker?: string;
  cancelRequested: boolean;
  /** Why it ended as it did. */
  reason?: string;
  lastError?: LastError;
  /** The job's effect may have happened although no attempt succeeded. */
  uncertain: boolean;
  /** The ended job it was made from. */
  sourceId?: string;
  /** The jobs that were made from it. */
  redrivenTo: string[];
  /** The run it belongs to. */
  runId?: string;
  /** The job it waits or waited for. */
  afterId?: string;
  /** A test of its endpoint. */
  synthetic: boolean;
  /** Empty when it runs or has ended. */
  waiting: Waiting[];
  [key: string]: unknown;
}

/** One entry of a job's timeline; entries that select a delay say which, and by what source. */
export interface TimelineEvent {
  kind: string;
  at: Date;
  attempt?: number;
  nextAttempt?: number;
  delayMs?: number;
  source?: string;
  runAt?: Date;
  error?: JobError;
  [key: string]: unknown;
}

/** Which jobs are meant; every member narrows. */
export interface JobFilter {
  queue?: string | undefined;
  type?: string | undefined;
  version?: string | undefined;
  state?: JobState | undefined;
  endpoint?: string | undefined;
  tag?: string | undefined;
  uncertain?: boolean | undefined;
}

/** One page of a list. */
export interface ListPage {
  limit?: number | undefined;
  /** `next` of the page before. */
  after?: string | undefined;
  /** Whether the jobs come with their payloads. */
  payload?: boolean | undefined;
}

/** Jobs, and where the next page starts. */
export interface JobList {
  jobs: JobSnapshot[];
  next?: string;
}

/** How a job ended. */
export interface Outcome {
  id: string;
  state: "succeeded" | "failed" | "canceled" | "skipped";
  result?: unknown;
  /** Of a failed job. */
  error?: LastError;
  reason?: string;
  attempt: number;
  /** Whether an attempt had started. */
  started: boolean;
  uncertain: boolean;
  finishedAt: Date;
  [key: string]: unknown;
}

/** What `cancel` did. */
export type CancelResult = "canceled" | "cancel_requested" | "already_terminal" | "not_found";

/** The delays SQL will choose, and the policy as SQL normalized it. */
export interface PolicyPreview {
  policy: RetryPolicy;
  delaysMs: number[];
}

/** Options of `claim`. */
export interface ClaimOptions {
  /** Default `["default"]`. */
  queues?: readonly string[] | undefined;
  handlers: readonly { type: string; version?: string }[];
  /** Default 1. */
  limit?: number | undefined;
  /** Default 30,000. */
  leaseMs?: number | undefined;
}

/** One started attempt of the low-level loop. */
export interface Claim {
  id: string;
  /** The token under which this attempt reports. */
  fence: string;
  queue: string;
  type: string;
  version: string;
  attempt: number;
  maxAttempts: number;
  priority: number;
  endpoint?: string;
  tags: string[];
  hasPayload: boolean;
  payload?: unknown;
  deadline?: Date;
  timeoutMs?: number;
  leaseUntil: Date;
  idempotencyKey: string;
  runId?: string;
  synthetic?: boolean;
  [key: string]: unknown;
}

/** What a report needs of its claim. */
export type ClaimRef = Pick<Claim, "id" | "fence">;

/** Options of `fail`; what is absent the error itself decides (`NonRetryableError`, `RetryableError`). */
export interface FailOptions {
  /** Final, even 0; absent defers to the policy. */
  delayMs?: number | undefined;
  retryable?: boolean | undefined;
  retryAfterMs?: number | undefined;
  uncertain?: boolean | undefined;
}

/** What became of a job by a failure report. */
export interface FailResult {
  state: JobState;
  reason?: string;
  delayMs?: number;
  source?: string;
  nextRunAt?: Date;
}

/** What became of a job by a success report: `failed` when its result was too large to store. */
export interface CompleteResult {
  state: "succeeded" | "failed";
  reason?: string;
}

/** The answer to one claim's heartbeat. */
export type HeartbeatResult = "accepted" | "cancel_requested" | "lease_lost";

/** A worker that showed itself lately. */
export interface WorkerInfo {
  id: number;
  name: string;
  host?: string;
  pid?: number;
  language?: string;
  queues: string[];
  handlers: { type: string; version: string }[];
  slots: number;
  running: number;
  startedAt: Date;
  seenAt: Date;
}

/** What came back from a service: a status, or no response at all. */
export type HttpOutcome = { status: number } | { failure: "not_sent" | "after_send" };

/** What is known of the request and its response. */
export interface HttpDecisionOptions {
  /** `Headers`, pairs, or an object of a value or several per name, as Node's `IncomingMessage` has it. */
  headers?: Iterable<[string, string]> | Record<string, string | readonly string[] | undefined> | undefined;
  /** Whether sending the request twice has the effect of sending it once; default true. */
  idempotent?: boolean | undefined;
  /** Whether this service says 409 while an earlier request is in progress; default false. */
  conflictMeansInProgress?: boolean | undefined;
  /** The time a date is measured from when the response has no `Date`; default now. */
  now?: Date | string | undefined;
}

/** What a response means for the next attempt; fits `classifyError`. */
export interface HttpDecision {
  retryable: boolean;
  /** The request may have been applied although it is not sent again. */
  uncertain: boolean;
  retryAfterMs?: number;
  reason: string;
}
