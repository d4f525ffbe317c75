"""The public surface of the Python package, for `surface`: what a program can name, without a connection."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import is_dataclass
from typing import Any

import drayhorse
from drayhorse._job import AsyncJob, Job, Line
from drayhorse._port import LoopPort, ThreadPort

# An attempt without a worker: only to see which attributes a job has.
_JOB = {
    "id": "",
    "queue": "",
    "type": "",
    "version": "",
    "attempt": 1,
    "maxAttempts": 1,
    "hasPayload": False,
}

Found = dict[str, tuple[str, bool]]


def names() -> Found:
    """Name -> (type, whether the table has to list it). Parameters are named like `Queue.wait(timeout_ms)`.

    `AsyncQueue` and the like are compared with their blocking twins instead of being listed.
    """
    found: Found = {}
    for name in drayhorse.__all__:
        thing = getattr(drayhorse, name)
        if inspect.isclass(thing):
            _class(name, thing, found)
        elif inspect.isfunction(thing):
            found[name] = ("function", True)
            _parameters(name, thing, found)
        elif hasattr(thing, "__args__"):
            continue  # an alias of types
        else:
            found[name] = (type(thing).__name__, True)
    queue = drayhorse.Queue()
    for name, part in vars(queue).items():
        if not name.startswith("_"):
            found[f"Queue.{name}"] = (type(part).__name__, True)
            _methods(type(part).__name__, type(part), found)
    awaited = drayhorse.AsyncQueue()
    _same(drayhorse.Queue, drayhorse.AsyncQueue, found)
    _same(drayhorse.Run, drayhorse.AsyncRun, found)
    for name in [name for name in vars(queue) if not name.startswith("_")]:
        _same(type(getattr(queue, name)), type(getattr(awaited, name)), found)
    _same(Job, AsyncJob, found)
    return {name: one for name, one in found.items() if not name.startswith(("Async", "Missing", "Remove"))}


def _class(name: str, kind: type[Any], found: Found) -> None:
    found[name] = ("class", True)
    if kind is Job:
        line = Line(0, None, ThreadPort(), LoopPort(), None)  # type: ignore[arg-type]
        for attribute, value in vars(Job(_JOB, line)).items():
            if not attribute.startswith("_"):
                found[f"{name}.{attribute}"] = (type(value).__name__, True)
    if is_dataclass(kind) or issubclass(kind, tuple | str):
        # What a record adds to its base, which lists the rest itself.
        for field, hint in inspect.get_annotations(kind).items():
            found[f"{name}.{field}"] = (str(hint), True)
    elif issubclass(kind, BaseException):
        if kind is drayhorse.DrayhorseError or not issubclass(kind, drayhorse.DrayhorseError):
            for attribute in sorted(_attributes(kind)):
                found[f"{name}.{attribute}"] = ("", True)
            _parameters(name, kind.__init__, found)
    else:
        _parameters(name, kind.__init__, found)
    _methods(name, kind, found)


def _attributes(kind: type[Any]) -> Iterator[str]:
    try:
        made = kind("")
    except TypeError:
        return
    yield from (name for name in vars(made) if not name.startswith("_"))
    yield from (name for name in ("code", "retryable") if hasattr(kind, name))


def _methods(name: str, kind: type[Any], found: Found) -> None:
    ours = [base for base in kind.__mro__ if base.__module__.startswith("drayhorse")]
    for base in ours if not is_dataclass(kind) else ours[:1]:
        for member, value in list(vars(base).items()):
            if member.startswith("_") or member in inspect.get_annotations(base):
                continue
            if isinstance(value, property):
                found[f"{name}.{member}"] = ("property", True)
            elif inspect.isfunction(value) or isinstance(value, classmethod):
                found[f"{name}.{member}"] = ("method", True)
                _parameters(f"{name}.{member}", getattr(kind, member), found)


def _parameters(owner: str, fn: Any, found: Found) -> None:
    for parameter in inspect.signature(fn).parameters.values():
        if parameter.name not in ("self", "cls", "args", "kwargs"):
            required = parameter.kind is parameter.KEYWORD_ONLY
            found[f"{owner}({parameter.name})"] = (str(parameter.annotation), required)


def _same(plain: type[Any], awaited: type[Any], found: Found) -> None:
    """An awaited class that differs from its twin shows up as a name that no row lists."""
    for name in {member for kind in (plain, awaited) for member in dir(kind) if not member.startswith("_")}:
        here, there = getattr(plain, name, None), getattr(awaited, name, None)
        same = here is not None and there is not None
        if same and callable(here) and callable(there):
            same = list(inspect.signature(here).parameters.values()) == list(
                inspect.signature(there).parameters.values()
            ) or _only_annotations_differ(here, there)
        if not same:
            found[f"{plain.__name__}.{name} is another in {awaited.__name__}"] = ("", True)


def _only_annotations_differ(here: Any, there: Any) -> bool:
    def shape(fn: Any) -> list[tuple[str, Any, Any]]:
        return [(p.name, p.kind, p.default) for p in inspect.signature(fn).parameters.values()]

    return shape(here) == shape(there)
