"""The errors of Drayhorse: one class for each row of the core's table.

Every failure of the package is a `DrayhorseError` with `code`, `retryable` and `details`; catch the base class or the
one that matters. A test compares the classes with the table the native module carries.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

__all__ = [
    "CheckpointConflictError",
    "ClosedError",
    "ConnectionLostError",
    "ContractConflictError",
    "ContractViolationError",
    "DrayhorseError",
    "EmbeddedFailedError",
    "IdempotencyConflictError",
    "InternalError",
    "InvalidArgumentError",
    "LeaseLostError",
    "NotFoundError",
    "PayloadInvalidError",
    "PayloadTooLargeError",
    "PermissionDeniedError",
    "PolicyInvalidError",
    "ReadOnlyError",
    "SchemaMissingError",
    "SchemaTooNewError",
    "SchemaTooOldError",
    "StatementTimeoutError",
    "UsedAfterForkError",
    "WaitTimeoutError",
    "WrongStateError",
]


class DrayhorseError(Exception):
    """A failure with its `code`, whether the same call may succeed later (`retryable`), and `details`.

    `details` holds what a program can use: `field`, `path`, `limit`, `conflictingFields`, `existingId`, for example.
    """

    code: str = "internal"
    retryable: bool = False

    message: str
    details: Mapping[str, object]

    def __init__(self, message: str, details: Mapping[str, object] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.details = dict(details or {})

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.message, self.details), {"code": self.code, "retryable": self.retryable}


class InvalidArgumentError(DrayhorseError):
    """An argument is missing, unknown, of another type or outside its bounds."""

    code = "invalid_argument"


class PayloadInvalidError(DrayhorseError):
    """A value cannot be kept as JSON: U+0000, a lone surrogate, NaN, an infinity, another type, nesting over 100."""

    code = "payload_invalid"


class PayloadTooLargeError(DrayhorseError):
    """A JSON value is larger than the database's limit."""

    code = "payload_too_large"


class PolicyInvalidError(DrayhorseError):
    """A retry policy has an unknown shape, key or bound."""

    code = "policy_invalid"


class IdempotencyConflictError(DrayhorseError):
    """The idempotency key already names another enqueue: see `conflictingFields` and `existingId`."""

    code = "idempotency_conflict"


class NotFoundError(DrayhorseError):
    """There is no such job, run, endpoint or queue."""

    code = "not_found"


class WrongStateError(DrayhorseError):
    """The job or run is not in a state that allows this."""

    code = "wrong_state"


class LeaseLostError(DrayhorseError):
    """The claim is no longer current, or the attempt was settled."""

    code = "lease_lost"


class CheckpointConflictError(DrayhorseError):
    """The checkpoint already holds another value."""

    code = "checkpoint_conflict"


class ContractConflictError(DrayhorseError):
    """This contract version is already published with another content."""

    code = "contract_conflict"


class ContractViolationError(DrayhorseError):
    """A value does not match the contract's schema."""

    code = "contract_violation"


class WaitTimeoutError(DrayhorseError):
    """The job had not ended when the waiting time was over; the job is untouched."""

    code = "wait_timeout"
    retryable = True


class StatementTimeoutError(DrayhorseError):
    """The database cancelled the statement: it took longer than it may."""

    code = "statement_timeout"
    retryable = True


class ConnectionLostError(DrayhorseError):
    """The database cannot be reached, or the connection broke."""

    code = "connection_lost"
    retryable = True


class ReadOnlyError(DrayhorseError):
    """The server is read-only, a replica for example."""

    code = "read_only"
    retryable = True


class PermissionDeniedError(DrayhorseError):
    """The database role lacks a right this call needs."""

    code = "permission_denied"


class SchemaMissingError(DrayhorseError):
    """The schema has not been migrated yet: call `migrate`."""

    code = "schema_missing"


class SchemaTooOldError(DrayhorseError):
    """The schema is older than this library needs: migrate it."""

    code = "schema_too_old"


class SchemaTooNewError(DrayhorseError):
    """The schema is newer than this library knows: update the library."""

    code = "schema_too_new"


class ClosedError(DrayhorseError):
    """The handle was closed."""

    code = "closed"


class UsedAfterForkError(DrayhorseError):
    """The handle was made by the parent process; connect again after the fork."""

    code = "used_after_fork"


class EmbeddedFailedError(DrayhorseError):
    """The private PostgreSQL server could not be started."""

    code = "embedded_failed"


class InternalError(DrayhorseError):
    """A fault of Drayhorse itself: please report it."""

    code = "internal"


BY_CODE: Mapping[str, type[DrayhorseError]] = {kind.code: kind for kind in DrayhorseError.__subclasses__()}


def make_error(code: str, message: str, details: Mapping[str, object] | None = None) -> DrayhorseError:
    """The error of this code; a code that this version does not know keeps its name in the base class."""
    kind = BY_CODE.get(code)
    if kind is not None:
        return kind(message, details)
    error = DrayhorseError(message, details)
    error.code = code
    return error


def from_json(text: str) -> DrayhorseError:
    """The error that the core sent as `{"code","message","retryable","details"}`."""
    sent = json.loads(text)
    error = make_error(sent["code"], sent["message"], sent.get("details"))
    error.retryable = bool(sent["retryable"])
    return error
