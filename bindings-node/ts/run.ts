/**
 * `Run`: jobs that belong together and may wait for each other. `Queue.startRun` makes one; another process makes
 * its own of the id.
 */
import type { Enqueued } from "./enqueued.js";
import { coreOf, type Queue } from "./queue.js";
import type { EnqueueOptions, InTransaction, RunSnapshot } from "./types.js";

export class Run {
  readonly id: string;
  readonly #queue: Queue;

  /** A run that was started before. */
  constructor(queue: Queue, id: string) {
    coreOf(queue);
    this.#queue = queue;
    this.id = id;
  }

  /** Enqueues one job of the run; `after` names the job it waits for, as a follow-up or a fallback. */
  async enqueue(
    type: string,
    payload?: unknown,
    options?: Omit<EnqueueOptions, "runId"> & InTransaction,
  ): Promise<Enqueued> {
    return this.#queue.enqueue(type, payload, { ...options, runId: this.id });
  }

  /** Takes no further jobs: the run ends with the last of those it has. */
  async finish(): Promise<RunSnapshot> {
    return coreOf(this.#queue).ask("finishRun", { id: this.id });
  }

  /** The run as it is now, or `undefined` when there is none with this id. */
  async get(): Promise<RunSnapshot | undefined> {
    return (await coreOf(this.#queue).ask<RunSnapshot | null>("getRun", { id: this.id })) ?? undefined;
  }
}
