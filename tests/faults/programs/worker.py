"""The worker program in Python: `worker.py work`, `worker.py enqueue COUNT`, `worker.py batch COUNT`.

FAULT_URL, FAULT_SCHEMA and FAULT_QUEUES say where; FAULT_RECORD is the file to which every program of a test appends
what happens, one JSON object a line; the others are the worker's options. With FAULT_ROUNDS the worker runs so many
times, stopped each time by a SIGTERM that the program takes itself.
"""

import json
import os
import select
import signal
import sys
import time

import drayhorse
from drayhorse import EnqueueOptions, Job, NewJob, Queue, RetryableError, Worker, WorkerOptions

ENV = os.environ
QUEUES = ENV.get("FAULT_QUEUES", "default").split(",")
ROUNDS = int(ENV.get("FAULT_ROUNDS", "0"))
SLICE_S = 0.02

record_file = os.open(ENV["FAULT_RECORD"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)


def record(what: str, **more: object) -> None:
    line = {"what": what, "pid": os.getpid(), "at": time.time(), **more}
    os.write(record_file, json.dumps(line).encode() + b"\n")


def number(name: str, absent: int) -> int:
    return int(ENV.get(name, absent))


def pause(seconds: float) -> None:
    # libfaketime breaks time.sleep.
    select.select([], [], [], seconds)


def sleep(job: Job, ms: int) -> None:
    """Ends early when the attempt is over."""
    end = time.monotonic() + ms / 1000
    while time.monotonic() < end:
        if job.cancelled:
            record("told", job=job.id, attempt=job.attempt, reason=job.cancel_reason)
            raise RuntimeError(f"told: {job.cancel_reason}")
        pause(SLICE_S)


def busy(ms: int) -> None:
    end = time.monotonic() + ms / 1000
    while time.monotonic() < end:
        pass


def wait_for_go() -> None:
    """Until the test lets it go on, whatever happens to the attempt."""
    while not os.path.exists(ENV["FAULT_RECORD"] + ".go"):
        pause(SLICE_S)


def outlive(job: Job) -> str:
    """The first attempt goes on when its lease is lost, and does everything it must not; the second is the good one."""
    if job.attempt == 1:
        while not job.cancelled:
            pause(SLICE_S)
        record("told", job=job.id, attempt=1, reason=job.cancel_reason)
        try:
            job.checkpoint("step", lambda: 9)
        except drayhorse.DrayhorseError as error:
            record("refused", job=job.id, code=error.code)
        return "old"
    job.checkpoint("step", lambda: 1)
    record("saved", job=job.id)
    wait_for_go()
    return "new"


def act(payload: dict[str, object], job: Job) -> object:
    record("start", job=job.id, attempt=job.attempt)
    steps = payload.get("do") or []
    assert isinstance(steps, list)
    for step, *arguments in steps:
        if step == "sleep":
            sleep(job, arguments[0])
        elif step == "stubborn":
            pause(arguments[0] / 1000)
        elif step == "wait":
            wait_for_go()
        elif step == "busy":
            busy(arguments[0])
        elif step == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        elif step == "fail" or (step == "failFirst" and job.attempt == 1):
            raise RuntimeError(arguments[0])
        elif step == "hintFirst" and job.attempt == 1:
            raise RetryableError("later, please", retry_after_ms=arguments[0])
        elif step == "outlive":
            return outlive(job)
    return payload.get("number")


def make_worker(queue: Queue) -> Worker:
    options = WorkerOptions(
        queues=QUEUES,
        name=ENV.get("FAULT_NAME", "python"),
        concurrency=number("FAULT_CONCURRENCY", 8),
        lease_ms=number("FAULT_LEASE_MS", 2_000),
        grace_ms=number("FAULT_GRACE_MS", 5_000),
        poll_ms=number("FAULT_POLL_MS", 1_000),
        prefetch=number("FAULT_PREFETCH", 0),
        handle_signals=not ROUNDS,
        on_error=lambda error, _: record("error", code=getattr(error, "code", None), message=str(error)),
    )
    worker = Worker(queue, options)
    worker.handle("act", act)
    worker.handle("noop", lambda payload, _: payload)
    return worker


def work(queue: Queue) -> None:
    if not ROUNDS:
        make_worker(queue).run()
        return
    worker = None

    def stop(*_: object) -> None:
        if worker is not None:
            worker.stop()
            record("stopped")

    signal.signal(signal.SIGTERM, stop)
    for round in range(ROUNDS):
        worker = make_worker(queue)
        record("round", round=round)
        worker.run()
        record("ended", round=round)


def produce(queue: Queue, verb: str, count: int) -> None:
    options = EnqueueOptions(queue=QUEUES[0])
    if verb == "enqueue":
        for n in range(count):
            queue.enqueue("noop", n, options)
        return
    for first in range(0, count, 500):
        queue.enqueue_many(NewJob("noop", n, options) for n in range(first, min(first + 500, count)))


queue = Queue.connect(ENV["FAULT_URL"], schema=ENV["FAULT_SCHEMA"])
if sys.argv[1] == "work":
    work(queue)
else:
    produce(queue, sys.argv[1], int(sys.argv[2]))
queue.close()
