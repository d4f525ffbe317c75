"""Forks (T40): a child gets a clear error for its parent's queue, may connect its own, and harms the parent nowhere."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest

from drayhorse import Queue

Script = Callable[..., "subprocess.Popen[str]"]

FORKS = """
import asyncio, gc, os, sys
from drayhorse import AsyncQueue, Queue, UsedAfterForkError

def child(act):
    pid = os.fork()
    if pid == 0:
        code = 99
        try:
            code = act()
        except BaseException as error:
            print(repr(error), file=sys.stderr, flush=True)
        finally:
            os._exit(code)
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status)

def refused(call):
    try:
        call()
    except UsedAfterForkError:
        return True
    return False

queue = Queue.connect(URL, schema=SCHEMA)
queue.enqueue("t", 0)
"""


def run(script: Script, code: str) -> str:
    program = script(FORKS + code)
    out, err = program.communicate(timeout=60)
    assert program.returncode == 0, err
    return out


def test_children_are_refused_and_the_parent_goes_on(queue: Queue, script: Script) -> None:
    run(
        script,
        """
def act():
    assert all(refused(lambda: queue.enqueue("t", n)) for n in range(10))
    assert refused(queue.counts)
    queue.close()
    return 0
for _ in range(3):
    assert child(act) == 0
    assert queue.counts().ready >= 1
queue.enqueue("t", 1)
queue.close()
""",
    )
    assert queue.counts().ready == 2


def test_children_may_connect_their_own(queue: Queue, script: Script) -> None:
    run(
        script,
        """
def act():
    with Queue.connect(URL, schema=SCHEMA) as own:
        for n in range(10):
            own.enqueue("t", n)
    return 0
for _ in range(3):
    assert child(act) == 0
queue.enqueue("t", 1)
""",
    )
    assert queue.counts().ready == 32


def test_a_child_s_exit_does_not_touch_the_parent_s_connection(queue: Queue, script: Script) -> None:
    run(
        script,
        """
def letting_go():
    global queue
    queue = None
    gc.collect()
    return 0
assert child(letting_go) == 0
assert queue.counts().ready == 1

# The ordinary end of an interpreter, with all its destructors.
pid = os.fork()
if pid == 0:
    sys.exit(5)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 5
assert queue.counts().ready == 1
""",
    )


def test_a_fork_while_threads_call(queue: Queue, script: Script) -> None:
    run(
        script,
        """
import threading
stop = False
def calls():
    while not stop:
        queue.counts()
threads = [threading.Thread(target=calls) for _ in range(4)]
for thread in threads: thread.start()
for _ in range(30):
    assert child(lambda: 0 if refused(queue.counts) else 98) == 0
stop = True
for thread in threads: thread.join()
""",
    )


def test_async_queues_are_refused_too(queue: Queue, script: Script) -> None:
    run(
        script,
        """
async def main():
    other = await AsyncQueue.connect(URL, schema=SCHEMA)
    await other.counts()
    def act():
        async def inside():
            try:
                await other.counts()
            except UsedAfterForkError:
                return 0
            return 98
        # The loop that runs belongs to the parent.
        asyncio._set_running_loop(None)
        return asyncio.new_event_loop().run_until_complete(inside())
    assert child(act) == 0
    assert (await other.counts()).ready == 1
    await other.close()
asyncio.run(main())
""",
    )


def test_a_worker_is_refused_in_a_child(queue: Queue, script: Script) -> None:
    run(
        script,
        """
from drayhorse import Worker
worker = Worker(queue)
worker.handle("t", print)
assert child(lambda: 0 if refused(worker.run) else 98) == 0
""",
    )


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_multiprocessing(queue: Queue, script: Script, method: str, tmp_path: object, url: str, schema: str) -> None:
    from pathlib import Path

    assert isinstance(tmp_path, Path)
    (tmp_path / "pooled.py").write_text(
        f"""
from drayhorse import Queue
own = None
def connect():
    global own
    own = Queue.connect({url!r}, schema={schema!r})
def enqueue(n):
    return str(own.enqueue("t", n))
"""
    )
    run(
        script,
        f"""
import multiprocessing
sys.path.insert(0, {str(tmp_path)!r})
import pooled
if __name__ == "__main__":
    with multiprocessing.get_context({method!r}).Pool(3, initializer=pooled.connect) as pool:
        made = pool.map(pooled.enqueue, range(30))
    assert len(set(made)) == 30
    queue.enqueue("t", 1)
""",
    )
    assert queue.counts().ready == 32


def test_a_prefork_server(queue: Queue, script: Script) -> None:
    # What gunicorn does with --preload: the application connects in the master, the workers answer requests.
    run(
        script,
        """
import signal
application = queue
workers = []
for _ in range(3):
    pid = os.fork()
    if pid == 0:
        code = 99
        try:
            own = Queue.connect(URL, schema=SCHEMA)  # the hook post_fork
            for n in range(10):
                own.enqueue("t", n)
            code = 0 if refused(lambda: application.enqueue("t")) else 98
        finally:
            os._exit(code)
    workers.append(pid)
for pid in workers:
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
application.enqueue("t", 1)
""",
    )
    assert queue.counts().ready == 32
