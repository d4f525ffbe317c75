"""The verbs of `Queue` against a database."""

from __future__ import annotations

import signal
import threading
import time
import uuid
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import Any

import psycopg
import pytest

from drayhorse import (
    ClosedError,
    ConnectionLostError,
    Enqueued,
    EnqueueOptions,
    FailOptions,
    IdempotencyConflictError,
    IdempotencyKey,
    InvalidArgumentError,
    JobFilter,
    LeaseLostError,
    NewJob,
    NonRetryableError,
    PayloadInvalidError,
    PayloadTooLargeError,
    PolicyInvalidError,
    Queue,
    SchemaMissingError,
    WaitTimeoutError,
)

HOUR = EnqueueOptions(delay_ms=3_600_000)


def test_schema_of_its_own(url: str, schema: str) -> None:
    with Queue.connect(url, schema=schema) as queue:
        assert queue.schema_version().version is None
        with pytest.raises(SchemaMissingError):
            queue.assert_compatible()
        with pytest.raises(SchemaMissingError):
            queue.enqueue("t")
        first = queue.migrate()
        assert first.applied
        assert queue.migrate().applied == ()
        assert queue.schema_version() == type(queue.schema_version())(first.version, first.version)
        queue.assert_compatible()


def test_enqueue_and_get(queue: Queue) -> None:
    before = datetime.now(timezone.utc)
    made = queue.enqueue(
        "provider.sync",
        {"accountId": 7},
        EnqueueOptions(queue="q", version="2", priority=3, delay_ms=60_000, tags=["a", "b"], max_attempts=5),
    )
    assert isinstance(made, Enqueued)
    assert not made.replayed
    job = queue.get(made)
    assert job is not None
    assert (job.id, job.queue, job.type, job.version, job.priority) == (made.id, "q", "provider.sync", "2", 3)
    assert (job.state, job.attempt, job.max_attempts, job.tags) == ("scheduled", 0, 5, ("a", "b"))
    assert (job.payload, job.has_payload, job.idempotency_key) == ({"accountId": 7}, True, made.id)
    assert job.enqueued_at is not None
    assert abs(job.enqueued_at - before) < timedelta(minutes=1)
    assert job.next_run_at == job.enqueued_at + timedelta(seconds=60)
    assert {reason.kind for reason in job.waiting} == {"due", "no_worker"}
    assert queue.get(str(uuid.uuid4())) is None


def test_missing_null_and_empty_payloads(queue: Queue) -> None:
    found = [queue.get(queue.enqueue("t", *payload)) for payload in ((), (None,), ("",))]
    assert [(job.has_payload, job.payload) for job in found if job] == [(False, None), (True, None), (True, "")]


@pytest.mark.parametrize(
    "payload",
    [
        {"id": 1970670598291982290, "n": 9007199254740993, "m": 18446744073709551615},
        123456789012345678901234567890,
        -(10**5000),
        {"": 1, "z": {"a": [None, True, 1.5, "x\\u0000y", "grüße 🐎"]}},
    ],
    ids=["beyond doubles", "30 digits", "5000 digits", "odd keys"],
)
def test_payloads_come_back_as_they_were(queue: Queue, payload: Any) -> None:
    job = queue.get(queue.enqueue("t", payload))
    assert job is not None
    assert job.payload == payload


def test_bad_input_is_refused_before_anything_is_written(queue: Queue) -> None:
    with pytest.raises(PayloadInvalidError) as caught:
        queue.enqueue("t", {"items": [1, 2, 3, "a\x00b"]})
    assert caught.value.details["path"] == "payload.items[3]"
    assert "U+0000" in caught.value.message
    with pytest.raises(PayloadTooLargeError):
        queue.enqueue("t", "x" * (2 << 20))
    for attempts in (0, -1, 101, 2**31, 1.5, True, "5"):
        with pytest.raises(InvalidArgumentError) as refused:
            queue.enqueue("t", 1, EnqueueOptions(max_attempts=attempts))  # type: ignore[arg-type]
        assert refused.value.details["field"] == "maxAttempts"
    with pytest.raises(PolicyInvalidError):
        queue.enqueue("t", 1, EnqueueOptions(retry_policy={"type": "fixed"}))
    with pytest.raises(InvalidArgumentError):
        queue.enqueue("")
    with pytest.raises(PayloadInvalidError) as caught:
        queue.enqueue_many([NewJob("a"), NewJob("b", {"x": "\x00"})])
    assert caught.value.details["path"] == "jobs[1].payload.x"
    assert queue.counts().ready == 0


def test_enqueue_many_is_all_or_nothing_and_in_order(queue: Queue) -> None:
    made = queue.enqueue_many([NewJob("t", n) for n in range(250)])
    assert len(set(made)) == 250
    for n in (0, 249):
        job = queue.get(made[n])
        assert job is not None
        assert job.payload == n
    assert queue.enqueue_many([]) == []


