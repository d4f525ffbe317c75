/**
 * The surface for `import`. It re-exports the CommonJS build, so that a process has one instance of every class
 * and `instanceof` holds however a module was loaded.
 */

export type * from "./index.js";
export {
  CheckpointConflictError,
  ClosedError,
  ConnectionLostError,
  ContractConflictError,
  ContractViolationError,
  DrayhorseError,
  decisionFromResponse,
  EmbeddedFailedError,
  Enqueued,
  errorClasses,
  httpDecision,
  IdempotencyConflictError,
  InternalError,
  InvalidArgumentError,
  JobAbortError,
  LeaseLostError,
  NonRetryableError,
  NotFoundError,
  PayloadInvalidError,
  PayloadTooLargeError,
  PermissionDeniedError,
  PolicyInvalidError,
  Queue,
  ReadOnlyError,
  RetryableError,
  Run,
  SchemaMissingError,
  SchemaTooNewError,
  SchemaTooOldError,
  StatementTimeoutError,
  UsedAfterForkError,
  WaitTimeoutError,
  Worker,
  WrongStateError,
} from "./index.js";
