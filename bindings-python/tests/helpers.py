"""What several tests need: a worker that runs beside the test, and waiting for what has to come true."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from drayhorse import Worker

PACKAGE = Path(__file__).resolve().parent.parent / "python"


@contextmanager
def serving(worker: Worker) -> Iterator[Worker]:
    """Runs the worker in a thread for the block, drains it afterwards and raises what ended it."""
    ends: list[BaseException] = []

    def run() -> None:
        try:
            worker.run()
        except BaseException as error:
            ends.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield worker
    finally:
        worker.stop()
        thread.join(30)
    assert not thread.is_alive(), "the worker did not drain"
    if ends:
        raise ends[0]


def eventually(condition: Callable[[], Any], seconds: float = 30) -> Any:
    """What `condition` returns once that is true."""
    end = time.monotonic() + seconds
    while True:
        found = condition()
        if found:
            return found
        assert time.monotonic() < end, "it did not come true in time"
        time.sleep(0.02)
