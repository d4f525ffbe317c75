/**
 * The errors of the one error table: a class for each code, and the way an error of the core becomes one. Every
 * module of the package throws from here; `test/errors.test.mjs` compares the classes with the table.
 */
import { native } from "./native.js";

/** The codes of the error table. */
export type ErrorCode =
  | "invalid_argument"
  | "payload_invalid"
  | "payload_too_large"
  | "policy_invalid"
  | "idempotency_conflict"
  | "not_found"
  | "wrong_state"
  | "lease_lost"
  | "checkpoint_conflict"
  | "contract_conflict"
  | "contract_violation"
  | "wait_timeout"
  | "statement_timeout"
  | "connection_lost"
  | "read_only"
  | "permission_denied"
  | "schema_missing"
  | "schema_too_old"
  | "schema_too_new"
  | "closed"
  | "used_after_fork"
  | "embedded_failed"
  | "internal";

interface Row {
  number: number;
  code: ErrorCode;
  retryable: boolean;
  cause: string;
}

let rows: Map<string, Row> | undefined;

function table(): Map<string, Row> {
  rows ??= new Map((JSON.parse(native.errorTable()) as Row[]).map((row) => [row.code, row]));
  return rows;
}

/** What an error may carry besides its message. */
export interface ErrorExtras {
  details?: Readonly<Record<string, unknown>>;
  cause?: unknown;
}

/** Any failure that Drayhorse itself reports. */
export abstract class DrayhorseError extends Error {
  /** The code of the error table, `lease_lost` for example. */
  readonly code: ErrorCode;
  /** Whether the same call may succeed later without a change by the caller. */
  readonly retryable: boolean;
  /** Machine-readable facts: `field`, `path`, `limit`, `conflictingFields`, `existingId` and others. */
  readonly details: Readonly<Record<string, unknown>>;

  /** @param code the code of the subclass */
  protected constructor(code: ErrorCode, message: string, extras: ErrorExtras = {}) {
    const row = table().get(code);
    // Where nothing in this process lies beneath, the cause is the table's sentence on it.
    super(message, { cause: extras.cause ?? row?.cause });
    this.name = new.target.name;
    this.code = code;
    this.retryable = row?.retryable ?? false;
    this.details = extras.details ?? {};
  }
}

/** An argument is missing, unknown, of another type or outside its bounds. */
export class InvalidArgumentError extends DrayhorseError {
  constructor(message: string, extras?: ErrorExtras) {
    super("invalid_argument", message, extras);
  }
}

/** A JSON value holds something PostgreSQL cannot keep: U+0000, a lone surrogate, NaN, an infinity, or nesting over 100. */
export class PayloadInvalidError extends DrayhorseError {
  constructor(message: string, extras?: ErrorExtras) {
    super("payload_invalid", message, extras);
  }
}

/** A JSON value is larger than the database's limit. */
export class PayloadTooLargeError extends DrayhorseError {
  constructor(message: string, extras?: ErrorExtras) {
    super("payload_too_large", message, extras);
  }
}

/** A retry policy has an unknown shape, key or bound. */
export class PolicyInvalidError extends DrayhorseError {
  constructor(message: string, extras?: ErrorExtras) {
    super("policy_invalid", message, extras);
  }
}

/** The idempotency key already names another enqueue. */
export class IdempotencyConflictError extends DrayhorseError {
  constructor(message: string, extras?: ErrorExtras) {
    super("idempotency_conflict", message, extras);
  }
}

/** There is no such job, run, endpoint or queue. */
export class NotFoundError extends DrayhorseError {
  constructor(message: string, extras?: ErrorExtras) {
    super("not_found", message, extras);
  }
}

/** The job or run is not in a state that allows this. */
export class WrongStateError extends DrayhorseError {
  constructor(message: string, extras?: ErrorExtras) {
    super("wrong_state", message, extras);
  }
}

/** The claim is no longer current: its lease ended and recovery or another claim replaced its fence, or the attempt was settled. */
export class LeaseLostError extends DrayhorseError {
  constructor(message: string, extras?: ErrorExtras) {
    super("lease_lost", message, extras);
  }
}

/** The checkpoint already holds another value. */
export class CheckpointConflictError extends DrayhorseError {
  constructor(message: string, extras?: ErrorExtras) {
    super("checkpoint_conflict", message, extras);
  }
}

/** This contract version is already published with another content. */
export class ContractConflictError extends DrayhorseError {
  constructor(message: string, extras?: ErrorExtras) {
    super("contract_conflict", message, extras);
  }
}

/** A value does not match the contract's schema. */
export class ContractViolationError extends DrayhorseError {
  constructor(message: string, extras?: ErrorExtras) {
    super("contract_violation", message, extras);
  }
}

/** The job had not ended when the waiting time was over; the job is untouched. */
export class WaitTimeoutError extends DrayhorseError {
  constructor(message: string, extras?: ErrorExtras) {
    super("wait_timeout", message, extras);
  }
}

