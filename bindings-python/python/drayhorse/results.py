"""What the queue answers: frozen records with snake_case names and aware datetimes.

JSON data inside them (payloads, results, policies, the details of an event) is left as it is, camelCase keys included.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any, NamedTuple, TypeVar

from ._names import camel

__all__ = [
    "Claim",
    "Counts",
    "Enqueued",
    "ErrorInfo",
    "HandlerKey",
    "Health",
    "JobPage",
    "JobSnapshot",
    "Migrated",
    "Outcome",
    "PolicyPreview",
    "Pruned",
    "RedrivePreview",
    "Redriven",
    "SchemaVersion",
    "Settled",
    "Statement",
    "StuckHandler",
    "TimelineEntry",
    "Waiting",
    "WorkerInfo",
]

T = TypeVar("T")


def record(kind: type[T], sent: Mapping[str, Any]) -> T:
    """The record `kind` of a JSON object. Keys that this version does not know are left out."""
    known: dict[str, Any] = {}
    for part in fields(kind):  # type: ignore[arg-type]
        key = camel(part.name)
        if key in sent:
            value = sent[key]
            convert: Callable[[Any], object] | None = part.metadata.get("convert")
            known[part.name] = value if value is None or convert is None else convert(value)
    return kind(**known)


def records(kind: type[T]) -> Callable[[Any], list[T]]:
    """A reader of a JSON array of such objects."""
    return lambda sent: [record(kind, item) for item in sent]


def time(text: str) -> datetime:
    """The aware datetime of an RFC 3339 text."""
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


_TIME = {"convert": time}
_TUPLE = {"convert": tuple}


class Enqueued(str):
    """The id of an enqueued job, usable wherever an id is. `replayed`: the idempotency key named an earlier job."""

    __slots__ = ("replayed",)

    replayed: bool

    def __new__(cls, id: str, replayed: bool = False) -> Enqueued:
        made = super().__new__(cls, id)
        made.replayed = replayed
        return made

    @property
    def id(self) -> str:
        """The id as a plain string."""
        return str.__str__(self)

    def __repr__(self) -> str:
        return f"Enqueued(id={self.id!r}, replayed={self.replayed})"

    def __getnewargs__(self) -> tuple[str, bool]:  # type: ignore[override]
        return self.id, self.replayed


class HandlerKey(NamedTuple):
    """What a handler is for: exactly this type and version."""

    type: str
    version: str = "1"


def _handlers(sent: Any) -> tuple[HandlerKey, ...]:
    return tuple(HandlerKey(item["type"], item["version"]) for item in sent)


@dataclass(frozen=True, slots=True)
class ErrorInfo:
    """A stored error. `attempt`, `cause` (`error`, `timeout`, `lease`, ...) and `at`: where it belongs, if known."""

    name: str
    message: str = ""
    stack: str | None = None
    causes: tuple[Mapping[str, Any], ...] = field(default=(), metadata=_TUPLE)
    attempt: int | None = None
    cause: str | None = None
    at: datetime | None = field(default=None, metadata=_TIME)


def _error(sent: Any) -> ErrorInfo:
    return record(ErrorInfo, sent)


@dataclass(frozen=True, slots=True)
class Waiting:
    """One reason why a job is not running, and what helps. `data` holds the figures of this `kind`."""

    kind: str
    message: str
    action: str
    data: Mapping[str, Any]


def _waiting(sent: Any) -> tuple[Waiting, ...]:
    common = ("kind", "message", "action")
    return tuple(
        Waiting(
            item["kind"],
            item.get("message", ""),
            item.get("action", ""),
            {key: value for key, value in item.items() if key not in common},
        )
        for item in sent
    )


@dataclass(frozen=True, slots=True)
class JobSnapshot:
    """A job as it is at one moment.

    `attempt`: started and not released, 0 before the first. `waiting`: why it is not running. `uncertain`: an attempt
    that did not succeed may have had its effect. `payload` and `result` are loaded by `get`, by `list` only if asked.
    """

    id: str
    queue: str
    type: str
    version: str
    state: str
    attempt: int
    max_attempts: int
    priority: int = 0
    endpoint: str | None = None
    retry_policy: Mapping[str, Any] | None = None
    tags: tuple[str, ...] = field(default=(), metadata=_TUPLE)
    has_payload: bool = False
    payload: Any = None
    result: Any = None
    idempotency_key: str = ""
    enqueued_at: datetime | None = field(default=None, metadata=_TIME)
    run_at: datetime | None = field(default=None, metadata=_TIME)
    next_run_at: datetime | None = field(default=None, metadata=_TIME)
    deadline: datetime | None = field(default=None, metadata=_TIME)
    timeout_ms: int | None = None
    claimed_at: datetime | None = field(default=None, metadata=_TIME)
    lease_until: datetime | None = field(default=None, metadata=_TIME)
    finished_at: datetime | None = field(default=None, metadata=_TIME)
    worker: str | None = None
    cancel_requested: bool = False
    reason: str | None = None
    detail: Mapping[str, Any] | None = None
    uncertain: bool = False
    synthetic: bool = False
    source_id: str | None = None
    redriven_to: tuple[str, ...] = field(default=(), metadata=_TUPLE)
    run_id: str | None = None
    after_id: str | None = None
    last_error: ErrorInfo | None = field(default=None, metadata={"convert": _error})
    progress: Any = None
    waiting: tuple[Waiting, ...] = field(default=(), metadata={"convert": _waiting})


@dataclass(frozen=True, slots=True)
class JobPage:
    """One page of `list`. `next`: the cursor of the page after it, `None` on the last."""

    jobs: tuple[JobSnapshot, ...] = field(metadata={"convert": lambda sent: tuple(records(JobSnapshot)(sent))})
    next: str | None = None


@dataclass(frozen=True, slots=True)
class TimelineEntry:
    """One thing that happened to a job. `data` holds what belongs to this `kind`, with camelCase keys."""

    kind: str
    at: datetime
    attempt: int | None
    data: Mapping[str, Any]

    @property
    def delay_ms(self) -> int | None:
        """The wait before the next attempt, where one was selected."""
        value: int | None = self.data.get("delayMs")
        return value

    @property
    def source(self) -> str | None:
        """Who selected the delay: `override`, `policy:fixed`, `legacy:error` and so on."""
        value: str | None = self.data.get("source")
        return value

    @property
    def next_attempt(self) -> int | None:
        """The number of the attempt that follows, where one does."""
        value: int | None = self.data.get("nextAttempt")
        return value

    @property
    def run_at(self) -> datetime | None:
        """When the next attempt is due, where one is."""
        value: str | None = self.data.get("runAt")
        return None if value is None else time(value)


def timeline(sent: Any) -> list[TimelineEntry]:
    """The entries of a JSON timeline."""
    common = ("kind", "at", "attempt")
    return [
        TimelineEntry(
            item["kind"],
            time(item["at"]),
            item.get("attempt"),
            {key: value for key, value in item.items() if key not in common},
        )
        for item in sent
    ]


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a job ended. `started`: whether any attempt had begun."""

    id: str
    state: str
    attempt: int = 0
    reason: str | None = None
    uncertain: bool = False
    started: bool = True
    finished_at: datetime | None = field(default=None, metadata=_TIME)
    error: ErrorInfo | None = field(default=None, metadata={"convert": _error})
    result: Any = None