def test_idempotency(queue: Queue) -> None:
    options = EnqueueOptions(idempotency_key=IdempotencyKey("order-7", ttl_ms=60_000))
    first = queue.enqueue("t", {"b": 1, "a": 2}, options)
    again = queue.enqueue("t", {"a": 2.0, "b": 1}, options)
    assert (again.id, again.replayed) == (first.id, True)
    with pytest.raises(IdempotencyConflictError) as caught:
        queue.enqueue("t", {"a": 3}, EnqueueOptions(idempotency_key="order-7"))
    assert caught.value.details["existingId"] == first.id
    assert caught.value.details["conflictingFields"] == ["payload"]


def test_enqueue_inside_the_caller_s_transaction(queue: Queue, url: str) -> None:
    statement = queue.enqueue_statement([NewJob("t", {"n": 1}), NewJob("t", {"n": 2})])
    assert len(statement.ids) == 2
    sql = statement.sql.replace("$1", "%s")
    with psycopg.connect(url) as connection:
        connection.execute(sql, statement.params)
        connection.rollback()
        assert queue.get(statement.ids[0]) is None
        connection.execute(sql, statement.params)
        connection.commit()
    found = [queue.get(id) for id in statement.ids]
    assert [job.payload for job in found if job] == [{"n": 1}, {"n": 2}]


def test_list_and_counts(queue: Queue) -> None:
    made = queue.enqueue_many(
        [NewJob("a", n, EnqueueOptions(tags=[f"n{n}"])) for n in range(5)] + [NewJob("b", 5, HOUR)]
    )
    first = queue.list(limit=4)
    assert [job.id for job in first.jobs] == [str(id) for id in reversed(made[2:])]
    assert first.jobs[0].payload is None
    assert first.jobs[0].has_payload
    rest = queue.list(limit=4, after=first.next, payload=True)
    assert [(job.id, job.payload) for job in rest.jobs] == [(made[1].id, 1), (made[0].id, 0)]
    assert rest.next is None
    assert [job.id for job in queue.list(JobFilter(state="scheduled")).jobs] == [made[5].id]
    assert [job.id for job in queue.list(JobFilter(tag="n3")).jobs] == [made[3].id]
    counts = queue.counts(JobFilter(type="a"))
    assert (counts.ready, counts.scheduled) == (5, 0)
    assert queue.counts().scheduled == 1
    with pytest.raises(InvalidArgumentError):
        queue.list(JobFilter(state="lost"))


def test_the_low_level_loop(queue: Queue) -> None:
    made = queue.enqueue("t", {"n": 2**60}, EnqueueOptions(max_attempts=3, tags=["x"]))
    assert queue.claim(["other"]) == []
    (claim,) = queue.claim(["t"], limit=5, lease_ms=30_000)
    assert (claim.id, claim.attempt, claim.payload, claim.tags) == (made.id, 1, {"n": 2**60}, ("x",))
    assert queue.heartbeat([claim], lease_ms=30_000) == ["accepted"]
    answer = queue.fail(claim, ValueError("not yet"), FailOptions(delay_ms=0))
    assert (answer.state, answer.delay_ms, answer.source) == ("ready", 0, "override")
    with pytest.raises(LeaseLostError):
        queue.complete(claim, 1)
    (second,) = queue.claim([("t", "1")])
    assert second.attempt == 2
    assert second.fence != claim.fence
    queue.release(second)
    (third,) = queue.claim([{"type": "t"}])
    assert third.attempt == 2
    assert queue.complete(third, {"ok": True}).state == "succeeded"
    assert queue.complete(third, {"ok": True}).state == "succeeded"
    outcome = queue.wait(made, 1000)
    assert (outcome.state, outcome.result, outcome.id) == ("succeeded", {"ok": True}, made.id)
    kinds = [entry.kind for entry in queue.timeline(made)]
    assert kinds[0] == "enqueued"
    assert kinds[-1] == "succeeded"
    retry = next(entry for entry in queue.timeline(made) if entry.kind == "retry_scheduled")
    assert (retry.attempt, retry.next_attempt, retry.delay_ms, retry.source) == (1, 2, 0, "override")


def test_a_mark_on_the_cause_chain_is_final(queue: Queue) -> None:
    made = queue.enqueue("t", 1, EnqueueOptions(max_attempts=5))
    (claim,) = queue.claim(["t"])
    error = RuntimeError("while charging")
    error.__cause__ = NonRetryableError("card stolen")
    answer = queue.fail(claim, error)
    assert (answer.state, answer.reason) == ("failed", "non_retryable")
    job = queue.get(made)
    assert job is not None
    assert job.last_error is not None
    assert (job.last_error.name, job.last_error.message) == ("RuntimeError", "while charging")
    assert job.last_error.causes[0].name == "NonRetryableError"


def test_cancel(queue: Queue) -> None:
    made = queue.enqueue("t", 1, HOUR)
    assert queue.cancel(made, reason="not needed", actor="ops") == "canceled"
    assert queue.cancel(made) == "already_terminal"
    assert queue.cancel(str(uuid.uuid4())) == "not_found"
    assert queue.wait(made, 0).state == "canceled"
    assert not queue.wait(made, 0).started


