"""What an exception means: marks along the cause chain, classifiers, and how an error is told."""

from __future__ import annotations

import asyncio
import concurrent.futures
import math
import sys
from types import SimpleNamespace
from typing import Any, cast

import pytest

from drayhorse import ErrorDecision, Job, JobCancelled, NonRetryableError, RetryableError
from drayhorse._decision import Classifier, chain, decide, error_report, is_cancellation, marked_error

JOB = cast(Job, SimpleNamespace(id="x"))


def raised(error: BaseException, *causes: BaseException) -> BaseException:
    """The error after `raise error from causes[0]`, and so on."""
    for current, cause in zip((error, *causes), causes, strict=False):
        current.__cause__ = cause
    return error


def decided(error: BaseException, *classifiers: Classifier | None) -> tuple[dict[str, object], list[BaseException]]:
    complaints: list[BaseException] = []
    return decide(error, JOB, classifiers, complaints.append), complaints


def test_a_mark_is_found_on_the_explicit_chain_only() -> None:
    assert marked_error(ValueError()) is None
    inner = NonRetryableError("no account")
    assert marked_error(raised(RuntimeError(), KeyError(), inner)) is inner
    implicit = RuntimeError("while cleaning up")
    implicit.__context__ = inner
    assert marked_error(implicit) is None


def test_the_outermost_mark_wins() -> None:
    outer = RetryableError("soon", retry_after_ms=5000)
    assert decided(raised(ValueError(), outer, NonRetryableError()))[0] == {"retryable": True, "retryAfterMs": 5000}
    assert decided(raised(ValueError(), NonRetryableError(uncertain=True), outer))[0] == {
        "retryable": False,
        "uncertain": True,
    }


def test_cycles_end_and_depth_is_bounded() -> None:
    a, b = ValueError("a"), ValueError("b")
    raised(a, b, a)
    assert list(chain(a)) == [a, b]
    links: list[BaseException] = [ValueError(n) for n in range(40)]
    assert len(list(chain(raised(links[0], *links[1:])))) == 32
    links[31] = NonRetryableError()
    assert marked_error(raised(links[0], *links[1:])) is links[31]
    links[31], links[32] = ValueError(), NonRetryableError()
    assert marked_error(raised(links[0], *links[1:])) is None


@pytest.mark.skipif(sys.version_info < (3, 11), reason="exception groups are a builtin since Python 3.11")
def test_groups_are_read_in_pre_order() -> None:
    group = __import__("builtins").ExceptionGroup
    first, second = RetryableError(), NonRetryableError()
    assert marked_error(group("g", [ValueError(), group("h", [raised(KeyError(), first)]), second])) is first
    assert marked_error(group("g", [second, first])) is second
    assert marked_error(raised(group("g", [second]), first)) is first


@pytest.mark.parametrize("hint", [0, -1, 1.5, 10**12, True, "soon"])
def test_hints_are_passed_on_as_they_are(hint: Any) -> None:
    assert decided(RetryableError("x", retry_after_ms=hint))[0] == {"retryable": True, "retryAfterMs": hint}


def test_hints_without_a_json_form_become_text() -> None:
    assert decided(RetryableError("x", retry_after_ms=math.nan))[0] == {"retryable": True, "retryAfterMs": "nan"}
    assert decided(RetryableError("x", retry_after_ms=cast(Any, {1})))[0] == {"retryable": True, "retryAfterMs": "{1}"}


def test_classifiers_are_asked_in_order() -> None:
    def no(error: BaseException, job: object) -> ErrorDecision:
        return ErrorDecision(retryable=False, uncertain=True)

    def silent(error: BaseException, job: object) -> None:
        return None

    def later(error: BaseException, job: object) -> dict[str, object]:
        return {"retryable": True, "retry_after_ms": 2000}

    assert decided(ValueError(), no, later) == ({"retryable": False, "uncertain": True}, [])
    assert decided(ValueError(), silent, later) == ({"retryable": True, "retryAfterMs": 2000}, [])
    assert decided(ValueError(), None, None) == ({}, [])
    assert decided(raised(ValueError(), NonRetryableError()), later) == ({"retryable": False}, [])


@pytest.mark.parametrize(
    "answer", ["yes", {"retryable": 1}, {"retry": True}, {"retryable": True, "delay": 3}, object()]
)
def test_nonsense_is_told_and_changes_nothing(answer: Any) -> None:
    said, complaints = decided(ValueError(), lambda error, job: answer, lambda error, job: ErrorDecision(False))
    assert said == {}
    assert [type(complaint) for complaint in complaints] == [TypeError]


def test_a_classifier_that_fails_is_told_and_changes_nothing() -> None:
    def broken(error: BaseException, job: object) -> ErrorDecision:
        raise SystemExit(3)

    said, complaints = decided(ValueError(), broken)
    assert said == {}
    assert [type(complaint) for complaint in complaints] == [SystemExit]


def test_cancellations_are_known() -> None:
    for error in (asyncio.CancelledError(), concurrent.futures.CancelledError(), JobCancelled()):
        assert is_cancellation(error)
        assert is_cancellation(raised(ValueError("wrapped"), error))
    assert not is_cancellation(TimeoutError())


def test_errors_are_told_whatever_they_are() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no words")

    with pytest.raises(ValueError, match="bad") as caught:
        raise ValueError("bad \udcff byte \x00") from KeyError("inner")
    told = error_report(caught.value)
    assert told["name"] == "ValueError"
    assert told["message"] == "bad \\udcff byte \x00"
    assert "test_errors_are_told" in str(told["stack"])
    assert told["causes"] == [{"name": "KeyError", "message": "'inner'"}]
    assert "RuntimeError" in str(error_report(Mute())["message"])
