/**
 * `Worker`: handlers, options and one run at a time. It owns the registration of handlers and the signals; `shift.ts`
 * does the work.
 */
import { InvalidArgumentError, WrongStateError } from "./errors.js";
import { encodeArguments } from "./json.js";
import { coreOf, type Queue } from "./queue.js";
import { type Handler, handlerKey, Shift } from "./shift.js";
import { SignalTrap } from "./signals.js";
import type { ErrorContext, HandleOptions, Job, WorkerHealth, WorkerOptions } from "./types.js";

export class Worker {
  readonly #queue: Queue;
  readonly #options: WorkerOptions;
  readonly #handlers = new Map<string, Handler>();
  #shift: Shift | undefined;

  constructor(queue: Queue, options: WorkerOptions = {}) {
    coreOf(queue);
    this.#queue = queue;
    this.#options = { ...options };
  }

  /** Registers the handler of one type and version; what it returns is the job's result. */
  // biome-ignore lint/suspicious/noExplicitAny: the payload is what the handler says it is.
  handle<P = any>(type: string, fn: (payload: P, job: Job) => unknown, options: HandleOptions = {}): this {
    const { version = "1", classifyError } = options;
    if (typeof fn !== "function") {
      throw new InvalidArgumentError("a handler must be a function", { details: { field: "fn" } });
    }
    if (this.#shift) throw new WrongStateError("the worker runs: register handlers before run()");
    const key = handlerKey(type, version);
    if (this.#handlers.has(key)) {
      throw new InvalidArgumentError(`${type}@${version} already has a handler`, {
        details: { field: "type" },
      });
    }
    this.#handlers.set(key, { type, version, fn, classifyError });
    return this;
  }

  /** Runs until `stop()` or a signal, then until the drain has ended. Rejects when the worker cannot go on. */
  async run(): Promise<void> {
    if (this.#shift) throw new WrongStateError("the worker already runs");
    const core = coreOf(this.#queue);
    const started = this.#startOptions();
    const shift = new Shift(core, this.#handlers, this.#options, (error, context) =>
      this.#tell(error, context),
    );
    this.#shift = shift;
    const trap = new SignalTrap(() => shift.stop());
    try {
      if (this.#options.handleSignals !== false) trap.install();
      await shift.start(started);
      await shift.ended;
    } finally {
      trap.remove();
      this.#shift = undefined;
      if (shift.running > 0) trap.leaveSoon();
    }
  }

  /** Starts the drain: no new jobs, running ones have `graceMs`. */
  stop(): void {
    this.#shift?.stop();
  }

  /** For probes; never waits. */
  health(): WorkerHealth {
    if (!this.#shift?.started) return { ...STOPPED, stuck: [] };
    const health = this.#shift.health();
    return { alive: health.phase !== "stopped", ...health };
  }

  /** What the core gets: everything but what lives in JavaScript, so that it refuses an option nobody knows. */
  #startOptions(): string {
    const { retryDelayMs, classifyError, onError, handleSignals, ...core } = this.#options;
    const handlers = [...this.#handlers.values()].map(({ type, version }) => ({ type, version }));
    // A number is known to the core before anything fails; a function is asked here, per job.
    const number = typeof retryDelayMs === "function" ? undefined : retryDelayMs;
    return encodeArguments({ ...core, retryDelayMs: number, handlers, language: "node" });
  }

  /** Hands an error to `onError`, whose own failure must not reach the event loop. */
  #tell(error: Error, context: ErrorContext): void {
    try {
      const answer: unknown = (this.#options.onError ?? logError)(error, context);
      if (answer instanceof Promise) answer.catch((fault) => logError(fault, context));
    } catch (fault) {
      logError(fault, context);
    }
  }
}

const STOPPED: WorkerHealth = {
  alive: false,
  phase: "stopped",
  connected: false,
  listening: false,
  slots: 0,
  running: 0,
  stuck: [],
};

function logError(error: unknown, context: ErrorContext): void {
  console.error(`drayhorse${context.jobId === undefined ? "" : ` (job ${context.jobId})`}:`, error);
}
