"""The end of the interpreter, however it comes (T39): the exit code is the program's, nothing hangs or is lost."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from drayhorse import Queue

Script = Callable[..., "subprocess.Popen[str]"]

ROUNDS = max(1, round(float(os.environ.get("DRAYHORSE_SCALE", "1"))))

CONNECT = """
import os, sys, threading, time, asyncio
from drayhorse import AsyncQueue, Queue, Worker, WorkerOptions
queue = Queue.connect(URL, schema=SCHEMA)
queue.enqueue("t", 1)
"""

# What the program does after it has enqueued one job, and how it is to end.
ENDS = {
    "the end of the script": ("", 0),
    "sys.exit": ("sys.exit(3)", 3),
    "an exception": ("raise ValueError('mine')", 1),
    "os._exit": ("os._exit(4)", 4),
    "a daemon thread that waits": (
        "threading.Thread(target=queue.wait, args=('0'*8+'-0000-7000-8000-'+'0'*12, 30000), daemon=True).start()\n"
        "made = queue.enqueue('u')\n"
        "threading.Thread(target=queue.wait, args=(made, 30000), daemon=True).start()\n"
        "time.sleep(0.2); sys.exit(5)",
        5,
    ),
    "daemon threads that enqueue": (
        "def forever():\n"
        "    while True: queue.counts()\n"
        "for _ in range(4): threading.Thread(target=forever, daemon=True).start()\n"
        "time.sleep(0.3); sys.exit(6)",
        6,
    ),
    "a running worker": (
        "worker = Worker(queue); worker.handle('never', print)\n"
        "threading.Thread(target=worker.run, daemon=True).start()\n"
        "time.sleep(0.5); sys.exit(7)",
        7,
    ),
    "a worker with a busy handler": (
        "worker = Worker(queue)\n"
        "@worker.handler('u')\n"
        "def handler(payload, job):\n"
        "    while True: job.progress(1)\n"
        "@worker.handler('v')\n"
        "async def coroutine(payload, job):\n"
        "    while True: await asyncio.sleep(0)\n"
        "queue.enqueue('u'); queue.enqueue('v')\n"
        "threading.Thread(target=worker.run, daemon=True).start()\n"
        "time.sleep(1); sys.exit(8)",
        8,
    ),
    "an async queue left open": (
        "async def main():\n"
        "    other = await AsyncQueue.connect(URL, schema=SCHEMA)\n"
        "    asyncio.ensure_future(other.wait(await other.enqueue('u'), 30000))\n"
        "    await asyncio.sleep(0.1)\n"
        "asyncio.run(main()); sys.exit(9)",
        9,
    ),
    "an atexit handler that enqueues": ("import atexit; atexit.register(queue.enqueue, 't', 2)", 0),
    "a circle of garbage": (
        "class Circle: pass\ncircle = Circle(); circle.me = circle; circle.queue = queue; del queue; sys.exit(10)",
        10,
    ),
    "a child by multiprocessing spawn": (
        "import multiprocessing\n"
        "child = multiprocessing.get_context('spawn').Process(target=os.getpid)\n"
        "if __name__ == '__main__':\n"
        "    child.start(); child.join(); sys.exit(11 + child.exitcode)",
        11,
    ),
}


def interpreters() -> list[str]:
    """One interpreter for each version from 3.10 on that is to be had: on the path, or installed beside our own."""
    beside = sorted(Path(sys.base_prefix).parent.glob("*3.1[0-9]*/bin/python3"))
    candidates = [sys.executable, *(f"python3.{minor}" for minor in range(10, 20)), *map(str, beside)]
    found: dict[str, str] = {}
    for candidate in filter(shutil.which, candidates):
        asked = [candidate, "-c", "import sys; print('%d.%d' % sys.version_info[:2], sys.version_info >= (3, 10))"]
        version, _, fits = subprocess.run(asked, capture_output=True, text=True, check=False).stdout.partition(" ")
        if fits.strip() == "True":
            found.setdefault(version, candidate)
    return list(found.values())


def finish(program: subprocess.Popen[str], seconds: float = 60) -> str:
    _, err = program.communicate(timeout=seconds)
    assert "Fatal Python error" not in err
    assert "panicked" not in err
    return err


PYTHONS = pytest.mark.parametrize("python", interpreters(), ids=lambda path: Path(path).parent.parent.name)


@PYTHONS
@pytest.mark.parametrize("end", ENDS)
def test_every_end_keeps_its_code(queue: Queue, script: Script, end: str, python: str) -> None:
    code, expected = ENDS[end]
    for _ in range(ROUNDS):
        program = script(CONNECT + code, python=python)
        err = finish(program)
        assert program.returncode == expected, err
    assert queue.counts().ready + queue.counts().active >= ROUNDS


@PYTHONS
def test_ctrl_c_during_a_wait(queue: Queue, script: Script, python: str) -> None:
    for _ in range(ROUNDS):
        program = script(CONNECT + "print('waiting', flush=True)\nqueue.wait(queue.enqueue('u'), 60000)", python=python)
        assert program.stdout is not None
        assert program.stdout.readline() == "waiting\n"
        time.sleep(0.2)
        began = time.monotonic()
        program.send_signal(signal.SIGINT)
        err = finish(program)
        assert program.returncode == -signal.SIGINT
        assert "KeyboardInterrupt" in err
        assert time.monotonic() - began < 5


def test_the_import_alone_starts_nothing(script: Script) -> None:
    program = script("import drayhorse, threading; assert threading.active_count() == 1")
    finish(program)
    assert program.returncode == 0
