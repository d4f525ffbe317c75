/**
 * One shift of a worker, from its native start to the end of its drain: takes events, starts handlers, sends
 * reports. `Worker.run` makes one and awaits its `ended`.
 */
import { decide } from "./decisions.js";
import {
  type DrayhorseError,
  type ErrorCode,
  errorClasses,
  guarded,
  InternalError,
  LeaseLostError,
} from "./errors.js";
import { type JobEvent, type JobHost, RunningJob } from "./job.js";
import { Line } from "./line.js";
import { type NativeWorker, native } from "./native.js";
import type { QueueCore, Runner } from "./queue.js";
import {
  announced,
  failed,
  released,
  succeeded,
  unreadable,
  type WorkerDelay,
  workerDelay,
} from "./report.js";
import type {
  AbortReason,
  ErrorClassifier,
  ErrorContext,
  Job,
  WorkerHealth,
  WorkerOptions,
} from "./types.js";

/** A registered handler. */
export interface Handler {
  type: string;
  version: string;
  // biome-ignore lint/suspicious/noExplicitAny: a handler declares the payload it expects; nothing here can check it.
  fn: (payload: any, job: Job) => unknown;
  classifyError: ErrorClassifier | undefined;
}

/** Where a handler is found. */
export const handlerKey = (type: string, version: string): string => `${type}\0${version}`;

type WorkerEvent =
  | JobEvent
  | { event: "abort"; handle: number; reason: AbortReason }
  | { event: "error"; message: string; code?: string; handle?: number; jobId?: string }
  | { event: "stopped"; error?: { code: ErrorCode; message: string; details?: Record<string, unknown> } };

/** Events taken in one go; the event loop gets a turn in between. */
const BATCH = 256;

export class Shift implements JobHost, Runner {
  /** Settles when the drain has ended; rejects when the worker could not go on. */
  readonly ended: Promise<void>;
  readonly #core: QueueCore;
  readonly #line: Line<NativeWorker>;
  readonly #handlers: ReadonlyMap<string, Handler>;
  readonly #options: WorkerOptions;
  readonly #onError: (error: Error, context: ErrorContext) => void;
  readonly #jobs = new Map<number, RunningJob>();
  #reports: string[] = [];
  /** Whether the native worker exists. */
  started = false;
  #stopping = false;
  #stopped = false;
  #end: (error?: Error) => void = () => {};

