/**
 * SIGTERM and SIGINT while a worker runs: the first starts the drain, the second ends the process at once. A run
 * installs a trap and removes it at its end, which gives the process its old behaviour back.
 */
import { constants } from "node:os";
import { isMainThread } from "node:worker_threads";

const SIGNALS = ["SIGTERM", "SIGINT"] as const;
type Trapped = (typeof SIGNALS)[number];

/** How long the program may go on after a drain that left handlers behind. */
const LEFTOVER_MS = 1_000;

export class SignalTrap {
  readonly #drain: () => void;
  readonly #listener = (signal: NodeJS.Signals): void => this.#receive(signal as Trapped);
  #received: Trapped | undefined;

  constructor(drain: () => void) {
    this.#drain = drain;
  }

  /** Signals reach the main thread only. */
  install(): void {
    if (isMainThread) for (const signal of SIGNALS) process.on(signal, this.#listener);
  }

  remove(): void {
    for (const signal of SIGNALS) process.off(signal, this.#listener);
  }

  /**
   * A signal ended the run while handlers still ran, whose timers and sockets would keep the process for as long
   * as they like: it ends soon, with the signal's own exit code. The delay is for the program's last words.
   */
  leaveSoon(): void {
    const received = this.#received;
    if (received) setTimeout(() => process.exit(exitCode(received)), LEFTOVER_MS).unref();
  }

  #receive(signal: Trapped): void {
    if (this.#received) process.exit(exitCode(signal));
    this.#received = signal;
    this.#drain();
  }
}

function exitCode(signal: Trapped): number {
  return 128 + constants.signals[signal];
}
