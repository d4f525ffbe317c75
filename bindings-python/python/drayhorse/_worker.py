"""`Worker`: the handlers of a process and the shift that serves them."""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable
from dataclasses import fields
from typing import Any, TypeVar

from ._async_queue import AsyncQueue
from ._decision import Classifier
from ._queue import Queue
from ._shift import Handler, Shift
from ._verbs import handler_key
from .errors import InvalidArgumentError, WrongStateError
from .options import LOCAL_OPTIONS, WorkerOptions, encode_object
from .results import HandlerKey, Health

F = TypeVar("F", bound=Callable[..., Any])


class Worker:
    """Runs handlers for the jobs of a queue.

    Handlers that are functions run in threads, coroutine functions in an event loop of the worker; both take
    `(payload, job)`. What they return is the job's result; what they raise fails the attempt.
    """

    def __init__(self, queue: Queue | AsyncQueue, options: WorkerOptions | None = None) -> None:
        self._queue = queue
        self._options = options or WorkerOptions()
        self._handlers: dict[HandlerKey, Handler] = {}
        # Reentrant: a signal handler of the program may call `stop` at any moment.
        self._lock = threading.RLock()
        self._shift: Shift | None = None
        self._stop_wanted = False

    def handler(self, type: str, *, version: str = "1", classify_error: Classifier | None = None) -> Callable[[F], F]:
        """Decorator: the function handles jobs of exactly this type and version."""

        def register(fn: F) -> F:
            self.handle(type, fn, version=version, classify_error=classify_error)
            return fn

        return register

    def handle(
        self,
        type: str,
        fn: Callable[..., Any],
        *,
        version: str = "1",
        classify_error: Classifier | None = None,
    ) -> None:
        """The same for a function that exists already. Two handlers for one type and version are refused."""
        key = HandlerKey(type, version)
        with self._lock:
            if key in self._handlers:
                raise InvalidArgumentError(f"{type}@{version} has a handler already", {"field": "type"})
            if self._shift is not None:
                raise WrongStateError("Handlers cannot be added while the worker runs.")
            self._handlers[key] = Handler(fn, _is_async(fn), classify_error)

    def run(self) -> None:
        """Serves jobs until `stop` is called, or on the main thread until SIGTERM or SIGINT; then drains and returns.

        A second signal ends the process at once with a code that is not zero. Raises what made it impossible to go on.
        """
        with self._lock:
            if self._shift is not None:
                raise WrongStateError("The worker runs already.")
            shift = self._shift = Shift(dict(self._handlers), self._options)
            stopped = self._stop_wanted
        try:
            if stopped:
                shift.stop()
            shift.execute(self._queue._connection.client, self._native_options())
        finally:
            with self._lock:
                self._shift = None
                self._stop_wanted = False

    def stop(self) -> None:
        """Starts the drain: no further job is claimed, running handlers have `grace_ms` to end. Does not wait.

        Before `run` it makes the next `run` end at once.
        """
        with self._lock:
            shift = self._shift
            self._stop_wanted = True
        if shift is not None:
            shift.stop()

    def health(self) -> Health:
        """For probes: is it alive and connected, how many slots are taken, which handlers are stuck."""
        shift = self._shift
        return Health(alive=False, phase="stopped") if shift is None else shift.health()

    def _native_options(self) -> str:
        given = {f.name: getattr(self._options, f.name) for f in fields(self._options) if f.name not in LOCAL_OPTIONS}
        # A number the core can apply by itself, where it settles a timeout; a function is asked attempt by attempt.
        if not callable(self._options.retry_delay_ms):
            given["retry_delay_ms"] = self._options.retry_delay_ms
        keys = [handler_key(key) for key in self._handlers]
        return encode_object({**given, "handlers": keys, "language": "python"})


def _is_async(fn: Callable[..., Any]) -> bool:
    while isinstance(fn, functools.partial):
        fn = fn.func
    return inspect.iscoroutinefunction(fn) or inspect.iscoroutinefunction(getattr(fn, "__call__", None))  # noqa: B004
