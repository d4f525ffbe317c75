"""The `work` steps of the scenarios: the package's worker, with handlers that behave as the scenario says."""

from __future__ import annotations

import asyncio
import inspect
import threading
import time
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Protocol

from helpers import serving
from scenario_calls import AnyQueue, options

from drayhorse import AsyncJob, Job, NonRetryableError, RetryableError, Worker, WorkerOptions

# For a busy machine: nothing here takes long by itself.
_PATIENCE_S = 60.0
_LARGE_CHARS = 2 * 1024 * 1024
_UNSTORABLE = {"nan": float("nan"), "nul": {"out": "a\u0000b"}, "large": "x" * _LARGE_CHARS}


class Hands(Protocol):
    """What a behaviour does with its job, in either kind of handler."""

    async def sleep(self, ms: float) -> None: ...
    async def until_aborted(self) -> str | None: ...
    async def checkpoint(self, name: str, fn: Callable[[], Any]) -> Any: ...


class ThreadHands:
    """In a function. Nothing here ever suspends, so that the behaviour can be driven without an event loop."""

    def __init__(self, job: Job) -> None:
        self._job = job

    async def sleep(self, ms: float) -> None:
        time.sleep(ms / 1000)

    async def until_aborted(self) -> str | None:
        while not self._job.cancelled:
            time.sleep(0.005)
        return self._job.cancel_reason

    async def checkpoint(self, name: str, fn: Callable[[], Any]) -> Any:
        return self._job.checkpoint(name, fn)


class LoopHands:
    """In a coroutine function: the attempt's end arrives as a cancellation."""

    def __init__(self, job: AsyncJob) -> None:
        self._job = job

    async def sleep(self, ms: float) -> None:
        await asyncio.sleep(ms / 1000)

    async def until_aborted(self) -> str | None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return self._job.cancel_reason
        raise AssertionError("nobody sets this event")

    async def checkpoint(self, name: str, fn: Callable[[], Any]) -> Any:
        return await self._job.checkpoint(name, fn)


class Work:
    """One `work` step: its worker and what its handlers saw."""

    def __init__(self, queue: AnyQueue, step: Mapping[str, Any], in_loop: bool) -> None:
        unknown = step.keys() - {"handlers", "options", "until"}
        assert not unknown, f"work has no {', '.join(sorted(unknown))}"
        self._queue = queue
        self._starts = dict.fromkeys(step["handlers"], 0)
        self._runs: list[dict[str, Any]] = []
        self._lock = threading.Lock()
        given = dict(step.get("options", {}))
        if isinstance(given.get("retryDelayMs"), dict):
            given["retryDelayMs"] = _delays(given["retryDelayMs"])
        # Faults that a scenario provokes are the database's to show.
        self._worker = Worker(queue, options(WorkerOptions, {**given, "onError": lambda error, job: None}))
        for key, behaviours in step["handlers"].items():
            type, _, version = key.partition("@")
            self._worker.handle(type, self._handler(key, behaviours, in_loop), version=version or "1")

    async def run(self, until: Mapping[str, str]) -> dict[str, Any]:
        """Serves until every job (by id) has its state, then drains."""
        with serving(self._worker):
            end = time.monotonic() + _PATIENCE_S
            for id, state in until.items():
                while (now := await self._state(id)) != state:
                    assert time.monotonic() < end, f"job {id} is {now}, not {state}, after {_PATIENCE_S:.0f} s"
                    await asyncio.sleep(0.02)
        return {"starts": self._starts, "runs": self._runs}

    async def _state(self, id: str) -> str | None:
        answer: Any = self._queue.get(id)
        if inspect.isawaitable(answer):
            answer = await answer
        return None if answer is None else str(answer.state)

    def _handler(self, key: str, behaviours: list[dict[str, Any]], in_loop: bool) -> Callable[..., Any]:
        async def in_a_loop(payload: Any, job: AsyncJob) -> Any:
            return await self._behave(key, behaviours, payload, job, LoopHands(job))

        def in_a_thread(payload: Any, job: Job) -> Any:
            return _driven(self._behave(key, behaviours, payload, job, ThreadHands(job)))

        return in_a_loop if in_loop else in_a_thread

    async def _behave(
        self, key: str, behaviours: list[dict[str, Any]], payload: Any, job: Job | AsyncJob, hands: Hands
    ) -> Any:
        seen = {"type": job.type, "attempt": job.attempt, "payload": payload, "hasPayload": job.has_payload}
        with self._lock:
            behaviour = behaviours[min(self._starts[key], len(behaviours) - 1)]
            self._starts[key] += 1
            self._runs.append(seen)
        while "then" in behaviour:
            await _step(behaviour, job, hands, seen)
            behaviour = behaviour["then"]
        return _end(behaviour)


async def _step(behaviour: dict[str, Any], job: Job | AsyncJob, hands: Hands, seen: dict[str, Any]) -> None:
    """What a handler does before it ends."""
    match behaviour:
        case {"waitForAbort": True}:
            seen["aborted"] = await hands.until_aborted()
        case {"sleepMs": ms}:
            await hands.sleep(ms)
        case {"progress": value}:
            job.progress(value)
        case {"checkpoint": {"name": name, "value": value}}:
            ran = False

            def make() -> Any:
                nonlocal ran
                ran = True
                return value

            got = await hands.checkpoint(name, make)
            seen.setdefault("checkpoints", []).append({"name": name, "value": got, "ran": ran})
        case _:
            raise AssertionError(f"there is no behaviour {behaviour}")


def _end(behaviour: dict[str, Any]) -> Any:
    """How a handler ends."""
    match behaviour:
        case {"return": value}:
            return value
        case {"returnNothing": True}:
            return None
        case {"returnUnstorable": what}:
            return _UNSTORABLE[what]
        case {"throw": {"message": message, **rest}}:
            raise type(str(rest.get("name", "ScenarioError")), (Exception,), {})(message)
        case {"throwNonRetryable": {"message": message, **rest}}:
            error = NonRetryableError(message, uncertain=bool(rest.get("uncertain")))
            if rest.get("wrapped"):
                raise RuntimeError("wrapped") from error
            raise error
        case {"throwRetryable": {"message": message, "retryAfterMs": hint}}:
            raise RetryableError(message, retry_after_ms=hint)
    raise AssertionError(f"there is no behaviour {behaviour}")


def _driven(work: Coroutine[Any, Any, Any]) -> Any:
    """The result of a coroutine that never suspends."""
    try:
        work.send(None)
    except StopIteration as end:
        return end.value
    raise AssertionError("it suspended")


def _delays(given: Mapping[str, Any]) -> Callable[[int, Job | AsyncJob], float | None]:
    def delay(attempt: int, job: Job | AsyncJob) -> float | None:
        if given.get("throws"):
            raise RuntimeError("no delay today")
        values: list[float | None] = given["byAttempt"]
        return values[attempt - 1] if attempt <= len(values) else None

    return delay
