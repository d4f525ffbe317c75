/**
 * `Queue`: one queue database, with a method for each control verb of the core. It owns the native client; workers
 * share it. Which values are right is decided by the core and by SQL; here they only get their JSON form.
 */
import { Contracts } from "./contracts.js";
import { decisionOfChain } from "./decisions.js";
import { embeddedBin } from "./embedded.js";
import type { Enqueued } from "./enqueued.js";
import { InternalError, InvalidArgumentError } from "./errors.js";
import { describe } from "./failure.js";
import { Endpoints, Queues } from "./gates.js";
import { decode, encodeArguments, encodePolicy, encodeValue, RawJson } from "./json.js";
import { Line } from "./line.js";
import { type NativeClient, native } from "./native.js";
import { claimOf, enqueuedFrom, manyJobs, oneJob, targetOf } from "./new-job.js";
import { rawHint } from "./report.js";
import { type Ask, fromRows } from "./rows.js";
import { Run } from "./run.js";
import { runIn } from "./transaction.js";
import type {
  Access,
  CancelResult,
  Claim,
  ClaimOptions,
  ClaimRef,
  CompleteResult,
  ConnectOptions,
  EnqueueOptions,
  EnqueueStatement,
  FailOptions,
  FailResult,
  HeartbeatResult,
  InTransaction,
  JobFilter,
  JobList,
  JobRef,
  JobSnapshot,
  JobState,
  ListPage,
  NewJob,
  Outcome,
  PolicyPreview,
  Redriven,
  RedriveOptions,
  RedrivePreview,
  ReplayOptions,
  ReplayPreview,
  RetryPolicy,
  TimelineEvent,
  Transaction,
  WorkerInfo,
} from "./types.js";

/** What a running worker shows its queue. */
export interface Runner {
  /** Starts the drain and resolves at its end. */
  drain(): Promise<void>;
}

/** The inside of a queue, for the workers and runs of this package. */
export interface QueueCore {
  line: Line<NativeClient>;
  ask: Ask;
  /** The workers that run now; `close` drains them first. */
  runners: Set<Runner>;
}

/** How often the statement of one enqueue is sent: each time a publication came in between. */
const SENDS = 10;

const cores = new WeakMap<Queue, QueueCore>();

/** The inside of `queue`. */
export function coreOf(queue: Queue): QueueCore {
  const core = cores.get(queue);
  if (!core) throw new TypeError("this needs a Queue that came from Queue.connect");
  return core;
}

export class Queue {
  readonly #core: QueueCore;
  #closing: Promise<void> | undefined;

  /** Destinations: pauses, limits, policies and circuits. */
  readonly endpoints: Endpoints;
  /** The gates of whole queues. */
  readonly queues: Queues;
  /** What types promise: schemas, policies, endpoints. */
  readonly contracts: Contracts;
  /** Who is alive, what it handles, what it runs. */
  readonly workers = {
    list: (): Promise<WorkerInfo[]> => this.#rows("workers.list", {}),
  };

