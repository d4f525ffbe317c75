"""Endpoints and queues as operators set and see them: rates, concurrency, pauses, circuits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, final

from ._record import TIME, record, time
from .snapshots import JobError, job_error

__all__ = [
    "REMOVE",
    "CircuitSettings",
    "CircuitSnapshot",
    "EndpointSnapshot",
    "GateEvent",
    "Pause",
    "QueueSnapshot",
    "RateLimit",
    "Remove",
]


@final
class Remove:
    """The type of `REMOVE`: takes a setting away, where `None` leaves it as it is."""

    def __repr__(self) -> str:
        return "REMOVE"


REMOVE: Final = Remove()


@dataclass(frozen=True, slots=True)
class RateLimit:
    """At most `limit` claims each `interval_ms`, of which `burst` (`limit` by default) may come at once."""

    limit: int
    interval_ms: int
    burst: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CircuitSettings:
    """When a circuit opens and how long it cools down; what is `None` stays as it is."""

    failure_threshold: int | None = None
    cooldown_ms: int | None = None
    probe_timeout_ms: int | None = None


@dataclass(frozen=True, slots=True)
class CircuitSnapshot:
    """The circuit of an endpoint. `state`: `closed`, `open` or `half_open`; `forced`: `open` or `closed`, by hand.

    `probe_at`: from when on a probe may be claimed. `probe_job`: the probe that is out, due back by `overdue_at`.
    """

    state: str
    forced: str | None = None
    failures: int = 0
    generation: int = 0
    since: datetime | None = field(default=None, metadata=TIME)
    opened_at: datetime | None = field(default=None, metadata=TIME)
    probe_at: datetime | None = field(default=None, metadata=TIME)
    probe_job: str | None = None
    overdue_at: datetime | None = field(default=None, metadata=TIME)
    last_failed_job: str | None = None
    last_error: JobError | None = field(default=None, metadata={"convert": job_error})
    failure_threshold: int = 5
    cooldown_ms: int = 60_000
    probe_timeout_ms: int = 900_000


def _rate_limit(sent: Any) -> RateLimit:
    return record(RateLimit, sent)


def _circuit(sent: Any) -> CircuitSnapshot:
    return record(CircuitSnapshot, sent)


@dataclass(frozen=True, slots=True)
class Pause:
    """A pause that holds: by whom, why and since when."""

    actor: str
    at: datetime = field(metadata=TIME)
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class GateEvent:
    """Something that happened to an endpoint or queue: `circuit_opened`, `paused`, `configured` and so on.

    `data` holds what belongs to this `event`, with camelCase keys.
    """

    event: str
    at: datetime
    job_id: str | None
    data: Mapping[str, Any]


def _pause(sent: Any) -> Pause:
    return record(Pause, sent)


def _events(sent: Any) -> tuple[GateEvent, ...]:
    common = ("event", "at", "jobId")
    return tuple(
        GateEvent(
            item["event"],
            time(item["at"]),
            item.get("jobId"),
            {key: value for key, value in item.items() if key not in common},
        )
        for item in sent
    )


@dataclass(frozen=True, slots=True)
class QueueSnapshot:
    """A queue and what may hold it back. `events`: the last 100, from `get`."""

    name: str
    paused: Pause | None = field(default=None, metadata={"convert": _pause})
    rate_limit: RateLimit | None = field(default=None, metadata={"convert": _rate_limit})
    tokens_left: float | None = None
    max_concurrency: int | None = None
    slots_used: int | None = None
    running: int = 0
    waiting: int = 0
    events: tuple[GateEvent, ...] = field(default=(), metadata={"convert": _events})


@dataclass(frozen=True, slots=True)
class EndpointSnapshot(QueueSnapshot):
    """An endpoint: the same, its default retry policy and its circuit."""

    retry_policy: Mapping[str, Any] | None = None
    circuit: CircuitSnapshot = field(default=CircuitSnapshot("closed"), metadata={"convert": _circuit})
