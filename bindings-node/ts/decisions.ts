/**
 * What an error means for its job: the two error classes a handler may throw, the walk along the chain of causes,
 * and the classifiers. The worker asks here once per failed attempt; whether the job runs again is SQL's word.
 */
import { CheckpointConflictError } from "./errors.js";
import type { ErrorClassifier, ErrorDecision, Job } from "./types.js";

// A registered symbol: two copies of this package in one process know each other's errors.
const VERDICT = Symbol.for("drayhorse.verdict");

/** No further attempt of this job; for its endpoint it is a failure like any other. */
export class NonRetryableError extends Error {
  /** The effect of the attempt may have happened although it failed. */
  readonly uncertain: boolean;
  readonly [VERDICT] = "non-retryable";

  constructor(message?: string, options: { uncertain?: boolean; cause?: unknown } = {}) {
    super(message, "cause" in options ? { cause: options.cause } : {});
    this.name = "NonRetryableError";
    this.uncertain = options.uncertain ?? false;
  }
}

/** Retryable, not before `retryAfterMs`: a lower bound of 1 s to 24 h, ignored when it is no such number. */
export class RetryableError extends Error {
  readonly retryAfterMs: number | undefined;
  readonly [VERDICT] = "retryable";

  constructor(message?: string, retryAfterMs?: number, options: { cause?: unknown } = {}) {
    super(message, "cause" in options ? { cause: options.cause } : {});
    this.name = "RetryableError";
    this.retryAfterMs = retryAfterMs;
  }
}

/** The chain's bounds: as deep as the contract says, and no wider than anyone will read. */
const MAX_DEPTH = 32;
const MAX_LINKS = 1_000;

/** An error and its causes in pre-order: the error, then `cause`, then the members of an `AggregateError`. */
export function chainOf(error: unknown): unknown[] {
  const links = new Set<unknown>();
  const visit = (link: unknown, depth: number): void => {
    if (depth > MAX_DEPTH || links.size >= MAX_LINKS || links.has(link)) return;
    links.add(link);
    const cause = read(link, "cause");
    if (cause !== undefined && cause !== null) visit(cause, depth + 1);
    const members = link instanceof AggregateError ? read(link, "errors") : undefined;
    if (Array.isArray(members)) for (const member of members) visit(member, depth + 1);
  };
  visit(error, 1);
  return [...links];
}

/** A property of whatever was thrown; a getter that throws must not hide the failure. */
export function read(thrown: unknown, key: PropertyKey): unknown {
  if ((typeof thrown !== "object" && typeof thrown !== "function") || thrown === null) return undefined;
  try {
    return Reflect.get(thrown, key);
  } catch {
    return undefined;
  }
}

/** What the chain itself says: the outermost of the errors that carry a decision. */
export function decisionOfChain(error: unknown): ErrorDecision | undefined {
  for (const link of chainOf(error)) {
    const verdict = read(link, VERDICT);
    if (verdict === "non-retryable") return { retryable: false, uncertain: read(link, "uncertain") === true };
    if (verdict === "retryable") {
      const retryAfterMs = read(link, "retryAfterMs") as number | undefined;
      return retryAfterMs === undefined ? { retryable: true } : { retryable: true, retryAfterMs };
    }
    if (link instanceof CheckpointConflictError) return { retryable: false };
  }
  return undefined;
}

/** The whole decision: the chain, the handler's classifier, the worker's, and else retryable. */
export function decide(
  error: unknown,
  job: Job,
  classifiers: readonly (ErrorClassifier | undefined)[],
  onFault: (error: Error) => void,
): ErrorDecision {
  const decided = decisionOfChain(error);
  if (decided) return decided;
  for (const classify of classifiers) {
    if (!classify) continue;
    try {
      const decision: unknown = classify(error, job);
      if (decision === undefined) continue;
      if (isDecision(decision)) return decision;
      // A promise that nobody awaits must not end the process when it rejects.
      if (decision instanceof Promise) decision.catch(() => {});
      onFault(new TypeError("classifyError must return { retryable: boolean, ... } or undefined"));
    } catch (fault) {
      onFault(new Error("classifyError threw", { cause: fault }));
    }
    return { retryable: true };
  }
  return { retryable: true };
}

function isDecision(value: unknown): value is ErrorDecision {
  return typeof read(value, "retryable") === "boolean";
}

/** Whether this is a cancellation as JavaScript spells it: an `AbortError`, or one caused by it. */
export function isCancellation(error: unknown): boolean {
  return chainOf(error).some((link) => read(link, "name") === "AbortError");
}