  private constructor(line: Line<NativeClient>) {
    const ask: Ask = (verb, args) => this.#rows(verb, args);
    this.#core = { line, ask, runners: new Set() };
    this.endpoints = new Endpoints(ask);
    this.queues = new Queues(ask);
    this.contracts = new Contracts(ask);
    cores.set(this, this.#core);
  }

  /** Connects to `postgresql://…`, or to a private server in `embedded:PATH`. */
  static async connect(url: string, options: ConnectOptions = {}): Promise<Queue> {
    if (typeof url !== "string") {
      throw new InvalidArgumentError("url must be a string", { details: { field: "url" } });
    }
    const line = new Line<NativeClient>((bell) => new native.NativeClient(bell));
    const passed = encodeArguments({ ...options, postgresBin: embeddedBin(url, options), language: "node" });
    await line.call((client, ticket) => client.connect(ticket, url, passed));
    return new Queue(line);
  }

  /** Drains this queue's running workers, waits for running calls and closes the connections. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  /** Creates the schema or brings it up to date. */
  async migrate(): Promise<{ version: number; applied: number[] }> {
    return this.#rows("migrate", {});
  }

  /** The schema's version and the one this package needs; `version` is absent when there is no schema. */
  async schemaVersion(): Promise<{ version?: number; expected: number }> {
    return this.#rows("schemaVersion", {});
  }

  /** Refuses a schema that is missing, older or newer than this package needs. */
  async assertCompatible(): Promise<void> {
    await this.#call("assertCompatible", {});
  }

  /** Enqueues one job; with `tx` it exists when the caller's transaction commits. */
  async enqueue(
    type: string,
    payload?: unknown,
    options?: EnqueueOptions & InTransaction,
  ): Promise<Enqueued> {
    const { tx, ...rest } = options ?? {};
    const job: NewJob = { type, payload, options: options && rest };
    if (tx === undefined) return enqueuedFrom(await this.#call("enqueue", oneJob(job)));
    return (await this.#enqueueIn(tx, [job]))[0] as Enqueued;
  }

  /** Enqueues all of `jobs` or none; the answers are in their order. */
  async enqueueMany(jobs: readonly NewJob[], { tx }: InTransaction = {}): Promise<Enqueued[]> {
    if (tx !== undefined) return this.#enqueueIn(tx, jobs);
    return ((await this.#call("enqueueMany", manyJobs(jobs))) as unknown[]).map(enqueuedFrom);
  }

  /**
   * The same as one statement for the caller's own connection and transaction; `tx` runs it by itself. The text that
   * it returns has to be given to `enqueueAnswer`.
   */
  async enqueueStatement(jobs: readonly NewJob[]): Promise<EnqueueStatement> {
    return this.#call("enqueueStatement", manyJobs(jobs)) as Promise<EnqueueStatement>;
  }

  /**
   * The jobs that a statement of `enqueueStatement` made, from the text it returned. `undefined`: a contract was
   * published meanwhile and nothing was written; make the statement anew.
   */
  async enqueueAnswer(answer: string): Promise<Enqueued[] | undefined> {
    return (await this.#answerOf(answer)).enqueued;
  }

  /** The job, or `undefined` when there is none. */
  async get(id: JobRef): Promise<JobSnapshot | undefined> {
    return (await this.#rows<JobSnapshot | null>("get", { id: String(id) })) ?? undefined;
  }

  /** What happened to a job, and why, in order. */
  async timeline(id: JobRef): Promise<TimelineEvent[]> {
    return this.#rows("timeline", { id: String(id) });
  }

  /** Jobs, newest first. */
  async list(filter: JobFilter = {}, page: ListPage = {}): Promise<JobList> {
    const { payload, ...rest } = page;
    return this.#rows("list", { filter, page: rest, payload });
  }

  /** How many jobs are in each state. */
  async counts(filter: JobFilter = {}): Promise<Record<JobState, number>> {
    return this.#rows("counts", { filter });
  }

  /** Waits for the job's end; a `WaitTimeoutError` leaves the job untouched. */
  async wait(id: JobRef, timeoutMs: number): Promise<Outcome> {
    return this.#rows("wait", { id: String(id), timeoutMs });
  }

  /** Cancels a waiting job at once; a running handler is asked. */
  async cancel(id: JobRef, options: { reason?: string; actor?: string } = {}): Promise<CancelResult> {
    return (await this.#rows<{ result: CancelResult }>("cancel", { ...options, id: String(id) })).result;
  }

  /** Makes new jobs of a failed one, or of all failed ones that match a filter. */
  async redrive(target: JobRef | JobFilter, options: RedriveOptions): Promise<Redriven[]> {
    return this.#rows("redrive", { ...options, ...targetOf(target) });
  }

  /** How many jobs a redrive by this filter would make, and what they risk. */
  async redrivePreview(filter: JobFilter): Promise<RedrivePreview> {
    return this.#rows("redrivePreview", { filter });
  }

  /** Makes new jobs of ended ones, however they ended, each with one attempt unless `maxAttempts` says more. */
  async replay(target: JobRef | JobFilter, options: ReplayOptions): Promise<Redriven[]> {
    return this.#rows("replay", { ...options, ...targetOf(target) });
  }

  /** What a replay would run and what speaks against it; by a filter, how many jobs it would make. */
  async replayPreview(target: JobRef): Promise<ReplayPreview>;
  async replayPreview(target: JobFilter): Promise<RedrivePreview>;
  async replayPreview(target: JobRef | JobFilter): Promise<ReplayPreview | RedrivePreview> {
    return this.#rows("replayPreview", targetOf(target));
  }

  /** Starts a run, to which jobs can be added until it is finished. */
  async startRun(name: string): Promise<Run> {
    return new Run(this, (await this.#rows<{ id: string }>("startRun", { name })).id);
  }

  /** The delays SQL will choose after each of the first `attempts` failures of the job `jobId`. */
  async previewPolicy(
    policy: RetryPolicy,
    options: { jobId?: JobRef; attempts?: number } = {},
  ): Promise<PolicyPreview> {
    const { jobId, attempts } = options;
    return this.#rows("previewPolicy", {
      policy: encodePolicy(policy),
      jobId: jobId === undefined ? undefined : String(jobId),
      attempts,
    });
  }

  /** Starts attempts for a loop of your own: whoever claims renews the lease and reports. */
  async claim(options: ClaimOptions): Promise<Claim[]> {
    return this.#rows("claim", options);
  }

  /** Reports success. */
  async complete(claim: ClaimRef, result?: unknown): Promise<CompleteResult> {
    const text = encodeValue(result, "result");
    return this.#rows("complete", {
      claim: claimOf(claim),
      result: text === undefined ? undefined : new RawJson(text),
    });
  }

  /** Reports a failure; what `options` leaves open the chain of `error` decides. */
  async fail(claim: ClaimRef, error: unknown, options: FailOptions = {}): Promise<FailResult> {
    const decision = { ...decisionOfChain(error), ...options };
    return this.#rows("fail", {
      ...decision,
      // A hint never makes an error of its own: a bad one is ignored, with a note.
      retryAfterMs: rawHint(decision.retryAfterMs),
      claim: claimOf(claim),
      error: describe(error),
    });
  }

  /** Gives a claim back: the attempt is not spent. */
  async release(claim: ClaimRef): Promise<void> {
    await this.#call("release", { claim: claimOf(claim) });
  }

  /** Renews leases; one answer per claim, in order. */
  async heartbeat(
    claims: readonly ClaimRef[],
    options: { leaseMs?: number } = {},
  ): Promise<HeartbeatResult[]> {
    return this.#rows("heartbeat", { claims: claims.map(claimOf), ...options });
  }

  /** Removes what retention lets go, a bounded number per call; `jobs` says how many. */
  async prune(options: { limit?: number } = {}): Promise<{ jobs: number }> {
    return this.#rows("prune", options);
  }

  /** Gives a database role the rights of a worker, a producer or a reader. */
  async grant(role: string, access: Access): Promise<void> {
    await this.#call("grant", { role, access });
  }

  /** Takes them away. */
  async revoke(role: string, access: Access): Promise<void> {
    await this.#call("revoke", { role, access });
  }

  async #close(): Promise<void> {
    await Promise.all([...this.#core.runners].map((runner) => runner.drain()));
    await this.#core.line.call((client, ticket) => client.close(ticket));
  }

  async #enqueueIn(tx: Transaction, jobs: readonly NewJob[]): Promise<Enqueued[]> {
    const args = manyJobs(jobs);
    // The transaction may see another set of contracts than this queue does: then the statement says which one.
    let contracts: number | undefined;
    for (let sent = 0; sent < SENDS; sent++) {
      const statement = await this.#call("enqueueStatement", { ...args, contracts });
      const answer = await this.#answerOf(await runIn(tx, statement as EnqueueStatement));
      if (answer.enqueued) return answer.enqueued;
      contracts = answer.contracts;
    }
    throw new InternalError(`contracts were published ${SENDS} times while jobs were enqueued`);
  }

  async #answerOf(answer: string): Promise<{ enqueued?: Enqueued[]; contracts?: number }> {
    const read = (await this.#call("enqueueAnswer", { answer })) as unknown[] | { contracts: number };
    return Array.isArray(read) ? { enqueued: read.map(enqueuedFrom) } : { contracts: read.contracts };
  }

  async #rows<T>(verb: string, args: object): Promise<T> {
    return fromRows<T>(await this.#call(verb, args));
  }

  async #call(verb: string, args: object): Promise<unknown> {
    const text = encodeArguments(args);
    return decode(await this.#core.line.call((client, ticket) => client.submit(ticket, verb, text)));
  }
}
