"""A worker with handlers of both kinds: results, failures, checkpoints, cancellation, delays."""

from __future__ import annotations

import asyncio
import functools
import logging
import math
import threading
import time
from typing import Any

import pytest
from helpers import eventually, serving

from drayhorse import (
    AsyncJob,
    CheckpointConflictError,
    EnqueueOptions,
    ErrorDecision,
    InvalidArgumentError,
    Job,
    JobCancelled,
    JobSnapshot,
    NonRetryableError,
    Queue,
    RetryableError,
    SchemaMissingError,
    TimelineEvent,
    Worker,
    WorkerOptions,
    WrongStateError,
)

NOW = {"type": "fixed", "delayMs": 0}
TWICE = EnqueueOptions(max_attempts=2, retry_policy=NOW)
HOUR = EnqueueOptions(retry_policy={"type": "fixed", "delayMs": 3_600_000})


def ended(queue: Queue, id: str) -> JobSnapshot:
    queue.wait(id, 60_000)
    job = queue.get(id)
    assert job is not None
    return job


def retry(queue: Queue, id: str) -> TimelineEvent:
    """The first entry of the timeline that selected a delay."""
    kinds = ("retry_scheduled", "timed_out", "lease_expired")
    return eventually(lambda: next((e for e in queue.timeline(id) if e.kind in kinds and e.delay_ms is not None), None))  # type: ignore[no-any-return]


def test_both_kinds_of_handlers(queue: Queue) -> None:
    worker = Worker(queue, WorkerOptions(concurrency=4))
    seen: list[Job] = []

    @worker.handler("plain")
    def plain(payload: Any, job: Job) -> object:
        seen.append(job)
        return {"twice": payload["n"] * 2, "thread": threading.current_thread().name}

    @worker.handler("coroutine", version="2")
    async def coroutine(payload: Any, job: AsyncJob) -> object:
        await asyncio.sleep(0.01)
        return [payload, job.type, job.version, job.attempt]

    with serving(worker):
        first = queue.enqueue("plain", {"n": 2**70}, EnqueueOptions(tags=["x"], idempotency_key="k-1", max_attempts=4))
        second = queue.enqueue("coroutine", None, EnqueueOptions(version="2"))
        result = ended(queue, first).result
        assert result["twice"] == 2**71
        assert result["thread"].startswith("drayhorse-handler")
        assert ended(queue, second).result == [None, "coroutine", "2", 1]
    (job,) = seen
    assert (job.id, job.queue, job.type, job.version) == (first.id, "default", "plain", "1")
    assert (job.attempt, job.max_attempts, job.tags, job.idempotency_key) == (1, 4, ("x",), "k-1")
    assert (job.has_payload, job.payload, job.endpoint, job.deadline) == (True, {"n": 2**70}, None, None)
    assert not job.cancelled


def test_handlers_of_every_shape(queue: Queue) -> None:
    class Callable:
        async def __call__(self, payload: Any, job: AsyncJob) -> str:
            return "object"

    async def with_more(more: str, payload: Any, job: AsyncJob) -> str:
        return more

    worker = Worker(queue)
    worker.handle("lambda", lambda payload, job: "lambda")
    worker.handle("object", Callable())
    worker.handle("partial", functools.partial(with_more, "partial"))
    worker.handle("nothing", lambda payload, job: None)
    with serving(worker):
        made = {type: queue.enqueue(type) for type in ("lambda", "object", "partial")}
        for type, id in made.items():
            assert ended(queue, id).result == type
        assert ended(queue, queue.enqueue("nothing")).result is None


def test_registration_is_checked(queue: Queue) -> None:
    worker = Worker(queue)
    worker.handle("t", print)
    with pytest.raises(InvalidArgumentError):
        worker.handle("t", print)
    worker.handle("t", print, version="2")
    with serving(worker):
        eventually(lambda: worker.health().connected)
        with pytest.raises(WrongStateError):
            worker.run()
        with pytest.raises(WrongStateError):
            worker.handle("u", print)
    with pytest.raises(InvalidArgumentError):
        Worker(queue, WorkerOptions(concurrency=0)).run()
    with pytest.raises(InvalidArgumentError):
        Worker(queue).run()


def test_a_worker_without_a_schema_says_so(url: str, schema: str) -> None:
    with Queue.connect(url, schema=schema) as queue:
        worker = Worker(queue, WorkerOptions(grace_ms=2000))
        worker.handle("t", print)
        with pytest.raises(SchemaMissingError):
            worker.run()