@dataclass(frozen=True, slots=True)
class Counts:
    """How many jobs are in each state."""

    blocked: int = 0
    scheduled: int = 0
    ready: int = 0
    active: int = 0
    succeeded: int = 0
    failed: int = 0
    canceled: int = 0
    skipped: int = 0


@dataclass(frozen=True, slots=True)
class Claim:
    """A claimed job. `fence` names this claim and no other; reports are made under it."""

    id: str
    fence: str
    queue: str
    type: str
    version: str
    attempt: int
    max_attempts: int
    priority: int = 0
    endpoint: str | None = None
    has_payload: bool = False
    payload: Any = None
    tags: tuple[str, ...] = field(default=(), metadata=_TUPLE)
    deadline: datetime | None = field(default=None, metadata=_TIME)
    timeout_ms: int | None = None
    lease_until: datetime | None = field(default=None, metadata=_TIME)
    idempotency_key: str = ""
    run_id: str | None = None
    synthetic: bool = False


@dataclass(frozen=True, slots=True)
class Settled:
    """What a report led to. After a failure that is retried: the delay, who chose it, and when the job is due."""

    state: str
    reason: str | None = None
    delay_ms: int | None = None
    source: str | None = None
    next_run_at: datetime | None = field(default=None, metadata=_TIME)


@dataclass(frozen=True, slots=True)
class Redriven:
    """A new job and the failed one it was made from."""

    id: str
    source_id: str


@dataclass(frozen=True, slots=True)
class RedrivePreview:
    """What a redrive by filter would make, and what it risks."""

    count: int
    with_endpoint: int
    uncertain: int


@dataclass(frozen=True, slots=True)
class PolicyPreview:
    """A policy in its normalized form, and the delays SQL will choose after attempt 1, 2, ..."""

    policy: Mapping[str, Any]
    delays_ms: tuple[int, ...] = field(default=(), metadata=_TUPLE)


@dataclass(frozen=True, slots=True)
class Statement:
    """An enqueue for the caller's own connection: run `sql` with the one text in `params`."""

    sql: str
    params: tuple[str, ...] = field(default=(), metadata=_TUPLE)
    ids: tuple[str, ...] = field(default=(), metadata=_TUPLE)


@dataclass(frozen=True, slots=True)
class Migrated:
    """The version a schema is at now, and the versions applied by this call."""

    version: int
    applied: tuple[int, ...] = field(default=(), metadata=_TUPLE)


@dataclass(frozen=True, slots=True)
class SchemaVersion:
    """The version of the schema (`None`: there is no schema) and the one this library needs."""

    version: int | None
    expected: int


@dataclass(frozen=True, slots=True)
class Pruned:
    """How many ended jobs were removed."""

    jobs: int


@dataclass(frozen=True, slots=True)
class WorkerInfo:
    """A worker that was alive within the last minute."""

    id: int
    name: str
    host: str
    pid: int
    language: str
    queues: tuple[str, ...] = field(default=(), metadata=_TUPLE)
    handlers: tuple[HandlerKey, ...] = field(default=(), metadata={"convert": _handlers})
    slots: int = 0
    running: int = 0
    started_at: datetime | None = field(default=None, metadata=_TIME)
    seen_at: datetime | None = field(default=None, metadata=_TIME)


@dataclass(frozen=True, slots=True)
class StuckHandler:
    """A handler that goes on although it was asked to stop, for `reason` and `since_ms` ago."""

    job_id: str
    handle: int = 0
    reason: str = ""
    since_ms: int = 0


@dataclass(frozen=True, slots=True)
class Health:
    """How a worker is, for probes. `alive`: `run` is under way. `connected`: some connection works."""

    alive: bool
    phase: str
    connected: bool = False
    listening: bool = False
    slots: int = 0
    running: int = 0
    stuck: tuple[StuckHandler, ...] = field(
        default=(), metadata={"convert": lambda sent: tuple(records(StuckHandler)(sent))}
    )
    last_claim_ms_ago: int | None = None
