"""Waiting for the core: the one place where a call's result is waited for, by a thread or by an event loop.

The native functions never wait (see `src/lib.rs`). They return a token, and the result arrives under it in a mailbox
whose descriptor becomes readable. A thread waits with `poll`, so Ctrl-C and any other signal handler run at once; an
event loop watches the descriptor.
"""

from __future__ import annotations

import asyncio
import select
import weakref
from collections import deque
from collections.abc import Callable
from typing import TypeVar

from . import _native
from .errors import from_json

T = TypeVar("T")

# Mailboxes kept for the next calls; more threads than this at once make, and throw away, one each.
_IDLE_MAILBOXES = 64


class ThreadPort:
    """Waits in the calling thread. Any number of threads may use one port: each call has a mailbox to itself."""

    def __init__(self) -> None:
        self._idle: deque[tuple[_native.Mailbox, select.poll]] = deque(maxlen=_IDLE_MAILBOXES)

    def run(self, start: Callable[[_native.Mailbox], int], abandon: Callable[[], object] | None = None) -> str:
        """The result of what `start` begins. `abandon` is called when a signal's exception ends the waiting."""
        try:
            mailbox, poll = self._idle.pop()
        except IndexError:
            mailbox, poll = _native.Mailbox(), select.poll()
            poll.register(mailbox.fileno(), select.POLLIN)
        try:
            token = start(mailbox)
        except _native.Failure as failure:
            raise from_json(failure.args[0]) from None
        try:
            failed, text = self._answer(token, mailbox, poll)
        except BaseException:
            # Raised by a signal handler. The mailbox is thrown away: its letter may still come.
            if abandon is not None:
                abandon()
            raise
        self._idle.append((mailbox, poll))
        if failed:
            raise from_json(text)
        return text

    def _answer(self, token: int, mailbox: _native.Mailbox, poll: select.poll) -> tuple[bool, str]:
        while True:
            poll.poll()
            for arrived, failed, text in mailbox.take():
                if arrived == token:
                    return failed, text


class _Watch:
    """One event loop's mailbox and the calls that wait for it."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.mailbox = _native.Mailbox()
        self.waiting: dict[int, asyncio.Future[str]] = {}
        loop.add_reader(self.mailbox.fileno(), self._deliver)

    def _deliver(self) -> None:
        for token, failed, text in self.mailbox.take():
            future = self.waiting.pop(token, None)
            if future is not None and not future.done():
                if failed:
                    future.set_exception(from_json(text))
                else:
                    future.set_result(text)


class LoopPort:
    """Waits in coroutines, in whichever event loop they run."""

    def __init__(self) -> None:
        self._watches: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Watch] = weakref.WeakKeyDictionary()

    async def run(self, start: Callable[[_native.Mailbox], int], abandon: Callable[[], object] | None = None) -> str:
        """The result of what `start` begins. `abandon` is called when the waiting task is cancelled."""
        loop = asyncio.get_running_loop()
        watch = self._watches.get(loop)
        if watch is None:
            watch = self._watches[loop] = _Watch(loop)
        try:
            token = start(watch.mailbox)
        except _native.Failure as failure:
            raise from_json(failure.args[0]) from None
        future: asyncio.Future[str] = loop.create_future()
        watch.waiting[token] = future
        try:
            return await future
        except asyncio.CancelledError:
            watch.waiting.pop(token, None)
            if abandon is not None:
                abandon()
            raise

    def release(self) -> None:
        """Stops watching in the running loop, once nothing is waited for there."""
        loop = asyncio.get_running_loop()
        watch = self._watches.get(loop)
        if watch is not None and not watch.waiting:
            del self._watches[loop]
            loop.remove_reader(watch.mailbox.fileno())