  constructor(
    core: QueueCore,
    handlers: ReadonlyMap<string, Handler>,
    options: WorkerOptions,
    onError: (error: Error, context: ErrorContext) => void,
  ) {
    this.#core = core;
    this.#handlers = handlers;
    this.#options = options;
    this.#onError = onError;
    this.#line = new Line(
      (bell) => new native.NativeWorker(core.line.native, bell),
      () => this.#takeEvents(),
    );
    this.ended = new Promise((resolve, reject) => {
      this.#end = (error) => (error ? reject(error) : resolve());
    });
    // `run()` awaits this promise, but only after the start; a failure before that has its own way out.
    this.ended.catch(() => {});
  }

  /** Handlers that have not ended. */
  get running(): number {
    return this.#jobs.size;
  }

  /** Starts the native worker; the first claim follows at once. */
  async start(optionsJson: string): Promise<void> {
    this.#line.pin();
    this.#core.runners.add(this);
    try {
      await this.#line.call((worker, ticket) => worker.start(ticket, optionsJson));
    } catch (error) {
      this.#settle();
      throw error;
    }
    this.started = true;
    if (this.#stopping) guarded(() => this.#line.native.stop());
    this.#takeEvents();
  }

  /** Starts the drain. */
  stop(): void {
    if (this.#stopping || this.#stopped) return;
    this.#stopping = true;
    if (this.started) guarded(() => this.#line.native.stop());
  }

  async drain(): Promise<void> {
    this.stop();
    // How the run ended is told by run() itself.
    await this.ended.catch(() => {});
  }

  health(): Omit<WorkerHealth, "alive"> {
    return JSON.parse(guarded(() => this.#line.native.health()));
  }

  call(verb: string, argsJson: string): Promise<string> {
    return this.#line.call((worker, ticket) => worker.submit(ticket, verb, argsJson));
  }

  leaseRemainingMs(handle: number): number {
    return JSON.parse(guarded(() => this.#line.native.leaseRemaining(handle))).leaseRemainingMs;
  }

  progress(job: Job, argsJson: string): void {
    this.call("progress", argsJson).catch((error: Error) => {
      // A lost lease has its own way to the handler: the signal.
      if (!(error instanceof LeaseLostError)) this.#onError(error, { jobId: job.id });
    });
  }

  #takeEvents(): void {
    if (!this.started || this.#stopped) return;
    let events: WorkerEvent[];
    try {
      events = JSON.parse(this.#line.native.takeEvents(BATCH));
    } catch (error) {
      this.#finish(new InternalError("the worker's events cannot be read", { cause: error }));
      return;
    }
    for (const event of events) this.#handle(event);
    if (events.length === BATCH) setImmediate(() => this.#takeEvents());
  }

  #handle(event: WorkerEvent): void {
    switch (event.event) {
      case "job":
        void this.#execute(event);
        break;
      case "abort":
        this.#jobs.get(event.handle)?.abort(event.reason);
        break;
      case "error":
        this.#onError(errorOf(event), event.jobId === undefined ? {} : { jobId: event.jobId });
        break;
      case "stopped":
        this.#finish(event.error && errorOf(event.error));
    }
  }

  async #execute(event: JobEvent): Promise<void> {
    const handler = this.#handlers.get(handlerKey(event.type, event.version));
    // After a stop nothing starts, be it of the same batch of events.
    if (!handler || this.#stopping) {
      this.#report(released(event.handle));
      return;
    }
    let job: RunningJob;
    try {
      job = new RunningJob(event, this);
    } catch (error) {
      this.#report(unreadable(event.handle, error));
      return;
    }
    this.#jobs.set(event.handle, job);
    const delay = event.timed ? this.#announce(event.handle, job) : undefined;
    let report: string;
    try {
      report = succeeded(event.handle, await handler.fn(job.payload, job));
    } catch (error) {
      report = this.#failure(event.handle, error, job, handler, delay);
    }
    this.#jobs.delete(event.handle);
    this.#report(report);
  }

  /** Asks a `retryDelayMs` function before the start: when the attempt times out nobody reports its end. */
  #announce(handle: number, job: RunningJob): WorkerDelay | undefined {
    if (typeof this.#options.retryDelayMs !== "function") return undefined;
    const delay = workerDelay(this.#options.retryDelayMs, job, (fault) =>
      this.#onError(fault, { jobId: job.id }),
    );
    const report = announced(handle, delay);
    if (report !== undefined) this.#report(report);
    return delay;
  }

  #failure(handle: number, error: unknown, job: RunningJob, handler: Handler, asked?: WorkerDelay): string {
    const onFault = (fault: Error): void => this.#onError(fault, { jobId: job.id });
    const decision = decide(error, job, [handler.classifyError, this.#options.classifyError], onFault);
    if (!decision.retryable) return failed(handle, error, decision, {});
    return failed(handle, error, decision, asked ?? workerDelay(this.#options.retryDelayMs, job, onFault));
  }

  /** Reports of one turn of the event loop go out together. */
  #report(report: string): void {
    this.#reports.push(report);
    if (this.#reports.length === 1) process.nextTick(() => this.#sendReports());
  }

  #sendReports(): void {
    const reports = this.#reports;
    this.#reports = [];
    // After the end the core has released or settled everything: nothing could be said that counts.
    if (this.#stopped) return;
    try {
      guarded(() => this.#line.native.report(`[${reports.join(",")}]`));
    } catch (error) {
      this.#onError(error as Error, {});
    }
  }

  /** The drain has ended: joins the native threads, then ends the run. */
  #finish(error?: Error): void {
    if (this.#stopped) return;
    this.#stopped = true;
    this.#line
      .call((worker, ticket) => worker.close(ticket))
      .then(
        () => this.#settle(error),
        (fault) => this.#settle(error ?? fault),
      );
  }

  #settle(error?: Error): void {
    this.#core.runners.delete(this);
    this.#line.unpin();
    this.#end(error);
  }
}

function errorOf(event: {
  code?: string;
  message: string;
  details?: Record<string, unknown>;
}): DrayhorseError {
  const Class = errorClasses[event.code as ErrorCode] ?? InternalError;
  return new Class(event.message, event.details ? { details: event.details } : {});
}
