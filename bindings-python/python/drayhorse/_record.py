"""Reading what the core answers: JSON objects become frozen records with snake_case names and aware datetimes.

JSON data inside them (payloads, results, policies, the details of an event) is left as it is, camelCase keys included.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from datetime import datetime
from typing import Any, TypeVar

from ._names import camel

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


TIME = {"convert": time}
TUPLE = {"convert": tuple}
