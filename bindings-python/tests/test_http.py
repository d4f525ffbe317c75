"""Decisions on HTTP answers, from numbers and from the responses of libraries."""

from __future__ import annotations

from datetime import datetime, timezone
from email.message import Message
from types import SimpleNamespace
from typing import Any

import pytest

from drayhorse import ErrorDecision, HttpDecision, InvalidArgumentError, decision_from_response, http_decision

NOW = datetime(2026, 3, 4, 5, 6, 7, tzinfo=timezone.utc)


@pytest.mark.parametrize(
    ("status", "idempotent", "retryable", "uncertain"),
    [
        (429, True, True, False),
        (503, False, True, False),
        (500, True, True, False),
        (500, False, False, True),
        (404, True, False, False),
        (501, True, False, False),
        (200, True, False, False),
    ],
)
def test_statuses(status: int, idempotent: bool, retryable: bool, uncertain: bool) -> None:
    decision = http_decision(status, idempotent=idempotent)
    assert (decision.retryable, decision.uncertain, decision.retry_after_ms) == (retryable, uncertain, None)
    assert decision.reason
    assert isinstance(decision, ErrorDecision)


def test_failures_and_switches() -> None:
    assert http_decision(failure="not_sent").retryable
    assert http_decision(failure="after_send", idempotent=False).uncertain
    assert not http_decision(409).retryable
    assert http_decision(409, conflict_means_in_progress=True).retryable
    for wrong in ({}, {"status": 200, "failure": "not_sent"}, {"status": 99}, {"failure": "lost"}):
        with pytest.raises(InvalidArgumentError):
            http_decision(**wrong)


@pytest.mark.parametrize(
    ("value", "ms"),
    [
        ("120", 120_000),
        (" 5 ", 5_000),
        ("0", None),
        ("-1", None),
        ("1.5", None),
        ("soon", None),
        ("9" * 30, 86_400_000),
        ("Wed, 04 Mar 2026 05:07:37 GMT", 90_000),
        ("Wed, 21 Oct 2015 07:28:00 GMT", None),
        (b"7", 7_000),
        (["2", "9"], 9_000),
        (None, None),
        ("\udcff", None),
    ],
)
def test_retry_after(value: Any, ms: int | None) -> None:
    assert http_decision(503, headers={"retry-AFTER": value}, now=NOW).retry_after_ms == ms


def test_responses_of_libraries() -> None:
    message = Message()
    message["Retry-After"] = "3"
    message["Retry-After"] = "4"
    multi = SimpleNamespace(multi_items=lambda: [("retry-after", "5"), ("retry-after", "6")], items=dict)
    pairs = [("Retry-After", "7")]
    for response, ms in (
        (SimpleNamespace(status_code=503, headers={"Retry-After": "2"}), 2_000),
        (SimpleNamespace(status=503, headers=message), 4_000),
        (SimpleNamespace(status_code=503, headers=multi), 6_000),
        (SimpleNamespace(status=503, headers=pairs), 7_000),
        (SimpleNamespace(status=503), None),
    ):
        assert decision_from_response(response) == HttpDecision(True, ms, False, http_decision(503).reason)
    with pytest.raises(InvalidArgumentError):
        decision_from_response(object())
