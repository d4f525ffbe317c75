"""From an HTTP answer to a decision about the next attempt. The table is the core's, the same in every language."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from . import _native
from ._decision import ErrorDecision
from ._record import record
from .errors import InvalidArgumentError, from_json
from .options import rfc3339


@dataclass(frozen=True, slots=True)
class HttpDecision(ErrorDecision):
    """What an HTTP answer means for the next attempt, and why. A `classify_error` function may return it."""

    reason: str = ""


def http_decision(
    status: int | None = None,
    *,
    failure: Literal["not_sent", "after_send"] | None = None,
    headers: Mapping[str, Any] | Iterable[tuple[str, Any]] | None = None,
    idempotent: bool = True,
    conflict_means_in_progress: bool = False,
    now: datetime | None = None,
) -> HttpDecision:
    """Decides by the `status` of an answer, or by the `failure` to get one.

    `not_sent`: the request never left (refused, no such host). `after_send`: it was sent and no answer came.
    `idempotent`: sending it twice has the effect of sending it once. `conflict_means_in_progress`: 409 says that an
    earlier request has not ended. `headers` count for Retry-After; `now` is the base of a date there if the answer
    has no `Date`.
    """
    response = {key: value for key, value in (("status", status), ("failure", failure)) if value is not None}
    options: dict[str, object] = {
        "headers": _headers(headers),
        "idempotent": idempotent,
        "conflictMeansInProgress": conflict_means_in_progress,
    }
    if now is not None:
        options["now"] = rfc3339(now, "now")
    try:
        sent = json.loads(_native.Client.http_decision(json.dumps({"response": response, "options": options})))
    except _native.Failure as failure_of_call:
        raise from_json(failure_of_call.args[0]) from None
    return record(HttpDecision, sent)


def decision_from_response(
    response: Any,
    *,
    idempotent: bool = True,
    conflict_means_in_progress: bool = False,
    now: datetime | None = None,
) -> HttpDecision:
    """The same for a response of requests, httpx, aiohttp, urllib3, urllib or http.client."""
    status = getattr(response, "status_code", None)
    if status is None:
        status = getattr(response, "status", None)
    if not isinstance(status, int):
        kind = type(response).__name__
        raise InvalidArgumentError(f"a {kind} has neither status_code nor status", {"field": "response"})
    return http_decision(
        int(status),
        headers=getattr(response, "headers", None),
        idempotent=idempotent,
        conflict_means_in_progress=conflict_means_in_progress,
        now=now,
    )


def _headers(given: Any) -> dict[str, list[str]]:
    """Every value of every header. What is no text is left out: this runs in somebody's error path."""
    if given is None:
        return {}
    # httpx keeps repeated lines apart only here; the other libraries do so in `items`.
    pairs = getattr(given, "multi_items", None) or getattr(given, "items", None)
    found: dict[str, list[str]] = {}
    for name, values in pairs() if pairs is not None else given:
        for value in values if isinstance(values, list | tuple) else (values,):
            text = value.decode("latin-1") if isinstance(value, bytes) else value
            if isinstance(name, str) and isinstance(text, str):
                found.setdefault(name, []).append(text)
    return found