def test_failures_are_retried_and_told(queue: Queue, caplog: pytest.LogCaptureFixture) -> None:
    worker = Worker(queue)

    @worker.handler("t")
    def fails(payload: Any, job: Job) -> object:
        if job.attempt == 1:
            raise ValueError("not yet") from KeyError("deep")
        return job.attempt

    with serving(worker), caplog.at_level(logging.DEBUG, "drayhorse"):
        made = queue.enqueue("t", 1, TWICE)
        job = ended(queue, made)
    assert (job.state, job.result, job.attempt) == ("succeeded", 2, 2)
    entry = retry(queue, made)
    assert (entry.delay_ms, entry.source, entry.data["error"]["name"]) == (0, "policy:fixed", "ValueError")
    assert job.last_error is not None
    assert "test_worker.py" in (job.last_error.stack or "")
    (told,) = (line for line in caplog.records if "ValueError: not yet" in line.getMessage())
    assert told.levelno == logging.DEBUG


@pytest.mark.parametrize("kind", ["plain", "coroutine"])
@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), GeneratorExit(), BaseException("odd")])
def test_whatever_is_raised_is_a_failure(queue: Queue, kind: str, error: BaseException) -> None:
    def plain(payload: Any, job: Job) -> None:
        raise error

    async def coroutine(payload: Any, job: AsyncJob) -> None:
        raise error

    worker = Worker(queue)
    worker.handle("t", plain if kind == "plain" else coroutine)
    worker.handle("after", lambda payload, job: "fine")
    with serving(worker):
        job = ended(queue, queue.enqueue("t", 1, EnqueueOptions(max_attempts=1)))
        assert job.state == "failed"
        assert job.last_error is not None
        assert job.last_error.name == type(error).__name__
        assert ended(queue, queue.enqueue("after")).result == "fine"


def test_a_wrapped_permanent_error_ends_after_one_start(queue: Queue) -> None:
    starts: list[int] = []
    worker = Worker(queue)

    @worker.handler("t")
    def fails(payload: Any, job: Job) -> None:
        starts.append(job.attempt)
        try:
            raise NonRetryableError("card stolen", uncertain=True)
        except NonRetryableError as error:
            raise RuntimeError("while charging") from error

    with serving(worker):
        job = ended(queue, queue.enqueue("t", 1, EnqueueOptions(max_attempts=5)))
    assert (job.state, job.reason, job.uncertain, starts) == ("failed", "non_retryable", True, [1])


def test_hints_and_classifiers(queue: Queue) -> None:
    told: list[BaseException] = []

    def decides(error: BaseException, job: object) -> ErrorDecision | None:
        return ErrorDecision(retryable=False) if isinstance(error, LookupError) else None

    def broken(error: BaseException, job: object) -> ErrorDecision:
        raise ZeroDivisionError("classifier")

    worker = Worker(queue, WorkerOptions(classify_error=decides, on_error=lambda error, job: told.append(error)))

    def throws(error: Exception) -> Any:
        def handler(payload: Any, job: Job) -> None:
            raise error

        return handler

    worker.handle("hint", throws(RetryableError("slow down", retry_after_ms=120_000)))
    worker.handle("bad hint", throws(RetryableError("slow down", retry_after_ms=math.nan)))
    worker.handle("known", throws(KeyError("k")))
    worker.handle("unknown", throws(ValueError("v")))
    worker.handle("broken", throws(KeyError("k")), classify_error=broken)
    options = EnqueueOptions(retry_policy={"type": "fixed", "delayMs": 60_000})
    with serving(worker):
        hinted = retry(queue, queue.enqueue("hint", 1, options))
        assert (hinted.delay_ms, hinted.source, hinted.data["chosenMs"]) == (120_000, "retry_after", 60_000)
        ignored = retry(queue, queue.enqueue("bad hint", 1, options))
        assert (ignored.delay_ms, ignored.source) == (60_000, "policy:fixed")
        assert "hintIgnored" in ignored.data
        assert ended(queue, queue.enqueue("known", 1, options)).reason == "non_retryable"
        assert retry(queue, queue.enqueue("unknown", 1, options)).source == "policy:fixed"
        assert told == []
        assert retry(queue, queue.enqueue("broken", 1, options)).source == "policy:fixed"
        assert [type(error) for error in told] == [ZeroDivisionError]


