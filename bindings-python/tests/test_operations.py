"""What operators do: endpoints, queues, runs, replay; in both kinds of queue."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from drayhorse import (
    REMOVE,
    After,
    AsyncQueue,
    CircuitSettings,
    EnqueueOptions,
    InvalidArgumentError,
    JobFilter,
    NewJob,
    Queue,
    RateLimit,
    WrongStateError,
)
from drayhorse import _gate_verbs as verbs
from drayhorse.gates import EndpointSnapshot

ONCE = EnqueueOptions(endpoint="pay", max_attempts=1)


def test_absent_and_removed_settings() -> None:
    def sent(*settings: Any) -> Any:
        return json.loads(verbs.configure("endpoints", EndpointSnapshot, "pay", "ada", None, *settings).args)

    assert sent(None, None) == {"name": "pay", "actor": "ada"}
    assert sent(REMOVE, 3, REMOVE) == {
        "name": "pay",
        "actor": "ada",
        "rateLimit": None,
        "maxConcurrency": 3,
        "retryPolicy": None,
    }
    assert sent(RateLimit(10, 1000, burst=1), None, None, CircuitSettings(cooldown_ms=5))["circuit"] == {
        "cooldownMs": 5
    }


def test_endpoints(queue: Queue) -> None:
    assert queue.endpoints.get("pay") is None
    assert queue.endpoints.list() == []
    made = queue.endpoints.configure(
        "pay",
        actor="ada",
        reason="contract",
        rate_limit=RateLimit(100, 60_000, burst=10),
        max_concurrency=3,
        retry_policy={"type": "standard"},
        circuit=CircuitSettings(failure_threshold=2),
    )
    assert (made.rate_limit, made.max_concurrency) == (RateLimit(100, 60_000, 10), 3)
    assert made.retry_policy is not None
    assert made.retry_policy["maxAttempts"] == 5
    assert (made.circuit.state, made.circuit.failure_threshold, made.circuit.cooldown_ms) == ("closed", 2, 60_000)
    changed = queue.endpoints.configure("pay", actor="ada", rate_limit=REMOVE)
    assert (changed.rate_limit, changed.max_concurrency) == (None, 3)

    queue.enqueue_many([NewJob("t", n, ONCE) for n in range(3)])
    paused = queue.endpoints.pause("pay", actor="ada", reason="migration")
    assert paused.paused is not None
    assert (paused.paused.actor, paused.paused.reason) == ("ada", "migration")
    assert paused.paused.at.tzinfo is not None
    assert queue.claim(["t"], limit=9) == []
    assert queue.endpoints.resume("pay", actor="ada").paused is None
    for claim in queue.claim(["t"], limit=2):
        queue.fail(claim, "down")
    circuit = queue.endpoints.list()[0].circuit
    assert (circuit.state, circuit.failures) == ("open", 2)
    assert circuit.probe_at is not None
    assert circuit.probe_at.tzinfo is not None
    (job,) = queue.list(JobFilter(state="ready")).jobs
    assert "circuit" in {reason.kind for reason in job.waiting}

    assert queue.endpoints.force_close("pay", actor="ada").circuit.forced == "closed"
    assert queue.endpoints.force_open("pay", actor="ada").circuit.forced == "open"
    assert queue.endpoints.reset("pay", actor="ada").circuit.state == "closed"
    found = queue.endpoints.get("pay")
    assert found is not None
    assert {"configured", "paused", "resumed", "circuit_opened", "circuit_forced", "circuit_reset"} <= {
        event.event for event in found.events
    }
    with pytest.raises(InvalidArgumentError):
        queue.endpoints.pause("pay", actor="")


def test_queues(queue: Queue) -> None:
    queue.queues.configure("bulk", actor="ada", max_concurrency=1)
    assert queue.queues.pause("bulk", actor="ada").paused is not None
    assert queue.queues.resume("bulk", actor="ada").paused is None
    queue.enqueue_many([NewJob("t", n, EnqueueOptions(queue="bulk")) for n in range(3)])
    assert len(queue.claim(["t"], queues=["bulk"], limit=9)) == 1
    (found,) = queue.queues.list()
    assert (found.name, found.max_concurrency, found.slots_used, found.running, found.waiting) == ("bulk", 1, 1, 1, 2)
    assert queue.queues.get("other") is None


def test_replay(queue: Queue) -> None:
    made = queue.enqueue("t", {"n": 1}, ONCE)
    with pytest.raises(WrongStateError):
        queue.replay(made, reason="again", actor="ada", request_id="r0")
    (claim,) = queue.claim(["t"])
    queue.complete(claim, "done")
    preview = queue.replay_preview(made)
    assert (preview.state, preview.replayable, preview.payload) == ("succeeded", True, {"n": 1})
    assert (preview.risks.started, preview.risks.acknowledgement_needed, preview.risks.circuit) == (
        True,
        True,
        "closed",
    )
    assert preview.would_run.endpoint == "pay"
    with pytest.raises(InvalidArgumentError):
        queue.replay(made, reason="again", actor="ada", request_id="r1")
    (pair,) = queue.replay(made, reason="again", actor="ada", request_id="r1", acknowledge_duplicate_risk=True)
    job = queue.get(pair.id)
    assert job is not None
    assert (job.source_id, job.max_attempts, job.idempotency_key) == (made.id, 1, made.id)
    assert queue.replay_preview(made).risks.repeated_before == (pair.id,)
    assert queue.replay_preview(JobFilter(type="t")).count == 0


def test_runs(queue: Queue) -> None:
    run = queue.start_run("ship")
    first = run.enqueue("t", 1)
    then = run.enqueue("t", 2, after=After(first))
    fallback = run.enqueue("t", 3, EnqueueOptions(priority=1), after=After(first, on="failed"))
    states = [job.state for job in (queue.get(id) for id in (first, then, fallback)) if job]
    assert states == ["ready", "blocked", "blocked"]
    for _ in range(2):
        (claim,) = queue.claim(["t"])
        assert claim.run_id == run.id
        queue.complete(claim)
    found = run.finish()
    assert (found.state, found.name, found.jobs) == ("succeeded", "ship", {"succeeded": 2, "skipped": 1})
    assert set(found.job_ids) == {first, then, fallback}
    assert run.get() == found
    with pytest.raises(WrongStateError):
        run.enqueue("t", 4)


def test_the_same_awaited(url: str, schema: str) -> None:
    async def main() -> None:
        async with await AsyncQueue.connect(url, schema=schema) as queue:
            await queue.migrate()
            assert (await queue.endpoints.pause("pay", actor="ada")).paused is not None
            assert (await queue.queues.get("default")) is None
            run = await queue.start_run("ship")
            made = await run.enqueue("t", 1, after=None)
            assert (await run.finish()).job_ids == (made.id,)
            assert (await queue.replay_preview(made)).replayable is False
            assert (await queue.replay_preview(JobFilter())).count == 0

    asyncio.run(main())
