"""What the verbs of a queue and a worker answer, jobs apart (`snapshots`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from ._record import TIME, TUPLE, record, records

__all__ = [
    "Claim",
    "Enqueued",
    "HandlerKey",
    "Health",
    "Migrated",
    "PolicyPreview",
    "Pruned",
    "RedrivePreview",
    "Redriven",
    "ReplayPreview",
    "ReplayRisks",
    "ReplayedJob",
    "RunSnapshot",
    "SchemaVersion",
    "Settled",
    "Statement",
    "StuckHandler",
    "WorkerInfo",
]


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
    tags: tuple[str, ...] = field(default=(), metadata=TUPLE)
    deadline: datetime | None = field(default=None, metadata=TIME)
    timeout_ms: int | None = None
    lease_until: datetime | None = field(default=None, metadata=TIME)
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
    next_run_at: datetime | None = field(default=None, metadata=TIME)


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
class ReplayRisks:
    """What speaks against running a job again.

    `started`: a handler ran. `uncertain`: its effect may have happened. `acknowledgement_needed`: `replay` and
    `redrive` want `acknowledge_duplicate_risk`. `repeated_before`: jobs already made from this one.
    `circuit`: the state of its endpoint's.
    """

    started: bool = False
    uncertain: bool = False
    acknowledgement_needed: bool = False
    checkpoints: tuple[str, ...] = field(default=(), metadata=TUPLE)
    repeated_before: tuple[str, ...] = field(default=(), metadata=TUPLE)
    circuit: str | None = None


@dataclass(frozen=True, slots=True)
class ReplayedJob:
    """The job that a replay would make. `idempotency_key`: what its handler passes to the destination."""

    type: str
    version: str
    queue: str
    max_attempts: int
    has_payload: bool
    idempotency_key: str
    endpoint: str | None = None


@dataclass(frozen=True, slots=True)
class ReplayPreview:
    """What a replay of a job would run, and its risks."""

    id: str
    state: str
    replayable: bool
    would_run: ReplayedJob = field(metadata={"convert": lambda sent: record(ReplayedJob, sent)})
    risks: ReplayRisks = field(metadata={"convert": lambda sent: record(ReplayRisks, sent)})
    payload: Any = None


@dataclass(frozen=True, slots=True)
class RunSnapshot:
    """A run: `running` until it is finished and its jobs have ended, then `succeeded`, `failed` or `canceled`.

    `jobs`: how many are in each state. `job_ids`: the first 1,000.
    """

    id: str
    name: str
    state: str
    started_at: datetime | None = field(default=None, metadata=TIME)
    finished_at: datetime | None = field(default=None, metadata=TIME)
    jobs: Mapping[str, int] = field(default_factory=dict)
    job_ids: tuple[str, ...] = field(default=(), metadata=TUPLE)


@dataclass(frozen=True, slots=True)
class PolicyPreview:
    """A policy in its normalized form, and the delays SQL will choose after attempt 1, 2, ..."""

    policy: Mapping[str, Any]
    delays_ms: tuple[int, ...] = field(default=(), metadata=TUPLE)


@dataclass(frozen=True, slots=True)
class Statement:
    """An enqueue for the caller's own connection: run `sql` with the one text in `params`."""

    sql: str
    params: tuple[str, ...] = field(default=(), metadata=TUPLE)
    ids: tuple[str, ...] = field(default=(), metadata=TUPLE)


@dataclass(frozen=True, slots=True)
class Migrated:
    """The version a schema is at now, and the versions applied by this call."""

    version: int
    applied: tuple[int, ...] = field(default=(), metadata=TUPLE)


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
    queues: tuple[str, ...] = field(default=(), metadata=TUPLE)
    handlers: tuple[HandlerKey, ...] = field(default=(), metadata={"convert": _handlers})
    slots: int = 0
    running: int = 0
    started_at: datetime | None = field(default=None, metadata=TIME)
    seen_at: datetime | None = field(default=None, metadata=TIME)


@dataclass(frozen=True, slots=True)
class StuckHandler:
    """A handler that goes on although it was asked to stop, for `reason` and `since_ms` ago."""

    job_id: str
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
