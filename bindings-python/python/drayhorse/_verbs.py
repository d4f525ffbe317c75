"""The verbs of a queue, without the waiting: what each sends to the core, and how its answer is read.

`Queue` and `AsyncQueue` differ only in how they wait for a `Request`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, Literal, TypeAlias, TypeVar, cast

from ._decision import error_report, marked_error, raw
from ._json import encode
from ._record import record, records
from .errors import InvalidArgumentError, PayloadInvalidError
from .options import (
    MISSING,
    EnqueueOptions,
    FailOptions,
    JobFilter,
    Missing,
    NewJob,
    argument,
    encode_enqueue_options,
    encode_object,
)
from .results import (
    Claim,
    Enqueued,
    HandlerKey,
    Migrated,
    PolicyPreview,
    Pruned,
    Redriven,
    RedrivePreview,
    ReplayPreview,
    RunSnapshot,
    SchemaVersion,
    Settled,
    Statement,
    WorkerInfo,
)
from .snapshots import Counts, JobPage, JobSnapshot, Outcome, TimelineEvent, timeline

T = TypeVar("T")

CancelResult: TypeAlias = Literal["canceled", "cancel_requested", "already_terminal", "not_found"]
HeartbeatResult: TypeAlias = Literal["accepted", "cancel_requested", "lease_lost"]
Access: TypeAlias = Literal["worker", "producer", "reader"]
HandlerSpec: TypeAlias = "str | tuple[str, str] | Mapping[str, str]"


@dataclass(frozen=True)
class Request(Generic[T]):
    """One call of the core: its verb, its arguments as JSON text, and the reader of the decoded answer."""

    verb: str
    args: str
    read: Callable[[Any], T]


def optional(kind: type[T]) -> Callable[[Any], T | None]:
    """Reads one record, or null."""
    return lambda sent: None if sent is None else record(kind, sent)


def nothing(_: Any) -> None:
    """Reads an answer that says nothing."""
    return None


def reader(kind: type[T]) -> Callable[[Any], T]:
    """Reads one record."""
    return partial(record, kind)


def _payload(value: object, path: str) -> str:
    return encode(value, path, PayloadInvalidError)


def migrate() -> Request[Migrated]:
    return Request("migrate", "{}", reader(Migrated))


def schema_version() -> Request[SchemaVersion]:
    return Request("schemaVersion", "{}", reader(SchemaVersion))


def assert_compatible() -> Request[None]:
    return Request("assertCompatible", "{}", nothing)


def _new_job(type: object, payload: object, options: EnqueueOptions | None, path: str = "") -> str:
    parts = [f'"type":{argument(type, path + "type")}']
    if not isinstance(payload, Missing):
        parts.append(f'"payload":{_payload(payload, path + "payload")}')
    if options is not None:
        if not isinstance(options, EnqueueOptions):
            raise InvalidArgumentError(f"{path}options must be EnqueueOptions", {"field": f"{path}options"})
        parts.append(f'"options":{encode_enqueue_options(options, path)}')
    return "{" + ",".join(parts) + "}"


def _new_jobs(jobs: Iterable[NewJob | Mapping[str, object]]) -> str:
    texts = []
    for index, job in enumerate(jobs):
        path = f"jobs[{index}]."
        if isinstance(job, NewJob):
            texts.append(_new_job(job.type, job.payload, job.options, path))
            continue
        unknown = job.keys() - {"type", "payload", "options"}
        if unknown or "type" not in job:
            raise InvalidArgumentError(
                f"jobs[{index}] must be a NewJob or have the keys type, payload and options",
                {"field": f"jobs[{index}]"},
            )
        options = cast("EnqueueOptions | None", job.get("options"))
        texts.append(_new_job(job["type"], job.get("payload", MISSING), options, path))
    return '{"jobs":[' + ",".join(texts) + "]}"


def _enqueued(sent: Any) -> Enqueued:
    return Enqueued(sent["id"], sent["replayed"])


def enqueue(type: str, payload: object, options: EnqueueOptions | None) -> Request[Enqueued]:
    return Request("enqueue", _new_job(type, payload, options), _enqueued)


def enqueue_many(jobs: Iterable[NewJob | Mapping[str, object]]) -> Request[list[Enqueued]]:
    return Request("enqueueMany", _new_jobs(jobs), lambda sent: [_enqueued(one) for one in sent])


def enqueue_statement(jobs: Iterable[NewJob | Mapping[str, object]]) -> Request[Statement]:
    return Request("enqueueStatement", _new_jobs(jobs), reader(Statement))


def get(id: str) -> Request[JobSnapshot | None]:
    return Request("get", encode_object({"id": id}), optional(JobSnapshot))


def timeline_of(id: str) -> Request[list[TimelineEvent]]:
    return Request("timeline", encode_object({"id": id}), timeline)


def list_jobs(filter: JobFilter | None, limit: int | None, after: str | None, payload: bool) -> Request[JobPage]:
    page = {key: value for key, value in (("limit", limit), ("after", after)) if value is not None}
    given = {"filter": filter or JobFilter(), "page": page, "payload": payload}
    return Request("list", encode_object(given), reader(JobPage))


def counts(filter: JobFilter | None) -> Request[Counts]:
    return Request("counts", encode_object({"filter": filter or JobFilter()}), reader(Counts))


def wait(id: str, timeout_ms: int) -> Request[Outcome]:
    args = {"id": id, "timeout_ms": timeout_ms}
    return Request("wait", encode_object(args), lambda sent: record(Outcome, {"id": str(id), **sent}))


def cancel(id: str, reason: str | None, actor: str | None) -> Request[CancelResult]:
    args = encode_object({"id": id, "reason": reason, "actor": actor})
    return Request("cancel", args, lambda sent: cast(CancelResult, sent["result"]))


def repeat(verb: str, which: str | JobFilter, options: Mapping[str, object]) -> Request[list[Redriven]]:
    """`redrive` or `replay`."""
    target = {"filter": which} if isinstance(which, JobFilter) else {"id": which}
    # False is the default of every switch here.
    given = {name: value for name, value in options.items() if value is not False}
    return Request(verb, encode_object({**target, **given}), records(Redriven))


def redrive_preview(filter: JobFilter | None) -> Request[RedrivePreview]:
    return Request("redrivePreview", encode_object({"filter": filter or JobFilter()}), reader(RedrivePreview))


def replay_preview(id: str) -> Request[ReplayPreview]:
    return Request("replayPreview", encode_object({"id": id}), reader(ReplayPreview))


def replay_preview_filter(filter: JobFilter) -> Request[RedrivePreview]:
    return Request("replayPreview", encode_object({"filter": filter}), reader(RedrivePreview))


def start_run(name: str) -> Request[str]:
    return Request("startRun", encode_object({"name": name}), lambda sent: str(sent["id"]))


def finish_run(id: str) -> Request[RunSnapshot]:
    return Request("finishRun", encode_object({"id": id}), reader(RunSnapshot))


def get_run(id: str) -> Request[RunSnapshot | None]:
    return Request(
        "getRun", encode_object({"id": id}), lambda sent: None if sent is None else record(RunSnapshot, sent)
    )


def preview_policy(policy: Mapping[str, object], job_id: str | None, attempts: int | None) -> Request[PolicyPreview]:
    given = [f'"policy":{argument(policy, "retryPolicy")}']
    rest = encode_object({"job_id": job_id, "attempts": attempts})[1:-1]
    return Request("previewPolicy", "{" + ",".join(given + ([rest] if rest else [])) + "}", reader(PolicyPreview))


def handler_key(spec: HandlerSpec) -> dict[str, str]:
    """A handler named by its type, a (type, version) pair or an object, as the core reads it."""
    if isinstance(spec, str):
        return {"type": spec, "version": "1"}
    if isinstance(spec, Mapping):
        return {"version": "1", **spec}
    key = HandlerKey(*spec)
    return {"type": key.type, "version": key.version}


def claim(
    handlers: Sequence[HandlerSpec], queues: Sequence[str] | None, limit: int | None, lease_ms: int | None
) -> Request[list[Claim]]:
    keys = [handler_key(spec) for spec in handlers]
    args = encode_object({"queues": queues, "handlers": keys, "limit": limit, "lease_ms": lease_ms})
    return Request("claim", args, records(Claim))


def _claim(claim: Claim) -> str:
    return encode({"id": claim.id, "fence": claim.fence}, "claim")


def complete(claim: Claim, result: object) -> Request[Settled]:
    args = f'{{"claim":{_claim(claim)},"result":{_payload(result, "result")}}}'
    return Request("complete", args, reader(Settled))


def fail(claim: Claim, error: BaseException | Mapping[str, object] | str, options: FailOptions) -> Request[Settled]:
    given: dict[str, object] = {
        "delay_ms": options.delay_ms,
        "retryable": options.retryable,
        "retry_after_ms": options.retry_after_ms,
        "uncertain": options.uncertain,
    }
    if isinstance(error, BaseException):
        # An error that carries its own decision keeps it, where the caller says nothing else.
        mark = marked_error(error)
        if mark is not None:
            for name, value in mark._decision().items():
                if given[name] is None:
                    given[name] = value
        told: Mapping[str, object] = error_report(error)
    elif isinstance(error, str):
        told = {"name": "Error", "message": error}
    else:
        told = error
    # A hint never makes an error of its own: the database ignores a bad one, with a note.
    given["retry_after_ms"] = raw(given["retry_after_ms"])
    rest = encode_object(given)[1:-1]
    args = f'{{"claim":{_claim(claim)},"error":{argument(told, "error")}{"," if rest else ""}{rest}}}'
    return Request("fail", args, reader(Settled))


def release(claim: Claim) -> Request[None]:
    return Request("release", f'{{"claim":{_claim(claim)}}}', nothing)


def heartbeat(claims: Sequence[Claim], lease_ms: int | None) -> Request[list[HeartbeatResult]]:
    keys = [{"id": claim.id, "fence": claim.fence} for claim in claims]
    args = encode_object({"claims": keys, "lease_ms": lease_ms})
    return Request("heartbeat", args, lambda sent: cast("list[HeartbeatResult]", sent))


def workers_list() -> Request[list[WorkerInfo]]:
    return Request("workers.list", "{}", records(WorkerInfo))


def prune(limit: int | None) -> Request[Pruned]:
    return Request("prune", encode_object({"limit": limit}), reader(Pruned))


def grant(role: str, access: Access) -> Request[None]:
    return Request("grant", encode_object({"role": role, "access": access}), nothing)


def revoke(role: str, access: Access) -> Request[None]:
    return Request("revoke", encode_object({"role": role, "access": access}), nothing)
