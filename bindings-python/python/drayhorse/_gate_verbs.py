"""The verbs of `queue.endpoints` and `queue.queues`, without the waiting (see `_verbs`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias, TypeVar

from ._record import records
from ._verbs import Request, optional, reader
from .gates import CircuitSettings, QueueSnapshot, RateLimit, Remove
from .options import encode_object

S = TypeVar("S", bound=QueueSnapshot)

Group: TypeAlias = Literal["endpoints", "queues"]


def list_gates(group: Group, kind: type[S], limit: int | None, after: str | None) -> Request[list[S]]:
    return Request(f"{group}.list", encode_object({"limit": limit, "after": after}), records(kind))


def get_gate(group: Group, kind: type[S], name: str) -> Request[S | None]:
    return Request(f"{group}.get", encode_object({"name": name}), optional(kind))


def act(group: Group, kind: type[S], verb: str, name: str, actor: str, reason: str | None) -> Request[S]:
    """`pause`, `resume` and the forces of a circuit."""
    args = encode_object({"name": name, "actor": actor, "reason": reason})
    return Request(f"{group}.{verb}", args, reader(kind))


def configure(
    group: Group,
    kind: type[S],
    name: str,
    actor: str,
    reason: str | None,
    rate_limit: RateLimit | Remove | None,
    max_concurrency: int | Remove | None,
    retry_policy: Mapping[str, object] | Remove | None = None,
    circuit: CircuitSettings | None = None,
) -> Request[S]:
    args = encode_object(
        {
            "name": name,
            "actor": actor,
            "reason": reason,
            "rate_limit": rate_limit,
            "max_concurrency": max_concurrency,
            "retry_policy": retry_policy,
            "circuit": circuit,
        }
    )
    return Request(f"{group}.configure", args, reader(kind))
