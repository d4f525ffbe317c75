"""Where handlers run: functions in threads, coroutine functions in an event loop on a thread of its own.

Neither limits how much runs: the core hands out no more jobs than the worker has slots. All threads are daemons, so
a handler that never returns does not keep the process alive.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable, Coroutine
from typing import Any

# How long the end of a run waits for an event loop whose handlers do not let go of it.
_LOOP_END_S = 1.0


class HandlerThreads:
    """Threads that are made when no other is idle, and kept until `close`."""

    def __init__(self) -> None:
        self._inbox: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._idle = threading.Semaphore(0)
        self._count = 0

    def submit(self, work: Callable[[], None]) -> None:
        """Runs `work` in some thread. Called by one thread only."""
        self._inbox.put(work)
        if not self._idle.acquire(blocking=False):
            self._count += 1
            threading.Thread(target=self._serve, name=f"drayhorse-handler-{self._count}", daemon=True).start()

    def _serve(self) -> None:
        while True:
            work = self._inbox.get()
            if work is None:
                return
            work()
            # Let go of the job before the next one comes.
            del work
            self._idle.release()

    def close(self) -> None:
        """Ends the threads as they become idle."""
        for _ in range(self._count):
            self._inbox.put(None)


class HandlerLoop:
    """An event loop in a thread; its tasks are known by the handle of their job."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._thread = threading.Thread(target=self._serve, name="drayhorse-loop", daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
            left = asyncio.all_tasks(self._loop)
            for task in left:
                task.cancel()
            self._loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        finally:
            self._loop.close()

    def submit(self, handle: int, work: Coroutine[Any, Any, None], unstarted: Callable[[], None]) -> None:
        """Runs `work` as a task. `unstarted` is called instead if it is cancelled before its first step."""
        self._loop.call_soon_threadsafe(self._begin, handle, work, unstarted)

    def cancel(self, handle: int) -> None:
        """Cancels the task of this job."""
        self._loop.call_soon_threadsafe(self._cancel, handle)

    def _begin(self, handle: int, work: Coroutine[Any, Any, None], unstarted: Callable[[], None]) -> None:
        task = self._loop.create_task(work)
        self._tasks[handle] = task

        def ended(task: asyncio.Task[None]) -> None:
            self._tasks.pop(handle, None)
            # `work` catches what its handler raises, so only a task that never began ends as cancelled.
            if task.cancelled():
                unstarted()

        task.add_done_callback(ended)

    def _cancel(self, handle: int) -> None:
        task = self._tasks.get(handle)
        if task is not None:
            task.cancel()

    def close(self) -> None:
        """Cancels what runs and ends the loop; one that a handler blocks is left behind."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_LOOP_END_S)
