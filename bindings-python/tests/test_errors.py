"""The classes of `drayhorse.errors` against the table of the core."""

from __future__ import annotations

import json
import pickle

import drayhorse
from drayhorse import DrayhorseError, IdempotencyConflictError, _native, errors
from drayhorse.errors import BY_CODE, from_json, make_error


def class_name(code: str) -> str:
    return "".join(word.capitalize() for word in code.split("_")) + "Error"


def test_a_class_for_each_row_and_no_other() -> None:
    table = {row["code"]: row for row in json.loads(_native.Client.error_table())}
    assert set(BY_CODE) == set(table)
    for code, kind in BY_CODE.items():
        assert kind.__name__ == class_name(code)
        assert kind.retryable is table[code]["retryable"]
        assert kind.__doc__
        assert getattr(drayhorse, kind.__name__) is kind
    assert set(errors.__all__) == {kind.__name__ for kind in BY_CODE.values()} | {"DrayhorseError"}


def test_an_error_of_the_core_becomes_its_class() -> None:
    text = '{"code":"idempotency_conflict","number":5,"message":"m","retryable":false,"details":{"existingId":"x"}}'
    error = from_json(text)
    assert isinstance(error, IdempotencyConflictError)
    assert (str(error), error.code, error.retryable, error.details) == (
        "m",
        "idempotency_conflict",
        False,
        {"existingId": "x"},
    )


def test_a_code_of_a_later_version_keeps_its_name() -> None:
    error = make_error("not_invented_yet", "m")
    assert type(error) is DrayhorseError
    assert error.code == "not_invented_yet"
    assert DrayhorseError.code == "internal"


def test_errors_survive_pickling() -> None:
    for error in (make_error("lease_lost", "m", {"a": 1}), make_error("new", "n")):
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is type(error)
        assert (again.code, again.message, again.details) == (error.code, error.message, error.details)
