"""SIGTERM and SIGINT while a worker runs: the first starts the drain, the second ends the process at once."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


@contextmanager
def draining(drain: Callable[[], None], wanted: bool) -> Iterator[None]:
    """Handles the signals inside the block, if `wanted` and on the main thread; the old handlers come back after it."""
    if not wanted or threading.current_thread() is not threading.main_thread():
        yield
        return
    asked = False

    def handle(number: int, _: FrameType | None) -> None:
        nonlocal asked
        if asked:
            # Nothing is waited for any more, not even by the interpreter: what runs comes back by its lease.
            os._exit(128 + number)
        asked = True
        drain()

    before = {number: signal.signal(number, handle) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, old in before.items():
            # A handler that was not installed from Python cannot be put back from here; the default takes its place.
            signal.signal(number, signal.SIG_DFL if old is None else old)
