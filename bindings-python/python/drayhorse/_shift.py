"""One shift of a worker, from its start to the end of its drain: events in, handlers started, reports out.

The thread that calls `execute` waits for events; handlers run in the pools. The core decides what a report means.
"""

from __future__ import annotations

import asyncio
import logging
import select
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from . import _native
from ._decision import Classifier, decide, error_report, is_cancellation, raw
from ._job import AsyncJob, Job, JobBase, Line, WorkerDelay
from ._json import decode, encode
from ._pools import HandlerLoop, HandlerThreads
from ._port import LoopPort, ThreadPort
from ._record import record
from ._signals import draining
from .errors import ClosedError, DrayhorseError, InternalError, from_json, make_error
from .options import WorkerOptions
from .results import HandlerKey, Health

T = TypeVar("T")

log = logging.getLogger("drayhorse")

# Events taken at once.
_BATCH = 256
_SHOWN_MESSAGE_CHARS = 500


@dataclass(frozen=True, slots=True)
class Handler:
    """A registered handler."""

    fn: Callable[[Any, Any], Any]
    is_async: bool
    classify_error: Classifier | None


class Shift:
    """From the start of the native threads to their end."""

    def __init__(self, handlers: Mapping[HandlerKey, Handler], options: WorkerOptions) -> None:
        self._handlers = handlers
        self._options = options
        self._mailbox = _native.Mailbox()
        self._threads = HandlerThreads()
        self._loop: HandlerLoop | None = None
        self._port = ThreadPort()
        self._loops = LoopPort()
        self._running: dict[int, JobBase] = {}
        self._stopping = False
        self._native: _native.WorkerHandle | None = None

    def execute(self, client: _native.Client, native_options: str) -> None:
        """Runs until the core says that the worker has stopped; raises what stopped it, if it was a failure."""
        with draining(self.stop, self._options.handle_signals):
            try:
                self._start(client, native_options)
                self._pump()
            finally:
                self._end()

    def stop(self) -> None:
        """Starts the drain. Called by any thread and by a signal handler; while it starts, `_start` sees the wish."""
        self._stopping = True
        if self._native is not None:
            self._call(self._native.stop)

    def health(self) -> Health:
        """How it is."""
        sent = None if self._native is None else self._call(self._native.health)
        if sent is None:
            return Health(alive=True, phase="starting")
        return record(Health, {"alive": True, **cast("dict[str, Any]", decode(sent))})

    def _start(self, client: _native.Client, options: str) -> None:
        def start(mailbox: _native.Mailbox) -> int:
            self._native, token = _native.WorkerHandle.start(client, options, self._mailbox, mailbox)
            return token

        self._port.run(start)
        if self._stopping:
            self.stop()

    def _call(self, call: Callable[[], T]) -> T | None:
        """The answer of the native worker; nothing if it has not started yet or has ended."""
        try:
            return call()
        except _native.Failure as failure:
            error = from_json(failure.args[0])
            if isinstance(error, ClosedError):
                return None
            raise error from None

    def _pump(self) -> None:
        native = self._native
        assert native is not None
        poll = select.poll()
        poll.register(self._mailbox.fileno(), select.POLLIN)
        while True:
            text = self._call(lambda: native.take(_BATCH))
            if text is None:
                raise ClosedError("The worker was closed while it ran.")
            events = cast("list[dict[str, Any]]", decode(text))
            if not events:
                poll.poll()
                for _, failed, text in self._mailbox.take():
                    # Answers that nobody waits for: progress.
                    if failed:
                        self.complain(from_json(text), None)
            for event in events:
                if event["event"] == "stopped":
                    error = event.get("error")
                    if error is not None:
                        raise make_error(error["code"], error["message"], error.get("details"))
                    return
                self._dispatch(native, event)

    def _dispatch(self, native: _native.WorkerHandle, event: dict[str, Any]) -> None:
        kind = event["event"]
        if kind == "job":
            self._begin(native, event)
        elif kind == "abort":
            job = self._running.get(event["handle"])
            if job is not None:
                job._over = event["reason"]
                if isinstance(job, AsyncJob) and self._loop is not None:
                    self._loop.cancel(event["handle"])
        elif kind == "error":
            error = make_error(event.get("code") or "internal", event["message"], _details(event))
            self.complain(error, self._running.get(event.get("handle", 0)))
        else:
            self.complain(InternalError(f"the core sent an unknown event: {kind}"), None)

    def _begin(self, native: _native.WorkerHandle, event: dict[str, Any]) -> None:
        handle = event["handle"]
        handler = self._handlers.get(HandlerKey(event["type"], event["version"]))
        # After a stop nothing starts, be it of the same batch of events.
        if handler is None or self._stopping:
            self._report({"handle": handle, "verb": "release", "started": False})
            return
        line = Line(handle, native, self._port, self._loops, self._mailbox)
        if handler.is_async:
            if self._loop is None:
                self._loop = HandlerLoop()
            job = self._running[handle] = AsyncJob(event, line)
            self._loop.submit(
                handle,
                self._attempt_async(job, handler),
                unstarted=lambda: self._failed(job, handler, asyncio.CancelledError()),
            )
        else:
            plain = self._running[handle] = Job(event, line)
            self._threads.submit(lambda: self._attempt(plain, handler))

    def _attempt(self, job: Job, handler: Handler) -> None:
        # Whatever a handler raises, SystemExit included, is its failure and not this thread's.
        try:
            self._announce_delay(job)
            result = handler.fn(job.payload, job)
        except BaseException as error:
            self._failed(job, handler, error)
        else:
            self._completed(job, result)

    async def _attempt_async(self, job: AsyncJob, handler: Handler) -> None:
        try:
            self._announce_delay(job)
            result = await cast("Awaitable[object]", handler.fn(job.payload, job))
        except BaseException as error:
            self._failed(job, handler, error)
        else:
            self._completed(job, result)

    def _completed(self, job: JobBase, result: object) -> None:
        handle = job._line.handle
        try:
            text = encode(result, "result")
        except DrayhorseError as fault:
            log.debug("%s: the result is no JSON value: %s", job, fault.message)
            self._report({"handle": handle, "verb": "fail", "error": error_report(fault), "outputFailure": True})
            return
        self._send(handle, f'[{{"handle":{handle},"verb":"complete","result":{text}}}]')

    def _failed(self, job: AsyncJob | Job, handler: Handler, error: BaseException) -> None:
        handle = job._line.handle
        report: dict[str, object] = {"handle": handle, "verb": "fail", "error": error_report(error)}
        said = cast("dict[str, str]", report["error"])
        # Not a fault of the worker: the failure is recorded, with all of its evidence.
        log.debug("%s failed: %s: %s", job, said["name"], said["message"][:_SHOWN_MESSAGE_CHARS])
        classifiers = (handler.classify_error, self._options.classify_error)
        report.update(decide(error, job, classifiers, lambda fault: self.complain(fault, job)))
        if is_cancellation(error):
            report["cancellation"] = True
        if report.get("retryable") is not False:
            delay = self._delay(job)
            report.update(delay.keys)
            if delay.fault is not None:
                self.complain(delay.fault, job)
        self._report(report)

    def _delay(self, job: AsyncJob | Job) -> WorkerDelay:
        """What the worker's own delay says, asked once per attempt."""
        if job._delay is None:
            job._delay = self._ask_delay(job)
        return job._delay

    def _ask_delay(self, job: AsyncJob | Job) -> WorkerDelay:
        delay = self._options.retry_delay_ms
        if callable(delay):
            try:
                delay = delay(job.attempt, job)
            except BaseException as fault:  # the failure is reported all the same
                told = error_report(fault)
                return WorkerDelay(
                    {"overrideRefused": f"retry_delay_ms raised {told['name']}: {told['message']}"}, fault
                )
        return WorkerDelay({} if delay is None else {"workerDelayMs": raw(delay)})

    def _announce_delay(self, job: AsyncJob | Job) -> None:
        """Tells the core beforehand, where it may have to settle a timeout by itself."""
        if job._timed and callable(self._options.retry_delay_ms):
            keys = self._delay(job).keys
            if "workerDelayMs" in keys:
                self._hand_over(encode([{"handle": job._line.handle, "verb": "retryDelay", **keys}], "report"), job)

    def _report(self, report: dict[str, object]) -> None:
        self._send(cast(int, report["handle"]), encode([report], "report"))

    def _send(self, handle: int, reports: str) -> None:
        self._hand_over(reports, self._running.pop(handle, None))

    def _hand_over(self, reports: str, job: JobBase | None) -> None:
        native = self._native
        if native is not None:
            try:
                # Nothing comes of it after the shift's end: this handler outlived the drain, its job was given back.
                self._call(lambda: native.report(reports))
            except DrayhorseError as error:
                self.complain(error, job)

    def complain(self, error: BaseException, job: JobBase | None) -> None:
        """Tells `on_error`, or the log."""
        if self._options.on_error is None:
            log.error("%s%s", "" if job is None else f"{job}: ", error, exc_info=error if error.__traceback__ else None)
            return
        try:
            self._options.on_error(error, cast("Job | AsyncJob | None", job))
        except BaseException:  # it is the last to be told: there is nobody else
            log.exception("on_error failed for %s: %s", type(error).__name__, error)

    def _end(self) -> None:
        try:
            if self._native is not None:
                with suppress(ClosedError):  # it could not be started
                    self._port.run(self._native.close)
        finally:
            self._threads.close()
            if self._loop is not None:
                self._loop.close()


def _details(event: Mapping[str, Any]) -> dict[str, object]:
    return {key: event[key] for key in ("jobId",) if key in event}
