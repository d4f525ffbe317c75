/**
 * Puts whatever was thrown into the stored form of an error: `{name, message, stack, causes}`. It never throws,
 * because a failure has to be recorded whatever it looks like; the core bounds the text.
 */
import { inspect } from "node:util";
import { chainOf, read } from "./decisions.js";
import { DrayhorseError } from "./errors.js";

/** An error as it is stored with the attempt. */
export interface StoredError {
  name: string;
  message: string;
  stack?: string;
  causes?: StoredError[];
}

/** The stored form of `error`, its chain of causes included. */
export function describe(error: unknown): StoredError {
  const [, ...causes] = chainOf(error).slice(0, 33);
  const stored = describeLink(error, true);
  // The cause of our own errors is a sentence of the error table, the same for everyone: no evidence.
  const told = causes.filter((link) => typeof link === "object" || !(error instanceof DrayhorseError));
  if (told.length > 0) stored.causes = told.map((link) => describeLink(link, false));
  return stored;
}

function describeLink(link: unknown, withStack: boolean): StoredError {
  if (!isErrorLike(link)) return { name: "NonError", message: shown(link) };
  const name = read(link, "name");
  const stored: StoredError = {
    name: typeof name === "string" && name !== "" ? name.toWellFormed() : "Error",
    message: text(read(link, "message")),
  };
  const stack = withStack ? read(link, "stack") : undefined;
  if (typeof stack === "string") stored.stack = stack.toWellFormed();
  return stored;
}

function isErrorLike(link: unknown): boolean {
  return link instanceof Error || typeof read(link, "message") === "string";
}

function text(message: unknown): string {
  // JSON cannot carry a lone surrogate; it becomes visible as U+FFFD.
  return typeof message === "string" ? message.toWellFormed() : shown(message);
}

function shown(value: unknown): string {
  if (typeof value === "string") return value.toWellFormed();
  try {
    return inspect(value, { depth: 2, breakLength: Number.POSITIVE_INFINITY }).toWellFormed();
  } catch {
    return "a value that cannot be shown";
  }
}