/** The database cancelled the statement: it took longer than it may. */
export class StatementTimeoutError extends DrayhorseError {
  constructor(message: string, extras?: ErrorExtras) {
    super("statement_timeout", message, extras);
  }
}

/** The database cannot be reached, or the connection broke. */
export class ConnectionLostError extends DrayhorseError {
  constructor(message: string, extras?: ErrorExtras) {
    super("connection_lost", message, extras);
  }
}

/** The server is read-only, a replica for example. */
export class ReadOnlyError extends DrayhorseError {
  constructor(message: string, extras?: ErrorExtras) {
    super("read_only", message, extras);
  }
}

/** The database role lacks a right this call needs. */
export class PermissionDeniedError extends DrayhorseError {
  constructor(message: string, extras?: ErrorExtras) {
    super("permission_denied", message, extras);
  }
}

/** The schema has not been migrated yet. */
export class SchemaMissingError extends DrayhorseError {
  constructor(message: string, extras?: ErrorExtras) {
    super("schema_missing", message, extras);
  }
}

/** The schema is older than this library needs: migrate it. */
export class SchemaTooOldError extends DrayhorseError {
  constructor(message: string, extras?: ErrorExtras) {
    super("schema_too_old", message, extras);
  }
}

/** The schema is newer than this library knows: update the library. */
export class SchemaTooNewError extends DrayhorseError {
  constructor(message: string, extras?: ErrorExtras) {
    super("schema_too_new", message, extras);
  }
}

/** The handle was closed. */
export class ClosedError extends DrayhorseError {
  constructor(message: string, extras?: ErrorExtras) {
    super("closed", message, extras);
  }
}

/** The handle was made by the parent process; connect again after the fork. */
export class UsedAfterForkError extends DrayhorseError {
  constructor(message: string, extras?: ErrorExtras) {
    super("used_after_fork", message, extras);
  }
}

/** The private PostgreSQL server could not be started. */
export class EmbeddedFailedError extends DrayhorseError {
  constructor(message: string, extras?: ErrorExtras) {
    super("embedded_failed", message, extras);
  }
}

/** A fault of Drayhorse itself: please report it. */
export class InternalError extends DrayhorseError {
  constructor(message: string, extras?: ErrorExtras) {
    super("internal", message, extras);
  }
}

/** The class of each code. */
export const errorClasses: Readonly<
  Record<ErrorCode, new (message: string, extras?: ErrorExtras) => DrayhorseError>
> = {
  invalid_argument: InvalidArgumentError,
  payload_invalid: PayloadInvalidError,
  payload_too_large: PayloadTooLargeError,
  policy_invalid: PolicyInvalidError,
  idempotency_conflict: IdempotencyConflictError,
  not_found: NotFoundError,
  wrong_state: WrongStateError,
  lease_lost: LeaseLostError,
  checkpoint_conflict: CheckpointConflictError,
  contract_conflict: ContractConflictError,
  contract_violation: ContractViolationError,
  wait_timeout: WaitTimeoutError,
  statement_timeout: StatementTimeoutError,
  connection_lost: ConnectionLostError,
  read_only: ReadOnlyError,
  permission_denied: PermissionDeniedError,
  schema_missing: SchemaMissingError,
  schema_too_old: SchemaTooOldError,
  schema_too_new: SchemaTooNewError,
  closed: ClosedError,
  used_after_fork: UsedAfterForkError,
  embedded_failed: EmbeddedFailedError,
  internal: InternalError,
};

/** The typed error behind the core's JSON form of one. */
export function errorFrom(text: string): DrayhorseError {
  const { code, message, details } = JSON.parse(text) as {
    code: ErrorCode;
    message: string;
    details?: Record<string, unknown>;
  };
  const Class = errorClasses[code] ?? InternalError;
  return new Class(message, details ? { details } : {});
}

/** The typed error behind a SQLSTATE of class YD, as a driver shows it; `undefined` for any other state. */
export function errorFromState(
  state: unknown,
  message: unknown,
  detail: unknown,
  cause: unknown,
): DrayhorseError | undefined {
  if (typeof state !== "string" || !/^YD\d{3}$/.test(state)) return undefined;
  const row = [...table().values()].find(({ number }) => number === Number(state.slice(2)));
  if (!row) return undefined;
  return new errorClasses[row.code](String(message), { details: detailsOf(detail), cause });
}

/** DETAIL is JSON; a text that is none is somebody else's and says nothing. */
function detailsOf(detail: unknown): Record<string, unknown> {
  try {
    const { code: _, ...details } = JSON.parse(String(detail));
    return details;
  } catch {
    return {};
  }
}

/** Runs a synchronous native call; what it throws carries the core's JSON in its message. */
export function guarded<T>(call: () => T): T {
  try {
    return call();
  } catch (thrown) {
    const message = thrown instanceof Error ? thrown.message : String(thrown);
    if (message.startsWith('{"code":')) throw errorFrom(message);
    throw new InternalError(`the native library refused a call: ${message}`, { cause: thrown });
  }
}
