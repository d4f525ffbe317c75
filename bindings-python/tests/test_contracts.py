"""Tool contracts: published once, read back, applied to jobs; in both kinds of queue."""

from __future__ import annotations

import asyncio
import json

import pytest

from drayhorse import (
    AsyncQueue,
    ContractConflictError,
    ContractViolationError,
    EnqueueOptions,
    InvalidArgumentError,
    PolicyInvalidError,
    Queue,
)
from drayhorse import _contract_verbs as verbs

INPUT = {"type": "object", "properties": {"amount": {"type": "integer"}}, "required": ["amount"]}


def test_what_is_sent() -> None:
    bare = verbs.publish("charge", None, None, None, None, None, None, None, None)
    assert json.loads(bare.args) == {"type": "charge"}
    full = verbs.publish("charge", "2", "pay", INPUT, False, {"type": "standard"}, 3, 5000, "ada")
    assert json.loads(full.args) == {
        "type": "charge",
        "version": "2",
        "endpoint": "pay",
        "inputSchema": INPUT,
        "outputSchema": False,
        "retryPolicy": {"type": "standard"},
        "maxAttempts": 3,
        "timeoutMs": 5000,
        "actor": "ada",
    }
    assert json.loads(verbs.list_contracts(None).args) == {}
    assert json.loads(verbs.list_contracts(["charge", ("charge", "2")]).args) == {
        "handlers": [{"type": "charge", "version": "1"}, {"type": "charge", "version": "2"}]
    }
    with pytest.raises(InvalidArgumentError, match="inputSchema"):
        verbs.publish("charge", None, None, {"const": {1, 2}}, None, None, None, None, None)


def test_published_once(queue: Queue) -> None:
    assert queue.contracts.get("charge") is None
    assert queue.contracts.list() == []
    made = queue.contracts.publish(
        "charge", version="2", endpoint="pay", input_schema=INPUT, retry_policy={"type": "standard"}, actor="ada"
    )
    assert (made.type, made.version, made.endpoint, made.actor, made.replayed) == ("charge", "2", "pay", "ada", False)
    assert made.input_schema == INPUT
    assert made.output_schema is None
    assert made.retry_policy is not None
    assert made.retry_policy["type"] == "custom"
    assert made.published_at.tzinfo is not None
    again = queue.contracts.publish(
        "charge", version="2", endpoint="pay", input_schema=INPUT, retry_policy={"type": "standard"}
    )
    assert (again.replayed, again.digest, again.published_at) == (True, made.digest, made.published_at)
    with pytest.raises(ContractConflictError) as conflict:
        queue.contracts.publish("charge", version="2", endpoint="other", input_schema=INPUT)
    assert set(conflict.value.details["conflictingFields"]) == {"endpoint", "retryPolicy"}  # type: ignore[call-overload]

    queue.contracts.publish("charge", timeout_ms=10, max_attempts=2)
    found = queue.contracts.get("charge")
    assert found is not None
    assert (found.version, found.timeout_ms, found.max_attempts) == ("1", 10, 2)
    assert [one.version for one in queue.contracts.list()] == ["1", "2"]
    assert [one.digest for one in queue.contracts.list([("charge", "2"), "other"])] == [made.digest]
    with pytest.raises(PolicyInvalidError):
        queue.contracts.publish("charge", version="3", retry_policy={"type": "linear"})
    with pytest.raises(InvalidArgumentError):
        queue.contracts.publish("charge", version="3", input_schema={"type": "no such type"})


def test_applied_to_jobs(queue: Queue) -> None:
    queue.contracts.publish("charge", endpoint="pay", input_schema=INPUT, max_attempts=2, timeout_ms=9000)
    with pytest.raises(ContractViolationError) as violation:
        queue.enqueue("charge", {"amount": "much"})
    assert violation.value.details["path"] == "payload.amount"
    job = queue.get(queue.enqueue("charge", {"amount": 3}))
    assert job is not None
    assert (job.endpoint, job.max_attempts, job.timeout_ms) == ("pay", 2, 9000)
    explicit = queue.get(queue.enqueue("charge", {"amount": 3}, EnqueueOptions(endpoint="other", max_attempts=7)))
    assert explicit is not None
    assert (explicit.endpoint, explicit.max_attempts) == ("other", 7)


def test_the_same_awaited(url: str, schema: str) -> None:
    async def main() -> None:
        async with await AsyncQueue.connect(url, schema=schema) as queue:
            await queue.migrate()
            made = await queue.contracts.publish("charge", output_schema=True)
            found = await queue.contracts.get("charge", "1")
            assert found is not None
            assert (found.digest, found.output_schema) == (made.digest, True)
            assert await queue.contracts.list(["charge"]) == [found]

    asyncio.run(main())
