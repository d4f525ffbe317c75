"""What a handler's exception means: which decision it carries along its cause chain, and how it is told to the core.

The chain is the explicit one (`raise .. from`); what Python links by itself (`__context__`) says nothing about the
cause. Groups are read in pre-order. Chains may be cyclic and are followed to a depth of 32.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from ._json import encode
from .errors import DrayhorseError

if TYPE_CHECKING:
    from ._job import AsyncJob, Job

__all__ = ["ErrorDecision", "JobCancelled", "NonRetryableError", "RetryableError"]

MAX_CHAIN = 32
# A group may be of any width; nobody reads further than this.
MAX_ERRORS = 1000


class NonRetryableError(Exception):
    """Raised by a handler: no further attempt. `uncertain`: the effect may have happened all the same."""

    def __init__(self, message: str = "", uncertain: bool = False) -> None:
        super().__init__(message)
        self.uncertain = uncertain

    def _decision(self) -> dict[str, object]:
        """What it says about the next attempt."""
        return {"retryable": False, "uncertain": True} if self.uncertain else {"retryable": False}


class RetryableError(Exception):
    """Raised by a handler: try again, not before `retry_after_ms` if the destination named a time."""

    def __init__(self, message: str = "", retry_after_ms: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_ms = retry_after_ms

    def _decision(self) -> dict[str, object]:
        """What it says about the next attempt."""
        hint = {} if self.retry_after_ms is None else {"retry_after_ms": self.retry_after_ms}
        return {"retryable": True, **hint}


class JobCancelled(BaseException):
    """Raised by `job.raise_if_cancelled()`. Like `asyncio.CancelledError` it passes an `except Exception`."""

    def __init__(self, reason: str = "cancel") -> None:
        super().__init__(f"the attempt is over: {reason}")
        self.reason = reason


@dataclass(frozen=True, slots=True)
class ErrorDecision:
    """What a `classify_error` function answers."""

    retryable: bool
    retry_after_ms: float | None = None
    uncertain: bool = False


AnyJob: TypeAlias = "Job | AsyncJob"
Classifier: TypeAlias = "Callable[[BaseException, AnyJob], ErrorDecision | Mapping[str, object] | None]"


def chain(error: BaseException) -> Iterator[BaseException]:
    """The error, its causes and the members of groups, in pre-order (the cause first), each once."""
    seen: set[int] = set()
    rest = [(error, 1)]
    while rest and len(seen) < MAX_ERRORS:
        current, depth = rest.pop()
        if id(current) in seen or depth > MAX_CHAIN:
            continue
        seen.add(id(current))
        yield current
        below = [] if current.__cause__ is None else [current.__cause__]
        below.extend(_members(current))
        rest.extend((one, depth + 1) for one in reversed(below))


def _members(error: BaseException) -> Iterator[BaseException]:
    # By its shape: exception groups are a builtin since 3.11 and a package before.
    if any(kind.__name__ == "BaseExceptionGroup" for kind in type(error).__mro__):
        for member in getattr(error, "exceptions", ()):
            if isinstance(member, BaseException):
                yield member


def marked_error(error: BaseException) -> NonRetryableError | RetryableError | None:
    """The outermost error of the chain that carries a decision."""
    for one in chain(error):
        if isinstance(one, NonRetryableError | RetryableError):
            return one
    return None


def is_cancellation(error: BaseException) -> bool:
    """Whether the error only says that something was cancelled, which tells nothing about the destination."""
    kinds = (asyncio.CancelledError, concurrent.futures.CancelledError, JobCancelled)
    return any(isinstance(one, kinds) for one in chain(error))


def _visible(text: str) -> str:
    # Lone surrogates have no UTF-8 form: they are shown as their escapes.
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _message(error: BaseException) -> str:
    try:
        return _visible(str(error))
    except Exception as fault:
        return f"(str() of this {type(error).__name__} failed: {type(fault).__name__})"


def error_report(error: BaseException) -> dict[str, object]:
    """The error as it is stored: name, message, stack and causes."""
    try:
        stack = _visible("".join(traceback.format_exception(error)))
    except Exception as fault:
        stack = f"(the traceback could not be written: {type(fault).__name__})"
    causes = [{"name": type(one).__name__, "message": _message(one)} for one in list(chain(error))[1 : MAX_CHAIN + 1]]
    told: dict[str, object] = {"name": type(error).__name__, "message": _message(error), "stack": stack}
    return {**told, "causes": causes} if causes else told


def decide(
    error: BaseException,
    job: AnyJob,
    classifiers: tuple[Classifier | None, ...],
    complain: Callable[[BaseException], None],
) -> dict[str, object]:
    """The keys `retryable`, `retryAfterMs` and `uncertain` of the report, as far as anybody has said something.

    In this order: the outermost marked error, the handler's classifier, the worker's. A classifier that fails or
    answers nonsense is told to `complain`, and the error stays retryable.
    """
    mark = marked_error(error)
    if mark is not None:
        return _keys(mark._decision())
    for classify in classifiers:
        if classify is None:
            continue
        try:
            answer = _answer(classify(error, job))
        except BaseException as fault:  # whatever it is, the handler's own error still has to be reported
            complain(fault)
            return {}
        if answer is not None:
            return _keys(answer)
    return {}


def _answer(given: Any) -> dict[str, object] | None:
    if given is None:
        return None
    if isinstance(given, ErrorDecision):
        given = {"retryable": given.retryable, "retry_after_ms": given.retry_after_ms, "uncertain": given.uncertain}
    if not isinstance(given, Mapping) or not isinstance(given.get("retryable"), bool):
        raise TypeError("classify_error must return an ErrorDecision, a mapping with the key retryable, or None")
    known = {"retryable", "retry_after_ms", "uncertain"}
    if not known.issuperset(given) or not isinstance(given.get("uncertain", False), bool):
        raise TypeError(f"classify_error must return no other keys than {', '.join(sorted(known))}")
    return {name: value for name, value in given.items() if value is not None}


def _keys(decision: Mapping[str, object]) -> dict[str, object]:
    keys: dict[str, object] = {"retryable": decision["retryable"]}
    if decision.get("uncertain"):
        keys["uncertain"] = True
    hint = decision.get("retry_after_ms")
    if hint is not None:
        keys["retryAfterMs"] = raw(hint)
    return keys


def raw(value: object) -> object:
    """A value for the core to judge: itself, or where it has no JSON form the text of it."""
    try:
        encode(value)
    except DrayhorseError:
        try:
            return _visible(repr(value))
        except Exception:
            return f"a {type(value).__name__}"
    return value
