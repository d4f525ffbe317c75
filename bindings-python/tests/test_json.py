"""JSON as Python means it: what is kept digit by digit, and how a refusal names the place."""

from __future__ import annotations

import datetime
import decimal
import enum
import json
import math
from typing import Any

import pytest

from drayhorse import PayloadInvalidError
from drayhorse._json import decode, encode


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        0,
        -1,
        1970670598291982290,
        9007199254740993,
        18446744073709551615,
        123456789012345678901234567890,
        -(10**1000),
        0.1,
        -1e-300,
        "",
        "grüße 🐎",
        "\x01\x7f\u2028",
        {"": 1, "a b": [1, [2, {"c": None}]]},
        [],
        {},
    ],
)
def test_round_trip(value: Any) -> None:
    assert decode(encode(value)) == value


@pytest.mark.parametrize("digits", [5000, 9000])
def test_integers_beyond_the_interpreter_s_own_bound(digits: int) -> None:
    value = 1 - 10**digits
    text = encode({"n": value})
    found = decode(text)
    assert isinstance(found, dict)
    assert found["n"] == value


def test_both_writers_agree() -> None:
    class Colour(enum.IntEnum):
        RED = 3

    value = {
        "a": [1, 2.5, True, None, 'x"\\\n'],
        7: "int",
        1.5: "float",
        None: "none",
        True: "bool",
        "e": Colour.RED,
        "t": (1,),
    }
    fast = encode(value)
    # A huge integer forces the slow writer for the whole.
    slow = encode({**value, "big": 10**5000})
    assert slow.startswith(fast[:-1])
    assert json.loads(fast)["e"] == 3


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (math.nan, "payload: NaN and infinities cannot be stored"),
        ({"items": [0, 1, 2, math.inf]}, "payload.items[3]: NaN and infinities cannot be stored"),
        ({"a b": [-math.inf]}, 'payload["a b"][0]: NaN and infinities cannot be stored'),
        ({"a": "x\udcff"}, "payload.a: a lone surrogate cannot be stored; remove it or encode it"),
        (
            {"o": {"\ud800": 1}},
            "payload.o: a key holds a lone surrogate, which cannot be stored; remove it or encode it",
        ),
        (
            {"total": decimal.Decimal("1.5")},
            "payload.total: a Decimal is not a JSON value; convert it, to a string for example",
        ),
        (
            {"at": [datetime.datetime(2026, 1, 1)]},
            "payload.at[0]: a datetime is not a JSON value; convert it, to a string for example",
        ),
        (b"x", "payload: a bytes is not a JSON value; convert it, to a string for example"),
        ({"s": {1}}, "payload.s: a set is not a JSON value; convert it, to a string for example"),
        ({"k": {(1, 2): 3}}, "payload.k: a key is a tuple, which JSON does not have; use a string"),
    ],
)
def test_refusals_name_the_place(value: Any, message: str) -> None:
    with pytest.raises(PayloadInvalidError) as caught:
        encode(value)
    assert caught.value.message == message
    assert caught.value.details["path"] == message.split(": ")[0]
    assert caught.value.code == "payload_invalid"


def test_circles_and_depth_end() -> None:
    circle: list[Any] = []
    circle.append(circle)
    with pytest.raises(PayloadInvalidError, match="nesting over 100"):
        encode({"c": circle})
    deep: Any = 1
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(PayloadInvalidError, match="nesting over 100"):
        encode(deep)
