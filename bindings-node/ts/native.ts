/**
 * Finds and loads the native library. It owns the shape of that library as TypeScript sees it; everything else
 * of the package imports it from here.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";

/** The end of one submitted call, as the native mailbox hands it over. */
export interface Completion {
  ticket: number;
  failed: boolean;
  /** The result as JSON, or the error as JSON. */
  text: string;
}

/** What every native handle has: a mailbox for the ends of its calls. */
export interface NativeHandle {
  submit(ticket: number, verb: string, argsJson: string): void;
  close(ticket: number): void;
  takeCompletions(): Completion[];
}

/** `NativeClient` of `src/client.rs`. */
export interface NativeClient extends NativeHandle {
  connect(ticket: number, url: string, optionsJson: string): void;
}

/** `NativeWorker` of `src/worker.rs`. */
export interface NativeWorker extends NativeHandle {
  start(ticket: number, optionsJson: string): void;
  takeEvents(max: number): string;
  report(reportsJson: string): void;
  leaseRemaining(handle: number): string;
  stop(): void;
  health(): string;
}

interface NativeLibrary {
  version(): string;
  errorTable(): string;
  httpDecision(argsJson: string): string;
  NativeClient: new (bell: () => void) => NativeClient;
  NativeWorker: new (client: NativeClient, bell: () => void) => NativeWorker;
}

const packageVersion: string = require("../package.json").version;

/** The loaded library. */
export const native: NativeLibrary = load();

function load(): NativeLibrary {
  const platform = `${process.platform}-${process.arch}${process.platform === "linux" ? "-gnu" : ""}`;
  const packageName = `@drayhorse/${platform}`;
  // A checkout builds the library into `native/`; the published package does not have that folder.
  const built = join(__dirname, "..", "native", "drayhorse.node");
  let library: NativeLibrary;
  try {
    library = require(existsSync(built) ? built : packageName);
  } catch (cause) {
    throw new Error(
      `drayhorse has no native library for ${platform}: install the optional package ${packageName} ` +
        "(npm leaves it out with --omit=optional, and on platforms without one).",
      { cause },
    );
  }
  if (library.version() !== packageVersion) {
    throw new Error(
      `drayhorse ${packageVersion} found the native library of version ${library.version()}: ` +
        `install ${packageName}@${packageVersion}.`,
    );
  }
  return library;
}