def test_the_worker_s_own_delay(queue: Queue) -> None:
    told: list[BaseException] = []

    def delay(attempt: int, job: Job | AsyncJob) -> float | None:
        assert attempt == job.attempt
        answers: dict[str, Any] = {"zero": 0, "defers": None, "bad": -5, "text": "soon", "nan": math.nan}
        return answers[job.type]  # type: ignore[no-any-return]

    def fails(payload: Any, job: Job) -> None:
        raise ValueError

    def heard(count: int) -> bool:
        return len(told) == count

    worker = Worker(queue, WorkerOptions(retry_delay_ms=delay, on_error=lambda error, job: told.append(error)))
    for type in ("zero", "defers", "bad", "text", "nan", "raises"):
        worker.handle(type, fails)
    once_more = EnqueueOptions(max_attempts=2, retry_policy={"type": "fixed", "delayMs": 3_600_000})
    with serving(worker):
        zero = retry(queue, queue.enqueue("zero", 1, once_more))
        assert (zero.delay_ms, zero.source) == (0, "worker_override")
        defers = retry(queue, queue.enqueue("defers", 1, once_more))
        assert (defers.delay_ms, defers.source) == (3_600_000, "policy:fixed")
        assert "overrideRefused" not in defers.data
        assert told == []
        for count, type in enumerate(("bad", "text", "nan", "raises"), start=1):
            refused = retry(queue, queue.enqueue(type, 1, once_more))
            assert (refused.delay_ms, refused.source) == (3_600_000, "policy:fixed"), type
            assert refused.data["overrideRefused"], type
            eventually(functools.partial(heard, count))
        assert isinstance(told[3], KeyError)
    fixed = Worker(queue, WorkerOptions(retry_delay_ms=1500))
    fixed.handle("fixed", fails)
    with serving(fixed):
        entry = retry(queue, queue.enqueue("fixed", 1, once_more))
        assert (entry.delay_ms, entry.source) == (1500, "worker_override")


@pytest.mark.parametrize("kind", ["number", "function", "broken"])
def test_the_worker_s_own_delay_after_a_timeout(queue: Queue, kind: str) -> None:
    def delay(attempt: int, job: Job | AsyncJob) -> float | None:
        if kind == "broken":
            raise ValueError("no idea")
        return 7_000 * attempt

    async def slow(payload: Any, job: AsyncJob) -> None:
        await asyncio.sleep(60)

    worker = Worker(queue, WorkerOptions(retry_delay_ms=7_000 if kind == "number" else delay))
    worker.handle("t", slow)
    with serving(worker):
        options = EnqueueOptions(timeout_ms=200, retry_policy={"type": "fixed", "delayMs": 60_000})
        entry = retry(queue, queue.enqueue("t", 1, options))
    expected = (60_000, "policy:fixed") if kind == "broken" else (7_000, "worker_override")
    assert (entry.kind, entry.delay_ms, entry.source) == ("timed_out", *expected)


@pytest.mark.parametrize("kind", ["plain", "coroutine"])
def test_checkpoints_run_once(queue: Queue, kind: str) -> None:
    runs: list[int] = []
    seen: list[object] = []

    def fetch() -> tuple[int, int]:
        runs.append(1)
        return 1, 2**60

    async def fetch_async() -> tuple[int, int]:
        return fetch()

    def plain(payload: Any, job: Job) -> object:
        seen.append(job.checkpoint("fetch", fetch))
        if job.attempt == 1:
            raise ValueError
        return job.checkpoint("none", lambda: None)

    async def coroutine(payload: Any, job: AsyncJob) -> object:
        seen.append(await job.checkpoint("fetch", fetch_async))
        if job.attempt == 1:
            raise ValueError
        return await job.checkpoint("none", lambda: None)

    worker = Worker(queue)
    worker.handle("t", plain if kind == "plain" else coroutine)
    with serving(worker):
        made = queue.enqueue("t", 1, TWICE)
        job = ended(queue, made)
    assert (job.state, job.result) == ("succeeded", None)
    assert seen == [[1, 2**60], [1, 2**60]]
    assert runs == [1]
    assert [entry.data["name"] for entry in queue.timeline(made) if entry.kind == "checkpointed"] == ["fetch", "none"]


def test_a_checkpoint_with_another_value_ends_the_job(queue: Queue, url: str, schema: str) -> None:
    caught: list[BaseException] = []
    worker = Worker(queue)

    @worker.handler("t")
    def handler(payload: Any, job: Job) -> None:
        def inner() -> int:
            job.checkpoint("a", lambda: 1)
            return 2

        try:
            job.checkpoint("a", inner)
        except CheckpointConflictError as error:
            caught.append(error)
            raise

    with serving(worker):
        job = ended(queue, queue.enqueue("t", 1, EnqueueOptions(max_attempts=5)))
    assert (job.state, job.attempt, job.reason) == ("failed", 1, "checkpoint")
    assert len(caught) == 1


