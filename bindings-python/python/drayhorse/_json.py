"""JSON as it crosses to the core: integers of any size, and a path for whatever cannot be kept.

The standard encoder does the work. Only when it refuses does the slow writer below look for the value at fault, to
name it (`payload.items[3]: ...`); it also writes integers that are too long for `str`. What PostgreSQL alone cannot
keep (U+0000, the size) is refused by the core, in the same words for every language.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from decimal import Decimal

from .errors import DrayhorseError, PayloadInvalidError

MAX_DEPTH = 100

Refusal = Callable[[str, dict[str, object]], DrayhorseError]

_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
_quote = json.JSONEncoder(ensure_ascii=False).encode
_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
# Python refuses to convert longer integers unless the whole process is told otherwise (sys.set_int_max_str_digits);
# Decimal has no such bound.
_SHORT_INTEGER_BITS = 2000


def encode(value: object, path: str = "payload", refusal: Refusal = PayloadInvalidError) -> str:
    """The value as JSON text; `refusal` makes the error for a value that has none."""
    try:
        text = _encode(value)
        if not text.isascii():
            text.encode()
    except (TypeError, ValueError, RecursionError):
        out: list[str] = []
        _write(value, path, 0, out, refusal)
        return "".join(out)
    return text


def decode(text: str) -> object:
    """The value of a JSON text; integers keep all digits."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        raise
    except ValueError:
        return json.loads(text, parse_int=_parse_integer)


def _parse_integer(digits: str) -> int:
    return int(digits) if len(digits) < 600 else int(Decimal(digits))


def _member(path: str, key: str) -> str:
    return f"{path}.{key}" if _PLAIN_KEY.match(key) else f"{path}[{json.dumps(key)}]"


def _refuse(refusal: Refusal, path: str, why: str) -> DrayhorseError:
    return refusal(f"{path}: {why}", {"path": path})


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _key(key: object, path: str, refusal: Refusal) -> str:
    # The same keys that the standard encoder takes, written as it does.
    if isinstance(key, str):
        return str(key)
    if isinstance(key, bool) or key is None or isinstance(key, int | float):
        out: list[str] = []
        _write(key, path, 0, out, refusal)
        return out[0]
    raise _refuse(refusal, path, f"a key is a {type(key).__name__}, which JSON does not have; use a string")


def _write(value: object, path: str, depth: int, out: list[str], refusal: Refusal) -> None:
    if value is None:
        out.append("null")
    elif value is True:
        out.append("true")
    elif value is False:
        out.append("false")
    elif isinstance(value, str):
        if not _is_text(value):
            raise _refuse(refusal, path, "a lone surrogate cannot be stored; remove it or encode it")
        out.append(_quote(value))
    elif isinstance(value, int):
        short = value.bit_length() <= _SHORT_INTEGER_BITS
        out.append(int.__repr__(value) if short else format(Decimal(int(value)), "f"))
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise _refuse(refusal, path, "NaN and infinities cannot be stored")
        out.append(float.__repr__(value))
    elif isinstance(value, dict | list | tuple):
        if depth == MAX_DEPTH:
            raise _refuse(refusal, path, f"nesting over {MAX_DEPTH}")
        if isinstance(value, dict):
            _write_object(value, path, depth, out, refusal)
        else:
            out.append("[")
            for index, item in enumerate(value):
                if index:
                    out.append(",")
                _write(item, f"{path}[{index}]", depth + 1, out, refusal)
            out.append("]")
    else:
        raise _refuse(
            refusal, path, f"a {type(value).__name__} is not a JSON value; convert it, to a string for example"
        )


def _write_object(value: dict[object, object], path: str, depth: int, out: list[str], refusal: Refusal) -> None:
    out.append("{")
    for index, (key, item) in enumerate(value.items()):
        if index:
            out.append(",")
        name = _key(key, path, refusal)
        if not _is_text(name):
            raise _refuse(refusal, path, "a key holds a lone surrogate, which cannot be stored; remove it or encode it")
        out.append(_quote(name))
        out.append(":")
        _write(item, _member(path, name), depth + 1, out, refusal)
    out.append("}")
