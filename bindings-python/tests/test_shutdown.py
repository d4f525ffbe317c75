"""The ends of a worker: SIGTERM, a second signal, handlers that do not stop, a stop in time and out of time."""

from __future__ import annotations

import signal
import subprocess
import threading
import time
from collections.abc import Callable

import pytest
from helpers import eventually, serving

from drayhorse import EnqueueOptions, Job, Queue, Worker, WorkerOptions

Script = Callable[..., "subprocess.Popen[str]"]

PROGRAM = """
import signal, sys, time
from drayhorse import Queue, Worker, WorkerOptions

queue = Queue.connect(URL, schema=SCHEMA)
worker = Worker(queue, WorkerOptions(grace_ms=GRACE, lease_ms=5000))

@worker.handler("short")
def short(payload, job):
    print("started", flush=True)
    time.sleep(1)
    return "done"

@worker.handler("deaf")
def deaf(payload, job):
    print("started", flush=True)
    time.sleep(60)

@worker.handler("deaf coroutine")
async def deaf_coroutine(payload, job):
    print("started", flush=True)
    time.sleep(60)

before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
worker.run()
assert before == (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT))
print("drained", flush=True)
sys.exit(7)
"""


def started(program: subprocess.Popen[str]) -> None:
    assert program.stdout is not None
    assert program.stdout.readline() == "started\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_drains(queue: Queue, script: Script, number: signal.Signals) -> None:
    made = queue.enqueue("short")
    program = script(PROGRAM.replace("GRACE", "20000"))
    started(program)
    program.send_signal(number)
    later = queue.enqueue("short")
    out, err = program.communicate(timeout=30)
    assert (program.returncode, out) == (7, "drained\n"), err
    assert queue.wait(made, 0).result == "done"
    job = queue.get(later)
    assert job is not None
    assert (job.state, job.attempt) == ("ready", 0)


@pytest.mark.parametrize("type", ["deaf", "deaf coroutine"])
def test_the_grace_time_is_kept(queue: Queue, script: Script, type: str) -> None:
    made = queue.enqueue(type)
    program = script(PROGRAM.replace("GRACE", "1000"))
    started(program)
    began = time.monotonic()
    program.send_signal(signal.SIGTERM)
    _, err = program.communicate(timeout=30)
    assert program.returncode == 7, err
    assert time.monotonic() - began < 10
    job = queue.get(made)
    assert job is not None
    # Given back, not lost: the number of the attempt is free again.
    assert (job.state, job.attempt) == ("ready", 0)
    assert [entry.kind for entry in queue.timeline(made)][-1] == "released"


def test_a_second_signal_ends_at_once(queue: Queue, script: Script) -> None:
    queue.enqueue("deaf")
    program = script(PROGRAM.replace("GRACE", "60000"))
    started(program)
    program.send_signal(signal.SIGTERM)
    time.sleep(0.5)
    assert program.poll() is None
    began = time.monotonic()
    program.send_signal(signal.SIGTERM)
    program.communicate(timeout=30)
    assert program.returncode == 128 + signal.SIGTERM
    assert time.monotonic() - began < 3


def test_a_killed_worker_s_job_comes_back(queue: Queue, script: Script) -> None:
    made = queue.enqueue("deaf")
    program = script(PROGRAM.replace("GRACE", "1000"))
    started(program)
    program.kill()
    program.communicate(timeout=30)
    worker = Worker(queue)
    worker.handle("deaf", lambda payload, job: job.attempt)
    with serving(worker):
        assert queue.wait(made, 30_000).result == 2
    assert "lease_expired" in [entry.kind for entry in queue.timeline(made)]


def test_stop_before_run_ends_it_at_once(queue: Queue) -> None:
    worker = Worker(queue)
    worker.handle("t", print)
    worker.stop()
    thread = threading.Thread(target=worker.run, daemon=True)
    thread.start()
    thread.join(10)
    assert not thread.is_alive()


def test_a_handler_may_stop_its_worker(queue: Queue) -> None:
    worker = Worker(queue, WorkerOptions(concurrency=1))

    @worker.handler("t")
    def handler(payload: object, job: Job) -> str:
        worker.stop()
        return "last"

    made = queue.enqueue_many([{"type": "t"}, {"type": "t"}])
    thread = threading.Thread(target=worker.run, daemon=True)
    thread.start()
    thread.join(30)
    assert not thread.is_alive()
    assert queue.wait(made[0], 0).result == "last"
    job = queue.get(made[1])
    assert job is not None
    assert (job.state, job.attempt) == ("ready", 0)


def test_a_handler_that_outlives_the_drain_changes_nothing(queue: Queue) -> None:
    go = threading.Event()
    over = threading.Event()
    worker = Worker(queue, WorkerOptions(grace_ms=300))

    @worker.handler("t")
    def handler(payload: object, job: Job) -> str:
        if job.attempt == 1 and not over.is_set():
            go.wait(30)
            over.set()
            return "too late"
        return "again"

    with serving(worker):
        made = queue.enqueue("t", 1, EnqueueOptions(max_attempts=3))
        eventually(lambda: worker.health().running)
    go.set()
    assert over.wait(30)
    with serving(worker):
        assert queue.wait(made, 30_000).result == "again"


def test_signals_stay_with_the_program_when_not_wanted(queue: Queue, script: Script) -> None:
    program = script(
        """
import signal
from drayhorse import Queue, Worker, WorkerOptions
worker = Worker(Queue.connect(URL, schema=SCHEMA), WorkerOptions(handle_signals=False))
worker.handle("t", print)
signal.signal(signal.SIGTERM, lambda *_: (print("mine", flush=True), worker.stop()))
print("started", flush=True)
worker.run()
"""
    )
    started(program)
    time.sleep(1)
    program.send_signal(signal.SIGTERM)
    out, err = program.communicate(timeout=30)
    assert (program.returncode, out) == (0, "mine\n"), err


def test_ctrl_c_ends_a_run_that_does_not_handle_signals(queue: Queue, script: Script) -> None:
    program = script(
        """
from drayhorse import Queue, Worker, WorkerOptions
worker = Worker(Queue.connect(URL, schema=SCHEMA), WorkerOptions(handle_signals=False))
worker.handle("t", print)
print("started", flush=True)
try:
    worker.run()
except KeyboardInterrupt:
    print("interrupted", worker.health().phase, flush=True)
"""
    )
    started(program)
    time.sleep(1)
    program.send_signal(signal.SIGINT)
    out, err = program.communicate(timeout=30)
    assert (program.returncode, out) == (0, "interrupted stopped\n"), err


def test_run_names_what_made_it_impossible_to_go_on(queue: Queue, url: str, schema: str) -> None:
    import psycopg

    worker = Worker(queue, WorkerOptions(grace_ms=1000, poll_ms=200))
    worker.handle("t", print)
    ends: list[BaseException] = []

    def run() -> None:
        try:
            worker.run()
        except BaseException as error:
            ends.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    eventually(lambda: worker.health().connected)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f'drop schema "{schema}" cascade')
    thread.join(60)
    assert not thread.is_alive()
    assert [type(error).__name__ for error in ends] == ["SchemaMissingError"]
