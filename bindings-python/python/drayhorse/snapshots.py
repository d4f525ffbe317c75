"""A job as `get`, `list`, `timeline` and `wait` show it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from ._record import TIME, TUPLE, record, records, time

__all__ = ["Counts", "JobError", "JobPage", "JobSnapshot", "Outcome", "TimelineEvent", "Waiting"]


@dataclass(frozen=True, slots=True)
class JobError:
    """A stored error. `attempt`, `cause` (`error`, `timeout`, `lease`, ...) and `at`: where it belongs, if known."""

    name: str
    message: str = ""
    stack: str | None = None
    causes: tuple[JobError, ...] = field(default=(), metadata={"convert": lambda sent: tuple(map(job_error, sent))})
    attempt: int | None = None
    cause: str | None = None
    at: datetime | None = field(default=None, metadata=TIME)


def job_error(sent: Any) -> JobError:
    """The error of its JSON."""
    return record(JobError, sent)


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
    tags: tuple[str, ...] = field(default=(), metadata=TUPLE)
    has_payload: bool = False
    payload: Any = None
    result: Any = None
    idempotency_key: str = ""
    enqueued_at: datetime | None = field(default=None, metadata=TIME)
    run_at: datetime | None = field(default=None, metadata=TIME)
    next_run_at: datetime | None = field(default=None, metadata=TIME)
    deadline: datetime | None = field(default=None, metadata=TIME)
    timeout_ms: int | None = None
    claimed_at: datetime | None = field(default=None, metadata=TIME)
    lease_until: datetime | None = field(default=None, metadata=TIME)
    finished_at: datetime | None = field(default=None, metadata=TIME)
    worker: str | None = None
    cancel_requested: bool = False
    reason: str | None = None
    detail: Mapping[str, Any] | None = None
    uncertain: bool = False
    synthetic: bool = False
    source_id: str | None = None
    redriven_to: tuple[str, ...] = field(default=(), metadata=TUPLE)
    run_id: str | None = None
    after_id: str | None = None
    last_error: JobError | None = field(default=None, metadata={"convert": job_error})
    progress: Any = None
    waiting: tuple[Waiting, ...] = field(default=(), metadata={"convert": _waiting})


@dataclass(frozen=True, slots=True)
class JobPage:
    """One page of `list`. `next`: the cursor of the page after it, `None` on the last."""

    jobs: tuple[JobSnapshot, ...] = field(metadata={"convert": lambda sent: tuple(records(JobSnapshot)(sent))})
    next: str | None = None


@dataclass(frozen=True, slots=True)
class TimelineEvent:
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
    def error(self) -> JobError | None:
        """The error that it tells of, if any."""
        sent = self.data.get("error")
        return None if sent is None else job_error(sent)

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


def timeline(sent: Any) -> list[TimelineEvent]:
    """The entries of a JSON timeline."""
    common = ("kind", "at", "attempt")
    return [
        TimelineEvent(
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
    finished_at: datetime | None = field(default=None, metadata=TIME)
    error: JobError | None = field(default=None, metadata={"convert": job_error})
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
