/**
 * A native handle with the calls under way on it and the bell that ends them. A queue has one for its control
 * calls, a running worker one for its jobs.
 */
import { errorFrom, guarded } from "./errors.js";
import { hold, release } from "./keepalive.js";
import type { Completion, NativeHandle } from "./native.js";

export class Line<N extends NativeHandle> {
  readonly native: N;
  readonly #onBell: (() => void) | undefined;
  readonly #pending = new Map<number, (end: Completion) => void>();
  #lastTicket = 0;
  #pinned = false;

  /**
   * @param make makes the native handle around the bell
   * @param onBell what else to do when it rings, after the ended calls were settled
   */
  constructor(make: (bell: () => void) => N, onBell?: () => void) {
    // The native handle holds the bell strongly; without the weak reference a forgotten queue is never collected.
    const line = new WeakRef(this);
    this.native = make(() => line.deref()?.ring());
    this.#onBell = onBell;
  }

  /**
   * Makes one call: `start` hands the ticket to the native handle. The error of a failed call is made after the
   * await, so that its stack names the caller.
   */
  async call(start: (native: N, ticket: number) => void): Promise<string> {
    const end = await this.#begin(start);
    if (end.failed) throw errorFrom(end.text);
    return end.text;
  }

  /** Keeps the process alive although no call is under way. */
  pin(): void {
    this.#pinned = true;
    hold(this);
  }

  /** Undoes `pin`. */
  unpin(): void {
    this.#pinned = false;
    if (this.#pending.size === 0) release(this);
  }

  #begin(start: (native: N, ticket: number) => void): Promise<Completion> {
    return new Promise((resolve) => {
      this.#lastTicket = (this.#lastTicket + 1) >>> 0;
      const ticket = this.#lastTicket;
      guarded(() => start(this.native, ticket));
      this.#pending.set(ticket, resolve);
      hold(this);
    });
  }

  /** The bell rang: settles what has ended. */
  ring(): void {
    for (const end of this.native.takeCompletions()) {
      this.#pending.get(end.ticket)?.(end);
      this.#pending.delete(end.ticket);
    }
    if (this.#pending.size === 0 && !this.#pinned) release(this);
    this.#onBell?.();
  }
}
