/**
 * One running job: what its handler sees, and the signal that tells it to stop. A run makes one per `job` event
 * and keeps it until the handler has ended.
 */
import { decode, encodeArguments, encodeValue, RawJson } from "./json.js";
import type { AbortReason, Job } from "./types.js";

/** The event `job` of the core. */
export interface JobEvent {
  event: "job";
  handle: number;
  id: string;
  queue: string;
  type: string;
  version: string;
  attempt: number;
  maxAttempts: number;
  hasPayload: boolean;
  payload?: unknown;
  /** Instead of `payload` when it holds an integer beyond 2^53-1. */
  payloadText?: string;
  tags?: string[];
  endpoint?: string;
  deadline?: string;
  runId?: string;
  idempotencyKey?: string;
  synthetic?: boolean;
  /** The attempt has a timeout. */
  timed?: boolean;
}

/** What a job needs of the run it belongs to. */
export interface JobHost {
  /** A call of the handler `handle`; the result is JSON. */
  call(verb: string, argsJson: string): Promise<string>;
  leaseRemainingMs(handle: number): number;
  /** Hands a progress value over without waiting; a failure goes to `onError`. */
  progress(job: Job, argsJson: string): void;
}

/** The reason of an aborted `job.signal`; a handler may throw it on. */
export class JobAbortError extends Error {
  readonly reason: AbortReason;

  constructor(reason: AbortReason) {
    super(`the job was told to stop: ${reason}`);
    this.name = "AbortError";
    this.reason = reason;
  }
}

export class RunningJob implements Job {
  readonly id: string;
  readonly type: string;
  readonly version: string;
  readonly queue: string;
  readonly payload: unknown;
  readonly hasPayload: boolean;
  readonly attempt: number;
  readonly maxAttempts: number;
  readonly tags: readonly string[];
  readonly endpoint: string | undefined;
  readonly deadline: Date | undefined;
  readonly runId: string | undefined;
  readonly synthetic: boolean;
  readonly idempotencyKey: string;
  readonly #handle: number;
  readonly #host: JobHost;
  /** Made on first use: most handlers never look at their signal. */
  #controller: AbortController | undefined;
  #aborted: AbortReason | undefined;

  constructor(event: JobEvent, host: JobHost) {
    this.id = event.id;
    this.type = event.type;
    this.version = event.version;
    this.queue = event.queue;
    this.payload = (event.payloadText === undefined ? event.payload : decode(event.payloadText)) ?? null;
    this.hasPayload = event.hasPayload;
    this.attempt = event.attempt;
    this.maxAttempts = event.maxAttempts;
    this.tags = event.tags ?? [];
    this.endpoint = event.endpoint ?? undefined;
    this.deadline = event.deadline ? new Date(event.deadline) : undefined;
    this.runId = event.runId ?? undefined;
    this.synthetic = event.synthetic === true;
    this.idempotencyKey = event.idempotencyKey ?? event.id;
    this.#handle = event.handle;
    this.#host = host;
  }

  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController();
      if (this.#aborted) this.#controller.abort(new JobAbortError(this.#aborted));
    }
    return this.#controller.signal;
  }

  get leaseRemainingMs(): number {
    return this.#host.leaseRemainingMs(this.#handle);
  }

  async checkpoint<T>(name: string, fn: () => T | Promise<T>): Promise<T> {
    const found = decode(await this.#call("checkpointGet", { name })) as { found: boolean; value?: unknown };
    if (found.found) return found.value as T;
    const text = encodeValue(await fn(), `checkpoint ${name}`) ?? "null";
    await this.#call("checkpointPut", { name, value: new RawJson(text) });
    // What later attempts will get, so that the first one cannot depend on more.
    return decode(text) as T;
  }

  progress(value: unknown): void {
    const text = new RawJson(encodeValue(value, "progress") ?? "null");
    this.#host.progress(this, encodeArguments({ handle: this.#handle, value: text }));
  }

  /** Tells the handler to stop. */
  abort(reason: AbortReason): void {
    this.#aborted ??= reason;
    this.#controller?.abort(new JobAbortError(reason));
  }

  #call(verb: string, args: object): Promise<string> {
    return this.#host.call(verb, encodeArguments({ handle: this.#handle, ...args }));
  }
}
