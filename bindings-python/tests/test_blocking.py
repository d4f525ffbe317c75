"""Handlers that hold the interpreter's lock or block their event loop: the core renews their leases all the same."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Callable
from typing import Any

import pytest
from helpers import serving

from drayhorse import AsyncJob, Job, Queue, Worker, WorkerOptions

LEASE_MS = 1_000
BUSY_S = 4.0

Script = Callable[..., "subprocess.Popen[str]"]

# Waits in another process for the lease to run out.
IDLE = """
from drayhorse import Queue, Worker, WorkerOptions
worker = Worker(Queue.connect(URL, schema=SCHEMA), WorkerOptions(lease_ms=1000))
worker.handle("t", lambda payload, job: "stolen")
print("started", flush=True)
worker.run()
"""


def busy_loop(payload: Any, job: Job) -> str:
    end = time.monotonic() + BUSY_S
    while time.monotonic() < end:
        pass
    return "mine"


def one_long_c_call(payload: Any, job: Job) -> str:
    # The regular expression engine does not let go of the interpreter's lock.
    end = time.monotonic() + BUSY_S
    length = 20
    while time.monotonic() < end:
        re.match("(a+)+$", "a" * length + "b")
        length = min(length + 1, 25)
    return "mine"


async def sleep_in_the_loop(payload: Any, job: AsyncJob) -> str:
    time.sleep(BUSY_S)
    return "mine"


@pytest.mark.parametrize("handler", [busy_loop, one_long_c_call, sleep_in_the_loop])
def test_the_lease_is_renewed(queue: Queue, script: Script, handler: Callable[..., Any]) -> None:
    worker = Worker(queue, WorkerOptions(lease_ms=LEASE_MS))
    worker.handle("t", handler)
    with serving(worker):
        made = queue.enqueue("t")
        while queue.counts().active == 0:
            time.sleep(0.02)
        other = script(IDLE)
        try:
            assert queue.wait(made, 60_000).result == "mine"
        finally:
            other.terminate()
            other.communicate(timeout=30)
    kinds = [entry.kind for entry in queue.timeline(made)]
    assert kinds == ["enqueued", "claimed", "succeeded"]