def test_progress_is_shown(queue: Queue) -> None:
    go = threading.Event()
    worker = Worker(queue)

    @worker.handler("t")
    def handler(payload: Any, job: Job) -> None:
        for n in range(50):
            job.progress({"done": n})
        assert go.wait(30)

    with serving(worker):
        made = queue.enqueue("t")
        eventually(lambda: (queue.get(made) or worker).progress == {"done": 49})  # type: ignore[union-attr]
        go.set()
        assert ended(queue, made).state == "succeeded"


def test_lease_remaining(queue: Queue) -> None:
    seen: list[int] = []

    async def coroutine(payload: Any, job: AsyncJob) -> None:
        seen.append(job.lease_remaining_ms)

    worker = Worker(queue, WorkerOptions(lease_ms=20_000))
    worker.handle("plain", lambda payload, job: seen.append(job.lease_remaining_ms))
    worker.handle("coroutine", coroutine)
    with serving(worker):
        ended(queue, queue.enqueue("plain"))
        ended(queue, queue.enqueue("coroutine"))
    assert len(seen) == 2
    assert all(5_000 < remaining <= 20_000 for remaining in seen)


def test_cancel_reaches_handlers(queue: Queue) -> None:
    reasons: list[str | None] = []
    running = threading.Semaphore(0)
    worker = Worker(queue, WorkerOptions(lease_ms=3_000))

    @worker.handler("plain")
    def plain(payload: Any, job: Job) -> None:
        running.release()
        while True:
            try:
                job.raise_if_cancelled()
            except JobCancelled as error:
                reasons.append(error.reason)
                raise
            time.sleep(0.01)

    @worker.handler("coroutine")
    async def coroutine(payload: Any, job: AsyncJob) -> None:
        running.release()
        try:
            await asyncio.sleep(60)
        finally:
            reasons.append(job.cancel_reason)

    @worker.handler("stubborn")
    def stubborn(payload: Any, job: Job) -> str:
        running.release()
        while not job.cancelled:
            time.sleep(0.01)
        return "done all the same"

    with serving(worker):
        made = {type: queue.enqueue(type) for type in ("plain", "coroutine", "stubborn")}
        for _ in made:
            assert running.acquire(timeout=30)
        for id in made.values():
            assert queue.cancel(id, reason="enough", actor="ops") == "cancel_requested"
        assert ended(queue, made["plain"]).state == "canceled"
        assert ended(queue, made["coroutine"]).state == "canceled"
        assert ended(queue, made["stubborn"]).state == "succeeded"
    assert reasons == ["cancel", "cancel"]


def test_timeouts_end_attempts(queue: Queue) -> None:
    running = threading.Event()
    release = threading.Event()
    worker = Worker(queue, WorkerOptions(concurrency=2))

    @worker.handler("coroutine")
    async def coroutine(payload: Any, job: AsyncJob) -> str:
        if job.attempt == 1:
            await asyncio.sleep(60)
        return "second"

    @worker.handler("deaf")
    def deaf(payload: Any, job: Job) -> None:
        running.set()
        release.wait(60)

    with serving(worker):
        first = queue.enqueue("coroutine", 1, EnqueueOptions(timeout_ms=300, max_attempts=2, retry_policy=NOW))
        assert ended(queue, first).result == "second"
        assert "timed_out" in [entry.kind for entry in queue.timeline(first)]
        second = queue.enqueue("deaf", 1, EnqueueOptions(timeout_ms=300, max_attempts=1))
        job = ended(queue, second)
        assert (job.state, job.uncertain) == ("failed", True)
        assert running.is_set()
        # The database is done with it, the slot is not.
        (stuck,) = eventually(lambda: worker.health().stuck)
        assert stuck.job_id == second.id
        release.set()
        eventually(lambda: not worker.health().stuck)


def test_cancellation_like_errors_without_a_reason_are_retried(queue: Queue) -> None:
    worker = Worker(queue)

    @worker.handler("t")
    async def handler(payload: Any, job: AsyncJob) -> str:
        if job.attempt == 1:
            raise asyncio.CancelledError
        return "second"

    with serving(worker):
        made = queue.enqueue("t", 1, TWICE)
        assert ended(queue, made).result == "second"
        assert retry(queue, made).data["error"]["name"] == "CancelledError"


