"""How large the tests are: small by default, the literal sizes in `make soak`."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

PATIENCE_S = 60.0
"""How long a condition may take on a machine that is busy with other things. It is no assertion about speed."""

SCALE = int(os.environ.get("DRAYHORSE_SCALE", "1"))


def sized(small: int, literal: int) -> int:
    """The small size, or that many times it, up to the literal one."""
    return min(literal, small * SCALE)


def literal_s(small: float, literal: float) -> float:
    """A time instead of a number: the literal one only in a long run."""
    return literal if SCALE >= 100 else small


def until(condition: Callable[[], object], said: Callable[[], object] = str, patience_s: float = PATIENCE_S) -> None:
    """Waits for a condition; `said` tells what was seen instead."""
    end = time.monotonic() + patience_s
    while not condition():
        assert time.monotonic() < end, f"nothing came of waiting {patience_s:.0f} s: {said()}"
        time.sleep(0.05)
