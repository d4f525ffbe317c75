"""Values of the scenarios in `tests/scenarios`: arguments filled in, answers as JSON, patterns compared with them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime, timezone
from typing import Any

from drayhorse import AsyncRun, Enqueued, GateEvent, HandlerKey, Run, TimelineEvent, Waiting
from drayhorse._names import camel


class _Gone:
    """A key that an object does not have."""

    def __repr__(self) -> str:
        return "missing"


_GONE = _Gone()
_SHOWN_CHARS = 2000


def fill(value: Any, kept: Mapping[str, Any]) -> Any:
    """The value with kept answers and generated values in their places."""
    if isinstance(value, str) and value.startswith("$"):
        return value[1:] if value.startswith("$$") else _at(value, kept)
    if isinstance(value, list):
        return [fill(item, kept) for item in value]
    if isinstance(value, dict):
        if "$repeat" in value:
            unit, times = value["$repeat"]
            return unit * times
        if "$nest" in value:
            nested: list[Any] = []
            for _ in range(value["$nest"] - 1):
                nested = [nested]
            return nested
        # The text of an expression may begin with a dollar sign.
        return {key: item if key == "$match" else fill(item, kept) for key, item in value.items()}
    return value


def id_of(name: str, kept: Mapping[str, Any]) -> str:
    """The job that `until` names: an answer with an id, or the id itself."""
    found = _at(name if name.startswith("$") else f"${name}", kept)
    return str(found["id"] if isinstance(found, dict) else found)


def _at(reference: str, kept: Mapping[str, Any]) -> Any:
    found: Any = kept
    for part in reference[1:].split("."):
        try:
            found = found[int(part)] if isinstance(found, list) else found[part]
        except (KeyError, IndexError, TypeError, ValueError):
            raise AssertionError(f"{reference}: there is no {part!r} in {shown(found)}") from None
    return found


def plain(value: Any) -> Any:
    """An answer of the package as the JSON of docs/architecture.md: camelCase keys, times as text."""
    if isinstance(value, Enqueued):
        return {"id": value.id, "replayed": value.replayed}
    if isinstance(value, Run | AsyncRun):
        return {"id": value.id}
    if isinstance(value, HandlerKey):
        return {"type": value.type, "version": value.version}
    if isinstance(value, datetime):
        return value.astimezone(timezone.utc).isoformat(timespec="microseconds").replace("+00:00", "Z")
    if is_dataclass(value) and not isinstance(value, type):
        own = {camel(field.name): plain(getattr(value, field.name)) for field in fields(value)}
        # What belongs to one kind of entry stands beside its common keys in JSON.
        return {**own.pop("data"), **own} if isinstance(value, GateEvent | TimelineEvent | Waiting) else own
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


def mismatch(pattern: Any, value: Any, path: str = "answer") -> str | None:
    """The first difference between a pattern and a value; nothing when it matches."""
    if isinstance(pattern, dict):
        if pattern and all(key.startswith("$") for key in pattern):
            return _first(_operate(name, operand, value, path) for name, operand in pattern.items())
        if not isinstance(value, dict):
            return _differs(pattern, value, path)
        return _first(mismatch(wanted, value.get(key, _GONE), f"{path}.{key}") for key, wanted in pattern.items())
    if isinstance(pattern, list):
        if not isinstance(value, list) or len(value) != len(pattern):
            return _differs(pattern, value, path)
        return _first(mismatch(wanted, value[n], f"{path}[{n}]") for n, wanted in enumerate(pattern))
    # True is 1 to Python; JSON tells them apart.
    same = pattern == value and isinstance(pattern, bool) == isinstance(value, bool)
    return None if same else _differs(pattern, value, path)


def _operate(name: str, operand: Any, value: Any, path: str) -> str | None:
    absent = value is None or value is _GONE
    if name == "$any":
        return f"{path} is absent" if absent else None
    if name == "$absent":
        return None if absent else f"{path} is there: {shown(value)}"
    if name == "$not":
        return f"{path} must not be {shown(operand)}" if mismatch(operand, value, path) is None else None
    if name == "$between":
        low, high = operand
        fits = isinstance(value, int | float) and not isinstance(value, bool) and low <= value <= high
    elif name == "$contains":
        fits = isinstance(value, list) and _in_order(operand, value)
    elif name == "$length":
        fits = isinstance(value, list | dict | str) and len(value) == operand
    elif name == "$match":
        fits = isinstance(value, str) and re.search(operand, value) is not None
    else:
        return f"{path}: there is no operator {name}"
    return None if fits else f"{path} is {shown(value)}, not {name} {shown(operand)}"


def _in_order(patterns: list[Any], values: list[Any]) -> bool:
    rest = iter(values)
    return all(any(mismatch(pattern, value) is None for value in rest) for pattern in patterns)


def _first(differences: Iterator[str | None]) -> str | None:
    return next((difference for difference in differences if difference is not None), None)


def _differs(pattern: Any, value: Any, path: str) -> str:
    return f"{path} is {shown(value)}, not {shown(pattern)}"


def shown(value: Any) -> str:
    """A value for a person, cut where it is long."""
    text = json.dumps(value, ensure_ascii=False, default=repr)
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}…"
