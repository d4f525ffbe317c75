/** The package's surface; `index.mts` offers the same to `import`. */

export type { Contracts } from "./contracts.js";
export { NonRetryableError, RetryableError } from "./decisions.js";
export { Enqueued } from "./enqueued.js";
export type { ErrorCode, ErrorExtras } from "./errors.js";
export {
  CheckpointConflictError,
  ClosedError,
  ConnectionLostError,
  ContractConflictError,
  ContractViolationError,
  DrayhorseError,
  EmbeddedFailedError,
  errorClasses,
  IdempotencyConflictError,
  InternalError,
  InvalidArgumentError,
  LeaseLostError,
  NotFoundError,
  PayloadInvalidError,
  PayloadTooLargeError,
  PermissionDeniedError,
  PolicyInvalidError,
  ReadOnlyError,
  SchemaMissingError,
  SchemaTooNewError,
  SchemaTooOldError,
  StatementTimeoutError,
  UsedAfterForkError,
  WaitTimeoutError,
  WrongStateError,
} from "./errors.js";
export type { Endpoints, Queues } from "./gates.js";
export { decisionFromResponse, httpDecision } from "./http.js";
export { JobAbortError } from "./job.js";
export { Queue } from "./queue.js";
export { Run } from "./run.js";
export type * from "./types.js";
export { Worker } from "./worker.js";
