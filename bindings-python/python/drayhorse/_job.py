"""What a handler sees of its job: `Job` in a function, `AsyncJob` in a coroutine function.

A job lives as long as its attempt. The worker makes it, marks it when the attempt is over, and is told by it what the
handler leaves behind.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar, overload

from . import _native
from ._decision import JobCancelled
from ._json import decode, encode
from ._port import LoopPort, ThreadPort
from ._record import time
from .errors import PayloadInvalidError, from_json

__all__ = ["AsyncJob", "Job"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Line:
    """A job's way to its worker."""

    handle: int
    worker: _native.WorkerHandle
    threads: ThreadPort
    loops: LoopPort
    # Takes the answers that nobody waits for; the worker looks at them for failures.
    unattended: _native.Mailbox

    def arguments(self, name: str | None = None, value: str | None = None) -> str:
        """The arguments of a handler's call."""
        parts = [f'"handle":{self.handle}']
        if name is not None:
            parts.append(f'"name":{encode(name, "name")}')
        if value is not None:
            parts.append(f'"value":{value}')
        return "{" + ",".join(parts) + "}"

    def call(self, verb: str, arguments: str) -> Any:
        """Waits in this thread for the answer."""
        return decode(self.threads.run(lambda mailbox: self.worker.submit(verb, arguments, mailbox)))

    async def call_async(self, verb: str, arguments: str) -> Any:
        """The same in a coroutine."""
        return decode(await self.loops.run(lambda mailbox: self.worker.submit(verb, arguments, mailbox)))

    def tell(self, verb: str, arguments: str) -> None:
        """Sends without waiting; a failure is the worker's to report."""
        try:
            self.worker.submit(verb, arguments, self.unattended)
        except _native.Failure as failure:
            raise from_json(failure.args[0]) from None


@dataclass(frozen=True, slots=True)
class WorkerDelay:
    """The answer of a worker's `retry_delay_ms` for one attempt: keys of its report, and the error it raised."""

    keys: Mapping[str, object]
    fault: BaseException | None = None


class JobBase:
    """One attempt of one job."""

    def __init__(self, sent: Mapping[str, Any], line: Line) -> None:
        self._line = line
        self._over: str | None = None
        # Whether the core may end the attempt at a timeout, without asking anybody.
        self._timed = bool(sent.get("timed"))
        # What the worker's own delay says about this attempt, once it was asked.
        self._delay: WorkerDelay | None = None
        deadline = sent.get("deadline")
        text = sent.get("payloadText")
        self.id: str = sent["id"]
        self.queue: str = sent["queue"]
        self.type: str = sent["type"]
        self.version: str = sent["version"]
        self.attempt: int = sent["attempt"]
        self.max_attempts: int = sent["maxAttempts"]
        self.has_payload: bool = sent["hasPayload"]
        self.payload: Any = sent.get("payload") if text is None else decode(text)
        self.tags: tuple[str, ...] = tuple(sent.get("tags") or ())
        self.endpoint: str | None = sent.get("endpoint")
        self.deadline: datetime | None = None if deadline is None else time(deadline)
        self.run_id: str | None = sent.get("runId")
        self.idempotency_key: str = sent.get("idempotencyKey") or self.id
        self.synthetic: bool = bool(sent.get("synthetic"))

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__} {self.id} {self.type}@{self.version} attempt {self.attempt}/{self.max_attempts}>"
        )

    @property
    def cancelled(self) -> bool:
        """Whether this attempt is over although the handler runs: stop as soon as it is safe."""
        return self._over is not None

    @property
    def cancel_reason(self) -> str | None:
        """Why: `cancel`, `timeout`, `deadline`, `lease_lost` or `shutdown`."""
        return self._over

    def raise_if_cancelled(self) -> None:
        """Raises `JobCancelled` if the attempt is over."""
        if self._over is not None:
            raise JobCancelled(self._over)

    def progress(self, value: object) -> None:
        """Says how far the handler is; `get` shows the last value. Never waits, and writes at most every 100 ms."""
        self._line.tell("progress", self._line.arguments(value=_stored(value, "progress")))

    @property
    def lease_remaining_ms(self) -> int:
        """How long the claim still holds if nothing renews it; the worker renews it at a third of the lease."""
        remaining: int = self._line.call("leaseRemaining", self._line.arguments())["leaseRemainingMs"]
        return remaining


class Job(JobBase):
    """The job in a handler that is an ordinary function."""

    def checkpoint(self, name: str, fn: Callable[[], T]) -> T:
        """Runs `fn` once and keeps what it returns; later attempts get the value and `fn` does not run.

        The value comes back as its JSON on every attempt, the first included (a tuple as a list, for example).
        """
        found = self._line.call("checkpointGet", self._line.arguments(name))
        if found["found"]:
            kept: T = found["value"]
            return kept
        text = _stored(fn(), name)
        self._line.call("checkpointPut", self._line.arguments(name, text))
        saved: T = decode(text)  # type: ignore[assignment]
        return saved


class AsyncJob(JobBase):
    """The job in a handler that is a coroutine function."""

    @overload
    async def checkpoint(self, name: str, fn: Callable[[], Awaitable[T]]) -> T: ...
    @overload
    async def checkpoint(self, name: str, fn: Callable[[], T]) -> T: ...
    async def checkpoint(self, name: str, fn: Callable[[], Any]) -> Any:
        """Runs `fn`, a function or a coroutine function, once and keeps what it returns.

        Later attempts get the value and `fn` does not run. The value comes back as its JSON on every attempt, the
        first included (a tuple as a list, for example).
        """
        found = await self._line.call_async("checkpointGet", self._line.arguments(name))
        if found["found"]:
            return found["value"]
        value = fn()
        if inspect.isawaitable(value):
            value = await value
        text = _stored(value, name)
        await self._line.call_async("checkpointPut", self._line.arguments(name, text))
        return decode(text)


def _stored(value: object, path: str) -> str:
    return encode(value, path, PayloadInvalidError)
