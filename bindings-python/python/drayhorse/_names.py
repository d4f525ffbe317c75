"""The two spellings of one name: snake_case in Python, camelCase in the JSON that crosses to the core."""

from __future__ import annotations

import re
from functools import cache

_WORD = re.compile(r"_([a-z0-9])")


@cache
def camel(name: str) -> str:
    """`max_attempts` as `maxAttempts`."""
    return _WORD.sub(lambda word: word.group(1).upper(), name)
