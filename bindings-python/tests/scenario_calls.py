"""The control verbs of the scenarios as methods of `Queue` and `AsyncQueue`.

Each entry takes either kind of queue and gives what its method gives: an answer, or one to await.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from operator import attrgetter
from typing import Any, TypeAlias, TypeVar

from drayhorse import (
    REMOVE,
    After,
    AsyncQueue,
    AsyncRun,
    CircuitSettings,
    Claim,
    EnqueueOptions,
    FailOptions,
    IdempotencyKey,
    JobFilter,
    NewJob,
    Queue,
    RateLimit,
    Run,
)
from drayhorse._json import encode
from drayhorse._verbs import Request

Args: TypeAlias = dict[str, Any]
AnyQueue: TypeAlias = "Queue | AsyncQueue"
Method: TypeAlias = Callable[[Any, Args], Any]

T = TypeVar("T")


class NotSayable(Exception):
    """The package's signatures have no place for these arguments: an option that does not exist, for example."""


def call(queue: AnyQueue, verb: str, args: Args, *, must_fail: bool) -> Any:
    """Calls the method of a verb.

    What cannot be written down with the package at all goes past its types, but only where it has to fail: so must
    checkpoints, which belong to a handler's job and have no method of a queue.
    """
    method = METHODS.get(verb)
    if method is not None:
        try:
            return method(queue, dict(args))
        except NotSayable:
            if not must_fail:
                raise
    elif verb not in BEYOND:
        raise AssertionError(f"the runner knows no method for {verb}")
    return bare(queue, verb, args)


def bare(queue: AnyQueue, verb: str, args: Args) -> Any:
    """The verb as it crosses to the core."""
    return queue._run(Request(verb, encode(args, "args"), lambda sent: sent))


def result_of(verb: str, answer: Any) -> Any:
    """The answer in the shape of docs/architecture.md, where the method gives the bare value."""
    key = {"cancel": "result", "contracts.list": "contracts"}.get(verb)
    return answer if key is None else {key: answer}


def snake(name: str) -> str:
    """`maxAttempts` as `max_attempts`."""
    return re.sub("[A-Z]", lambda letter: "_" + letter.group().lower(), name)


def say(fn: Callable[..., T], *positional: Any, **named: Any) -> T:
    """Calls `fn`, or says that it has no such parameters."""
    try:
        inspect.signature(fn).bind(*positional, **named)
    except TypeError as error:
        raise NotSayable(f"{getattr(fn, '__qualname__', fn)}: {error}") from None
    return fn(*positional, **named)


def named(given: Mapping[str, Any]) -> dict[str, Any]:
    """Keys as keyword arguments."""
    return {snake(key): value for key, value in given.items()}


def options(kind: Callable[..., T], given: Mapping[str, Any]) -> T:
    """An options object of its JSON."""
    return say(kind, **named(given))


def enqueue_options(given: Mapping[str, Any]) -> EnqueueOptions:
    """The options of an enqueue, times, keys and predecessors in their own types."""
    arguments = dict(given)
    for name in ("runAt", "deadline"):
        if isinstance(arguments.get(name), str):
            arguments[name] = datetime.fromisoformat(arguments[name].replace("Z", "+00:00"))
    for name, kind in (("idempotencyKey", IdempotencyKey), ("after", After)):
        if isinstance(arguments.get(name), dict):
            arguments[name] = options(kind, arguments[name])
    return options(EnqueueOptions, arguments)


def enqueue(queue: AnyQueue, args: Args) -> Any:
    """`enqueue`; a job of a run by the run."""
    given = dict(args.pop("options", {}))
    run_id = given.pop("runId", None)
    if run_id is None:
        return say(queue.enqueue, **args, options=enqueue_options(given) if given else None)
    return say(run_of(queue, {"id": run_id}).enqueue, **args, options=enqueue_options(given))


