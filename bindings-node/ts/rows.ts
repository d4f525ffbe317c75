/**
 * Turns what the database answers into what users get: times become `Date`, SQL's nulls become absent members.
 * Payloads, results and progress are the user's own and stay as they are.
 */
const TIMES = new Set([
  "at",
  "claimedAt",
  "deadline",
  "enqueuedAt",
  "finishedAt",
  "leaseUntil",
  "nextRunAt",
  "openedAt",
  "overdueAt",
  "probeAt",
  "publishedAt",
  "runAt",
  "seenAt",
  "since",
  "startedAt",
]);

const VALUES = new Set(["payload", "result", "retryPolicy", "policy", "inputSchema", "outputSchema"]);

/** In the event of a change null is what was said: the setting was removed. */
const SETTINGS = new Set(["rateLimit", "maxConcurrency", "retryPolicy"]);

/** Sends a verb with its arguments; the answer as users get it. */
export type Ask = <T>(verb: string, args: object) => Promise<T>;

/** One answered object or array of them, in place. */
export function fromRows<T>(answer: unknown): T {
  if (Array.isArray(answer)) for (const row of answer) fromRows(row);
  else if (typeof answer === "object" && answer !== null) fromRow(answer as Record<string, unknown>);
  return answer as T;
}

function fromRow(row: Record<string, unknown>): void {
  for (const [key, value] of Object.entries(row)) {
    if (value === null) {
      if (!isMeant(row, key)) delete row[key];
    } else if (VALUES.has(key) || key === "progress") continue;
    else if (TIMES.has(key) && typeof value === "string") row[key] = new Date(value);
    else fromRows(value);
  }
}

/** Whether a null is a value and not an absence. */
function isMeant(row: Record<string, unknown>, key: string): boolean {
  if (key === "payload") {
    const described = (row.wouldRun ?? row) as { hasPayload?: boolean };
    return described.hasPayload === true;
  }
  return key === "result" || (row.event === "configured" && SETTINGS.has(key));
}