def test_wait_for_a_job_that_does_not_end(queue: Queue) -> None:
    made = queue.enqueue("t", 1)
    with pytest.raises(WaitTimeoutError):
        queue.wait(made, 100)
    job = queue.get(made)
    assert job is not None
    assert job.state == "ready"


def test_redrive(queue: Queue) -> None:
    made = queue.enqueue_many([NewJob("t", n, EnqueueOptions(max_attempts=1)) for n in range(3)])
    for claim in queue.claim(["t"], limit=3):
        queue.fail(claim, "down")
    preview = queue.redrive_preview(JobFilter(type="t"))
    assert (preview.count, preview.with_endpoint, preview.uncertain) == (3, 0, 0)
    (one,) = queue.redrive(made[0], reason="fixed", actor="ops", request_id="r1")
    assert queue.redrive(made[0], reason="fixed", actor="ops", request_id="r1") == [one]
    assert one.source_id == made[0].id
    rest = queue.redrive(JobFilter(type="t"), reason="fixed", actor="ops", request_id="r2")
    assert {pair.source_id for pair in rest} == {made[1].id, made[2].id}
    source = queue.get(made[0])
    assert source is not None
    assert source.redriven_to == (one.id,)
    copy = queue.get(one.id)
    assert copy is not None
    assert (copy.source_id, copy.payload, copy.attempt) == (made[0].id, 0, 0)


def test_preview_of_a_policy(queue: Queue) -> None:
    policy = {"type": "decorrelated-jitter", "baseDelayMs": 1_000, "maxDelayMs": 60_000}
    preview = queue.preview_policy(policy, job_id="01890a5d-ac96-774b-bcce-b302099a8057", attempts=6)
    assert preview.policy == policy
    assert preview.delays_ms == (2075, 1144, 1356, 3428, 6033, 15453)
    with pytest.raises(PolicyInvalidError):
        queue.preview_policy({"type": "linear"})


def test_prune_and_workers(queue: Queue) -> None:
    assert queue.prune(limit=10).jobs == 0
    assert queue.workers.list() == []


def test_grants(queue: Queue, url: str, schema: str) -> None:
    role = f"{schema}_producer"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f'create role "{role}" login')
        try:
            queue.grant(role, "producer")
            connection.execute(f'set role "{role}"')
            statement = queue.enqueue_statement([NewJob("t")])
            connection.execute(statement.sql.replace("$1", "%s"), statement.params)
            connection.execute("reset role")
            queue.revoke(role, "producer")
        finally:
            connection.execute("reset role")
            connection.execute(f'drop owned by "{role}"')
            connection.execute(f'drop role "{role}"')
    assert queue.get(statement.ids[0]) is not None


def test_closed(url: str, schema: str) -> None:
    queue = Queue.connect(url, schema=schema)
    queue.close()
    queue.close()
    with pytest.raises(ClosedError):
        queue.counts()


def test_no_secret_is_told() -> None:
    for url in (
        "postgresql://u:S3cr3t!@127.0.0.1:1/x",
        "postgresql://u:S3cr3t%21@[bad",
        "postgresql://u:S3cr3t%21@h/x?sslmode=odd",
    ):
        with pytest.raises(Exception) as caught:
            Queue.connect(url, connect_timeout_ms=500).migrate()
        for text in (str(caught.value), repr(caught.value), str(getattr(caught.value, "details", ""))):
            assert "S3cr3t" not in text


def test_refused_connections_are_typed() -> None:
    with (
        pytest.raises(ConnectionLostError),
        Queue.connect("postgresql://u@127.0.0.1:1/x", connect_timeout_ms=300) as queue,
    ):
        queue.counts()


def test_many_threads_share_a_queue(queue: Queue) -> None:
    made: list[Enqueued] = []

    def enqueue() -> None:
        made.extend(queue.enqueue("t", n) for n in range(10))

    threads = [threading.Thread(target=enqueue) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(made)) == 120
    assert queue.counts().ready == 120


def test_a_signal_ends_a_wait_at_once(queue: Queue) -> None:
    made = queue.enqueue("t", 1)

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        began = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            queue.wait(made, 30_000)
        assert time.monotonic() - began < 5
    finally:
        signal.signal(signal.SIGALRM, before)
    # The connection goes on working.
    assert queue.counts().ready == 1


@pytest.fixture
def tracked() -> Callable[[], int]:
    """How many descriptors this process has open."""
    import os

    return lambda: len(os.listdir("/proc/self/fd"))


def test_descriptors_do_not_pile_up(url: str, schema: str, tracked: Callable[[], int]) -> None:
    with Queue.connect(url, schema=schema) as queue:
        queue.migrate()
        for _ in range(20):
            queue.counts()
        before = tracked()
        for _ in range(200):
            queue.counts()
        # What earlier tests have let go of may still be closing, and the pool may grow by its few connections.
        assert tracked() < before + 20
