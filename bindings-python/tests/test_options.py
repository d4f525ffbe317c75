"""Options and arguments as the core gets them."""

from __future__ import annotations

import json
import math
import pickle
from datetime import datetime, timedelta, timezone
from typing import Any, cast

import pytest

from drayhorse import (
    Enqueued,
    EnqueueOptions,
    FailOptions,
    IdempotencyKey,
    InvalidArgumentError,
    JobFilter,
    NewJob,
    NonRetryableError,
    PolicyInvalidError,
    RetryableError,
    results,
)
from drayhorse import _verbs as verbs
from drayhorse.options import MISSING


def sent(request: verbs.Request[Any]) -> Any:
    return json.loads(request.args)


CLAIM = results.Claim("id-1", "f/1", "q", "t", "1", 1, 3)


def test_absent_and_none() -> None:
    assert sent(verbs.enqueue("t", MISSING, None)) == {"type": "t"}
    assert sent(verbs.enqueue("t", None, EnqueueOptions())) == {"type": "t", "payload": None, "options": {}}
    assert sent(verbs.enqueue("t", "", EnqueueOptions(max_attempts=0)))["options"] == {"maxAttempts": 0}


def test_every_option_has_its_name() -> None:
    at = datetime(2026, 3, 4, 5, 6, 7, 89, timezone(timedelta(hours=2)))
    options = EnqueueOptions(
        queue="q",
        version="2",
        priority=-5,
        run_at=at,
        delay_ms=0,
        deadline=at,
        deadline_ms=1,
        timeout_ms=2,
        max_attempts=3,
        retry_policy={"type": "fixed", "delayMs": 1},
        tags=("a", "b"),
        idempotency_key=IdempotencyKey("k", ttl_ms=9),
        endpoint="e",
        after={"jobId": "j", "on": "failed"},
        synthetic=True,
    )
    assert sent(verbs.enqueue("t", 1, options))["options"] == {
        "queue": "q",
        "version": "2",
        "priority": -5,
        "runAt": "2026-03-04T03:06:07.000089Z",
        "delayMs": 0,
        "deadline": "2026-03-04T03:06:07.000089Z",
        "deadlineMs": 1,
        "timeoutMs": 2,
        "maxAttempts": 3,
        "retryPolicy": {"type": "fixed", "delayMs": 1},
        "tags": ["a", "b"],
        "idempotencyKey": {"key": "k", "ttlMs": 9},
        "endpoint": "e",
        "after": {"jobId": "j", "on": "failed"},
        "synthetic": True,
    }
    assert sent(verbs.enqueue("t", 1, EnqueueOptions(idempotency_key="k")))["options"] == {
        "idempotencyKey": {"key": "k"}
    }


@pytest.mark.parametrize(
    ("options", "field"),
    [
        (EnqueueOptions(run_at=datetime(2026, 1, 1)), "runAt"),
        (EnqueueOptions(max_attempts=cast(Any, math.inf)), "maxAttempts"),
        (EnqueueOptions(queue="\ud800"), "queue"),
        (EnqueueOptions(tags=["\ud800"]), "tags[0]"),
    ],
)
def test_what_has_no_json_form_is_refused_by_name(options: EnqueueOptions, field: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        verbs.enqueue("t", 1, options)
    assert caught.value.details["field"] == field
    with pytest.raises(InvalidArgumentError) as caught:
        verbs.enqueue_many([NewJob("t"), NewJob("t", 1, options)])
    assert caught.value.details["field"] == f"jobs[1].{field}"


def test_policies_are_refused_as_policies() -> None:
    with pytest.raises(PolicyInvalidError) as caught:
        verbs.enqueue("t", 1, EnqueueOptions(retry_policy={"type": "fixed", "delayMs": math.nan}))
    assert caught.value.details["path"] == "retryPolicy.delayMs"


def test_options_must_be_options() -> None:
    with pytest.raises(InvalidArgumentError):
        verbs.enqueue("t", 1, cast(Any, {"maxAttempts": 3}))


def test_many_jobs_in_either_form() -> None:
    jobs: list[NewJob | dict[str, object]] = [
        NewJob("a"),
        {"type": "b", "payload": None},
        {"type": "c", "options": EnqueueOptions(priority=1)},
    ]
    assert sent(verbs.enqueue_many(jobs)) == {
        "jobs": [{"type": "a"}, {"type": "b", "payload": None}, {"type": "c", "options": {"priority": 1}}]
    }
    for wrong in ({"payload": 1}, {"type": "a", "queue": "q"}):
        with pytest.raises(InvalidArgumentError, match=r"jobs\[0\]"):
            verbs.enqueue_many([wrong])


def test_an_enqueued_is_its_id() -> None:
    made = Enqueued("0192", replayed=True)
    assert (made, str(made), f"{made}", made.id, made.replayed) == ("0192", "0192", "0192", "0192", True)
    assert type(str(made)) is str
    assert type(made.id) is str
    assert sent(verbs.get(made)) == {"id": "0192"}
    again = pickle.loads(pickle.dumps(made))
    assert (again, again.replayed) == (made, True)
    assert repr(made) == "Enqueued(id='0192', replayed=True)"


def test_filters() -> None:
    assert sent(verbs.list_jobs(JobFilter(state="failed", uncertain=False), 5, None, False)) == {
        "filter": {"state": "failed", "uncertain": False},
        "page": {"limit": 5},
        "payload": False,
    }
    assert sent(verbs.counts(None)) == {"filter": {}}


def test_failures_of_claims() -> None:
    told = sent(verbs.fail(CLAIM, ValueError("bad"), FailOptions(delay_ms=0)))
    assert told["claim"] == {"id": "id-1", "fence": "f/1"}
    assert told["delayMs"] == 0
    assert told["error"]["name"] == "ValueError"
    assert "retryable" not in told
    told = sent(verbs.fail(CLAIM, NonRetryableError("no", uncertain=True), FailOptions()))
    assert (told["retryable"], told["uncertain"]) == (False, True)
    told = sent(verbs.fail(CLAIM, NonRetryableError("no"), FailOptions(retryable=True)))
    assert told["retryable"] is True
    told = sent(verbs.fail(CLAIM, RetryableError("x", retry_after_ms=math.nan), FailOptions()))
    assert told["retryAfterMs"] == "nan"
    assert sent(verbs.fail(CLAIM, "why", FailOptions()))["error"] == {"name": "Error", "message": "why"}


def test_handlers_of_claims() -> None:
    request = verbs.claim(["a", ("b", "2"), {"type": "c"}], ["q"], 3, None)
    assert sent(request) == {
        "queues": ["q"],
        "handlers": [{"type": "a", "version": "1"}, {"type": "b", "version": "2"}, {"type": "c", "version": "1"}],
        "limit": 3,
    }