@pytest.mark.parametrize(
    "result",
    [math.nan, {"at": object()}, "POZ\x00", "\udcff", "x" * (2 << 20)],
    ids=["nan", "object", "nul", "surrogate", "large"],
)
def test_results_that_cannot_be_stored_end_the_job(queue: Queue, result: object) -> None:
    worker = Worker(queue)
    worker.handle("t", lambda payload, job: result)
    with serving(worker):
        job = ended(queue, queue.enqueue("t", 1, EnqueueOptions(max_attempts=5)))
    assert (job.state, job.reason, job.attempt, job.uncertain) == ("failed", "output", 1, True)


@pytest.mark.parametrize(
    "message",
    ["bad \x00 byte", "x" * (5 << 20), "\udcff", "grüße 🐎" * 100_000],
    ids=["nul", "5 MB", "surrogate", "wide"],
)
def test_failures_are_recorded_whatever_they_say(queue: Queue, message: str) -> None:
    def fails(payload: Any, job: Job) -> None:
        raise ValueError(message)

    worker = Worker(queue)
    worker.handle("t", fails)
    with serving(worker):
        job = ended(queue, queue.enqueue("t", 1, TWICE))
    assert (job.state, job.reason, job.attempt) == ("failed", "exhausted", 2)
    assert job.last_error is not None
    assert job.last_error.message[:3] == {"b": "bad", "x": "xxx", "\udcff": "\\ud", "g": "grü"}[message[0]]


def test_bad_checkpoints_are_errors_of_the_handler(queue: Queue) -> None:
    def handler(payload: Any, job: Job) -> None:
        job.checkpoint("c", lambda: payload if payload else math.nan)

    worker = Worker(queue)
    worker.handle("t", handler)
    with serving(worker):
        for payload in (0, {"out": 1}):
            job = ended(queue, queue.enqueue("t", payload, EnqueueOptions(max_attempts=1)))
            assert job.state == ("succeeded" if payload else "failed")
        assert (
            ended(queue, queue.enqueue("t", 0, EnqueueOptions(max_attempts=1))).last_error or job
        ).name == "PayloadInvalidError"  # type: ignore[union-attr]


def test_on_error_may_fail_itself(queue: Queue, caplog: pytest.LogCaptureFixture) -> None:
    def on_error(error: BaseException, job: object) -> None:
        raise RuntimeError("nobody listens")

    def delay(attempt: int, job: object) -> float:
        raise ValueError("no delay")

    def fails(payload: Any, job: Job) -> None:
        raise KeyError

    worker = Worker(queue, WorkerOptions(on_error=on_error, retry_delay_ms=delay))
    worker.handle("t", fails)
    with serving(worker):
        entry = retry(queue, queue.enqueue("t", 1, HOUR))
    assert "no delay" in entry.data["overrideRefused"]
    assert "nobody listens" in caplog.text


def test_health_and_workers(queue: Queue) -> None:
    worker = Worker(queue, WorkerOptions(concurrency=3, name="w-1"))
    go = threading.Event()
    worker.handle("t", lambda payload, job: go.wait(30))
    assert (worker.health().alive, worker.health().phase) == (False, "stopped")
    with serving(worker):
        queue.enqueue("t")
        health = eventually(lambda: (lambda now: now if now.running == 1 else None)(worker.health()))
        assert (health.alive, health.connected, health.slots, health.phase) == (True, True, 3, "running")
        (info,) = queue.workers.list()
        assert (info.name, info.language, info.queues) == ("w-1", "python", ("default",))
        assert info.handlers[0].type == "t"
        go.set()
    assert worker.health().phase == "stopped"


def test_a_worker_may_run_again(queue: Queue) -> None:
    worker = Worker(queue)
    worker.handle("t", lambda payload, job: payload)
    for n in range(2):
        with serving(worker):
            assert ended(queue, queue.enqueue("t", n)).result == n


def test_handlers_may_use_the_queue(queue: Queue) -> None:
    worker = Worker(queue, WorkerOptions(concurrency=2))

    @worker.handler("parent")
    def parent(payload: Any, job: Job) -> object:
        return [str(queue.enqueue("child", n)) for n in range(3)]

    worker.handle("child", lambda payload, job: payload)
    with serving(worker):
        children = ended(queue, queue.enqueue("parent")).result
        assert [ended(queue, id).result for id in children] == [0, 1, 2]