def enqueue_many(queue: AnyQueue, args: Args) -> Any:
    """Half of the jobs as `NewJob`, half as plain mappings: both are allowed."""
    jobs: list[NewJob | Mapping[str, object]] = []
    for n, job in enumerate(args.pop("jobs")):
        given = {**job, "options": enqueue_options(job["options"])} if "options" in job else dict(job)
        jobs.append(say(NewJob, **given) if n % 2 == 0 else given)
    return say(queue.enqueue_many, jobs, **args)


def claim_of(given: Mapping[str, Any]) -> Claim:
    """A claim; only `id` and `fence` count in a report."""
    return Claim(given["id"], given["fence"], queue="", type="", version="", attempt=0, max_attempts=0)


def reported(verb: str, queue: AnyQueue, args: Args) -> Any:
    """A verb that takes a claim."""
    return say(getattr(queue, verb), claim_of(args.pop("claim")), **named(args))


def fail(queue: AnyQueue, args: Args) -> Any:
    """`fail`, whose options have a class of their own."""
    claim, error = claim_of(args.pop("claim")), args.pop("error")
    return say(queue.fail, claim, error, options(FailOptions, args))


def heartbeat(queue: AnyQueue, args: Args) -> Any:
    """`heartbeat` of several claims."""
    return say(queue.heartbeat, [claim_of(one) for one in args.pop("claims")], **named(args))


def filtered(verb: str, queue: AnyQueue, args: Args) -> Any:
    """A verb that takes a filter, or a page of it."""
    page = args.pop("page", {})
    if "filter" in args:
        args["filter"] = options(JobFilter, args["filter"])
    return say(getattr(queue, verb), **named(args), **named(page))


def repeated(verb: str, queue: AnyQueue, args: Args) -> Any:
    """A verb that takes one job or a filter."""
    which = options(JobFilter, args.pop("filter")) if "filter" in args else args.pop("id")
    return say(getattr(queue, verb), which, **named(args))


def run_of(queue: AnyQueue, args: Args) -> Any:
    """The run of an id."""
    return Run(queue, args["id"]) if isinstance(queue, Queue) else AsyncRun(queue, args["id"])


def configure(group: str, queue: AnyQueue, args: Args) -> Any:
    """Settings of an endpoint or a queue; null takes one away."""
    kinds = {"rateLimit": RateLimit, "circuit": CircuitSettings}
    given = {
        key: REMOVE if value is None else options(kinds[key], value) if key in kinds else value
        for key, value in args.items()
    }
    return say(attrgetter(f"{group}.configure")(queue), **named(given))


def directly(path: str, queue: AnyQueue, args: Args) -> Any:
    """A method whose parameters are the verb's arguments."""
    return say(attrgetter(path)(queue), **named(args))


METHODS: dict[str, Method] = {
    "enqueue": enqueue,
    "enqueueMany": enqueue_many,
    "fail": fail,
    "heartbeat": heartbeat,
    "finishRun": lambda queue, args: run_of(queue, args).finish(),
    "getRun": lambda queue, args: run_of(queue, args).get(),
    **{verb: partial(reported, verb) for verb in ("complete", "release")},
    **{verb: partial(filtered, snake(verb)) for verb in ("list", "counts", "redrivePreview")},
    **{verb: partial(repeated, snake(verb)) for verb in ("redrive", "replay", "replayPreview")},
    **{f"{group}.configure": partial(configure, group) for group in ("endpoints", "queues")},
    **{
        verb: partial(directly, snake(verb))
        for verb in (
            *("get", "timeline", "wait", "cancel", "previewPolicy", "claim", "startRun", "prune"),
            *("migrate", "schemaVersion", "assertCompatible", "grant", "revoke", "workers.list"),
            *(f"{group}.{verb}" for group in ("endpoints", "queues") for verb in ("list", "get", "pause", "resume")),
            *(f"endpoints.{verb}" for verb in ("forceOpen", "forceClose", "reset")),
            *(f"contracts.{verb}" for verb in ("publish", "get", "list")),
        )
    },
}

# Verbs that a program has by its handler's job, and the clock of tests.
BEYOND = ("checkpointGet", "checkpointPut", "advanceClock")
