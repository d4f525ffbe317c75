"""What callers may say: the option classes of `Queue` and `Worker`, and how they become JSON for the core.

`None` always means *absent*: the default holds. The core and the database check the values; here only what has no
JSON form is refused, with the name of the option.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, final

from ._json import encode
from ._names import camel
from .errors import InvalidArgumentError, PolicyInvalidError
from .gates import CircuitSettings, RateLimit, Remove

if TYPE_CHECKING:
    from ._decision import ErrorDecision
    from ._job import AsyncJob, Job

__all__ = [
    "MISSING",
    "After",
    "EnqueueOptions",
    "FailOptions",
    "IdempotencyKey",
    "JobFilter",
    "Missing",
    "NewJob",
    "TlsOptions",
    "WorkerOptions",
]


@final
class Missing:
    """The type of `MISSING`: no payload at all, which is not the payload `None`."""

    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final = Missing()


@dataclass(frozen=True, slots=True)
class IdempotencyKey:
    """Names one enqueue for `ttl_ms` (24 hours by default), whatever becomes of the job."""

    key: str
    ttl_ms: int | None = None


@dataclass(frozen=True, slots=True)
class After:
    """Which job to wait for, and on which of its ends to run: `succeeded` or `failed`. At another end it is skipped."""

    job_id: str
    on: Literal["succeeded", "failed"] = "succeeded"


@dataclass(frozen=True, slots=True, kw_only=True)
class EnqueueOptions:
    """How one job is enqueued.

    `queue`: `default` by default. `version`: of the handler, `"1"` by default. `priority`: -100 to 100.
    `run_at` (an aware datetime) or `delay_ms`: not before. `deadline` or `deadline_ms`: must not start at or after it.
    `timeout_ms`: limit of one attempt. `max_attempts`: 1 to 100, the first execution included; 25 by default.
    `retry_policy`: plain data with camelCase keys, `{"type": "fixed", "delayMs": 1000}` for example.
    `tags`: up to 20. `idempotency_key`: a text, or with its own time to live an `IdempotencyKey`.
    `endpoint`: the destination the job talks to. `after`: the job it waits for. `run_id`: the run it belongs to.
    `synthetic`: a test of the endpoint, one attempt whatever the policy says.
    """

    queue: str | None = None
    version: str | None = None
    priority: int | None = None
    run_at: datetime | None = None
    delay_ms: int | None = None
    deadline: datetime | None = None
    deadline_ms: int | None = None
    timeout_ms: int | None = None
    max_attempts: int | None = None
    retry_policy: Mapping[str, object] | None = None
    tags: Sequence[str] | None = None
    idempotency_key: str | IdempotencyKey | None = None
    endpoint: str | None = None
    after: After | Mapping[str, object] | None = None
    synthetic: bool | None = None
    run_id: str | None = None


@dataclass(frozen=True, slots=True)
class NewJob:
    """One job of `enqueue_many`."""

    type: str
    payload: object = MISSING
    options: EnqueueOptions | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FailOptions:
    """How a failure of a claim is reported. `delay_ms`: absent defers to the job's policy, 0 is now."""

    delay_ms: int | None = None
    retryable: bool | None = None
    retry_after_ms: float | None = None
    uncertain: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFilter:
    """Which jobs: every field that is set must match. `tag`: one of the job's tags."""

    queue: str | None = None
    type: str | None = None
    version: str | None = None
    state: str | None = None
    endpoint: str | None = None
    tag: str | None = None
    uncertain: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsOptions:
    """`mode`: as libpq's `sslmode`. `ca_file`: the certificates to trust."""

    mode: str | None = None
    ca_file: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerOptions:
    """How a worker runs.

    `queues`: `["default"]` by default. `concurrency`: handlers at once, 10. `lease_ms`: 30,000. `grace_ms`: how long a
    drain waits for running handlers, 25,000. `poll_ms`: the rhythm of looking for work. `name`: host and pid.
    `prefetch`: jobs claimed beyond the free slots, 0.
    `retry_delay_ms`: the delay before the next attempt, a number or a function of (attempt that failed, job); no value
    defers to the job's policy.
    `classify_error`: for errors that no handler's own classifier decided.
    `on_error`: told what no handler can be told; logs to the logger `drayhorse` by default. A handler's own failure is
    none of that: it is recorded with the job, and logged at the level DEBUG.
    `handle_signals`: drain at SIGTERM and SIGINT while `run` is called on the main thread; true by default.
    """

    queues: Sequence[str] | None = None
    concurrency: int | None = None
    lease_ms: int | None = None
    grace_ms: int | None = None
    poll_ms: int | None = None
    name: str | None = None
    prefetch: int | None = None
    retry_delay_ms: float | Callable[[int, Job | AsyncJob], float | None] | None = None
    classify_error: Callable[[BaseException, Job | AsyncJob], ErrorDecision | Mapping[str, object] | None] | None = None
    on_error: Callable[[BaseException, Job | AsyncJob | None], object] | None = None
    handle_signals: bool = True


Nested: TypeAlias = IdempotencyKey | TlsOptions | JobFilter | After | RateLimit | CircuitSettings
Options: TypeAlias = EnqueueOptions | FailOptions | WorkerOptions | Nested

# What of WorkerOptions the core has no use for: it stays on this side.
LOCAL_OPTIONS = frozenset({"retry_delay_ms", "classify_error", "on_error", "handle_signals"})


def rfc3339(value: datetime, field: str) -> str:
    """The time in UTC as the core reads it; a time without a zone is nobody's time and refused."""
    if value.tzinfo is None or value.utcoffset() is None:
        raise InvalidArgumentError(
            f"{field} must be an aware datetime, such as datetime.now(timezone.utc)", {"field": field}
        )
    return value.astimezone(timezone.utc).isoformat(timespec="microseconds").replace("+00:00", "Z")


def argument(value: object, field: str) -> str:
    """The JSON text of an argument that is no payload."""
    if isinstance(value, datetime):
        return encode(rfc3339(value, field))
    if isinstance(value, Remove):
        return "null"
    if isinstance(value, Nested):
        return encode_options(value, f"{field}.")
    if field.rpartition(".")[2] == "retryPolicy":
        return encode(dict(value) if isinstance(value, Mapping) else value, field, PolicyInvalidError)
    if isinstance(value, Mapping):
        value = dict(value)
    elif isinstance(value, Sequence) and not isinstance(value, str | bytes):
        value = list(value)
    return encode(value, field, _refuse_argument)


def encode_object(given: Mapping[str, object], path: str = "") -> str:
    """The JSON object of all arguments that are not `None`, their names made camelCase."""
    parts = []
    for name, value in given.items():
        if value is not None:
            key = camel(name)
            parts.append(f'"{key}":{argument(value, path + key)}')
    return "{" + ",".join(parts) + "}"


def encode_options(options: Options, path: str = "") -> str:
    """The JSON object of the options that are set."""
    return encode_object({field.name: getattr(options, field.name) for field in fields(options)}, path)


def encode_enqueue_options(options: EnqueueOptions, path: str = "") -> str:
    """The same, with an idempotency key that is a bare text in its full form."""
    given: dict[str, Any] = {field.name: getattr(options, field.name) for field in fields(options)}
    if isinstance(given["idempotency_key"], str):
        given["idempotency_key"] = IdempotencyKey(given["idempotency_key"])
    return encode_object(given, path)


def _refuse_argument(message: str, details: dict[str, object]) -> InvalidArgumentError:
    return InvalidArgumentError(message, {"field": details["path"]})
