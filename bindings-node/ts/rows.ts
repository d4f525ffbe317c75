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
  "runAt",
  "seenAt",
  "startedAt",
]);

const VALUES = new Set(["payload", "result", "retryPolicy", "policy"]);

/** One answered object or array of them, in place. */
export function fromRows<T>(answer: unknown): T {
  if (Array.isArray(answer)) for (const row of answer) fromRows(row);
  else if (typeof answer === "object" && answer !== null) fromRow(answer as Record<string, unknown>);
  return answer as T;
}

function fromRow(row: Record<string, unknown>): void {
  for (const [key, value] of Object.entries(row)) {
    if (VALUES.has(key) && value !== null) continue;
    if (value === null && !((key === "payload" && row.hasPayload === true) || key === "result"))
      delete row[key];
    else if (key === "progress") continue;
    else if (TIMES.has(key) && typeof value === "string") row[key] = new Date(value);
    else fromRows(value);
  }
}
