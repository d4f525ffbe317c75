/**
 * Enqueues inside the caller's own transaction: runs the core's one statement through whatever driver the caller has
 * and reads its one answer. No driver is a dependency; they are told apart by what they can do.
 */
import { type DrayhorseError, errorFromState, InvalidArgumentError } from "./errors.js";
import type { EnqueueStatement, Transaction } from "./types.js";

/** Runs `statement` in `tx`; the text that it returned. */
export async function runIn(tx: Transaction, { sql, params }: EnqueueStatement): Promise<string> {
  const run = runnerOf(tx);
  let answer: unknown;
  try {
    answer = await run(sql, params);
  } catch (error) {
    // What the queue's functions refused is ours; everything else is the driver's own error.
    throw typed(error) ?? error;
  }
  return onlyText(answer);
}

type Runner = (sql: string, params: string[]) => unknown;

function runnerOf(tx: Transaction): Runner {
  const given = tx as unknown as Record<string, unknown> | null | undefined;
  // `sql` of postgres.js is a function too: a tag of template literals.
  if (typeof given?.unsafe === "function") return given.unsafe.bind(tx) as Runner;
  if (typeof tx === "function") return tx;
  if (typeof given?.query === "function") return given.query.bind(tx) as Runner;
  throw new InvalidArgumentError(
    "tx must be a client with query(sql, params) or unsafe(sql, params), or a function (sql, params) => rows",
    { details: { field: "tx" } },
  );
}

/** The one value of the one row, whether rows are objects or arrays and whether the driver wraps them. */
function onlyText(answer: unknown): string {
  const rows = Array.isArray(answer) ? answer : (answer as { rows?: unknown } | null | undefined)?.rows;
  const row: unknown = Array.isArray(rows) && rows.length === 1 ? rows[0] : undefined;
  const value: unknown = typeof row === "object" && row !== null ? Object.values(row)[0] : undefined;
  if (typeof value === "string") return value;
  throw new InvalidArgumentError("tx must give the one row that the statement returns, with its text", {
    details: { field: "tx" },
  });
}

/** node-postgres and postgres.js call the fields alike; wrappers keep the driver's error as `cause`. */
function typed(error: unknown): DrayhorseError | undefined {
  let link: unknown = error;
  for (let depth = 0; depth < 8 && typeof link === "object" && link !== null; depth++) {
    const { code, message, detail, cause } = link as Record<string, unknown>;
    const found = errorFromState(code, message, detail, error);
    if (found) return found;
    link = cause;
  }
  return undefined;
}
