"""What hangs on an `AsyncQueue`: `endpoints`, `queues`, `contracts`, `workers`, and the runs it starts."""

from __future__ import annotations

import builtins
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar

from . import _contract_verbs, _gate_verbs, _verbs
from ._groups import in_run
from ._verbs import HandlerSpec, Request
from .contracts import Contract, JsonSchema, PublishedContract
from .gates import CircuitSettings, EndpointSnapshot, QueueSnapshot, RateLimit, Remove
from .options import MISSING, After, EnqueueOptions
from .results import Enqueued, RunSnapshot, WorkerInfo

if TYPE_CHECKING:
    from ._async_queue import AsyncQueue

T = TypeVar("T")


class Ask(Protocol):
    """Sends a request of a queue and waits for its answer."""

    async def __call__(self, request: Request[T], /) -> T: ...


class AsyncEndpoints:
    """`queue.endpoints`: the destinations that jobs talk to. Every change names its actor and is kept."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    async def list(self, *, limit: int | None = None, after: str | None = None) -> builtins.list[EndpointSnapshot]:
        """Endpoints in the order of their names; `after`: the last name of the page before."""
        return await self._ask(_gate_verbs.list_gates("endpoints", EndpointSnapshot, limit, after))

    async def get(self, name: str) -> EndpointSnapshot | None:
        """One endpoint with its last events; nothing if the name was never used."""
        return await self._ask(_gate_verbs.get_gate("endpoints", EndpointSnapshot, name))

    async def configure(
        self,
        name: str,
        *,
        actor: str,
        reason: str | None = None,
        rate_limit: RateLimit | Remove | None = None,
        max_concurrency: int | Remove | None = None,
        retry_policy: Mapping[str, object] | Remove | None = None,
        circuit: CircuitSettings | None = None,
    ) -> EndpointSnapshot:
        """Sets what is given; `None` leaves a setting as it is, `REMOVE` takes it away."""
        return await self._ask(
            _gate_verbs.configure(
                "endpoints",
                EndpointSnapshot,
                name,
                actor,
                reason,
                rate_limit,
                max_concurrency,
                retry_policy,
                circuit,
            )
        )

    async def pause(self, name: str, *, actor: str, reason: str | None = None) -> EndpointSnapshot:
        """Lets no further job of this endpoint start; running ones end."""
        return await self._ask(_gate_verbs.act("endpoints", EndpointSnapshot, "pause", name, actor, reason))

    async def resume(self, name: str, *, actor: str, reason: str | None = None) -> EndpointSnapshot:
        """Ends a pause."""
        return await self._ask(_gate_verbs.act("endpoints", EndpointSnapshot, "resume", name, actor, reason))

    async def force_open(self, name: str, *, actor: str, reason: str | None = None) -> EndpointSnapshot:
        """Holds the circuit open: only synthetic jobs start."""
        return await self._ask(_gate_verbs.act("endpoints", EndpointSnapshot, "forceOpen", name, actor, reason))

    async def force_close(self, name: str, *, actor: str, reason: str | None = None) -> EndpointSnapshot:
        """Holds the circuit closed, whatever fails."""
        return await self._ask(_gate_verbs.act("endpoints", EndpointSnapshot, "forceClose", name, actor, reason))

    async def reset(self, name: str, *, actor: str, reason: str | None = None) -> EndpointSnapshot:
        """Ends a force: the circuit is closed and counts anew."""
        return await self._ask(_gate_verbs.act("endpoints", EndpointSnapshot, "reset", name, actor, reason))


class AsyncQueues:
    """`queue.queues`: pauses and limits of whole queues. Every change names its actor and is kept."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    async def list(self, *, limit: int | None = None, after: str | None = None) -> builtins.list[QueueSnapshot]:
        """Queues in the order of their names; `after`: the last name of the page before."""
        return await self._ask(_gate_verbs.list_gates("queues", QueueSnapshot, limit, after))

    async def get(self, name: str) -> QueueSnapshot | None:
        """One queue with its last events; nothing if the name was never used."""
        return await self._ask(_gate_verbs.get_gate("queues", QueueSnapshot, name))

    async def configure(
        self,
        name: str,
        *,
        actor: str,
        reason: str | None = None,
        rate_limit: RateLimit | Remove | None = None,
        max_concurrency: int | Remove | None = None,
    ) -> QueueSnapshot:
        """Sets what is given; `None` leaves a setting as it is, `REMOVE` takes it away."""
        return await self._ask(
            _gate_verbs.configure("queues", QueueSnapshot, name, actor, reason, rate_limit, max_concurrency)
        )

    async def pause(self, name: str, *, actor: str, reason: str | None = None) -> QueueSnapshot:
        """Lets no further job of this queue start; running ones end."""
        return await self._ask(_gate_verbs.act("queues", QueueSnapshot, "pause", name, actor, reason))

    async def resume(self, name: str, *, actor: str, reason: str | None = None) -> QueueSnapshot:
        """Ends a pause."""
        return await self._ask(_gate_verbs.act("queues", QueueSnapshot, "resume", name, actor, reason))


class AsyncContracts:
    """`queue.contracts`: what jobs of a type and version promise; published once, then unchangeable."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    async def publish(
        self,
        type: str,
        *,
        version: str | None = None,
        endpoint: str | None = None,
        input_schema: JsonSchema | None = None,
        output_schema: JsonSchema | None = None,
        retry_policy: Mapping[str, object] | None = None,
        max_attempts: int | None = None,
        timeout_ms: int | None = None,
        actor: str | None = None,
    ) -> PublishedContract:
        """Publishes for good; `ContractConflictError` when this version has another content.

        `version` is `"1"` by default. `input_schema` and `output_schema`: JSON Schema 2020-12, of payloads and results.
        The rest are defaults of jobs that bring none; `retry_policy` may be a preset, `{"type": "standard"}`.
        """
        return await self._ask(
            _contract_verbs.publish(
                type,
                version,
                endpoint,
                input_schema,
                output_schema,
                retry_policy,
                max_attempts,
                timeout_ms,
                actor,
            )
        )

    async def get(self, type: str, version: str | None = None) -> Contract | None:
        """The contract of a type and version (`"1"` by default), or nothing."""
        return await self._ask(_contract_verbs.get(type, version))

    async def list(self, handlers: Sequence[HandlerSpec] | None = None) -> builtins.list[Contract]:
        """All contracts, or those of `handlers` (a type, or a pair of type and version)."""
        return await self._ask(_contract_verbs.list_contracts(handlers))


class AsyncWorkers:
    """`queue.workers`: the worker processes of a queue database."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    async def list(self) -> builtins.list[WorkerInfo]:
        """Who is alive, what it handles and how much it runs."""
        return await self._ask(_verbs.workers_list())


class AsyncRun:
    """Jobs that belong together; made by `queue.start_run`, or of the `id` of one that was."""

    def __init__(self, queue: AsyncQueue, id: str) -> None:
        self._queue = queue
        self.id = id

    async def enqueue(
        self,
        type: str,
        payload: object = MISSING,
        options: EnqueueOptions | None = None,
        *,
        after: After | None = None,
    ) -> Enqueued:
        """Enqueues one job of the run. `after`: the job it waits for, as a follow-up or a fallback."""
        return await self._queue.enqueue(type, payload, in_run(self.id, options, after))

    async def finish(self) -> RunSnapshot:
        """Takes no further jobs; the run ends with the last of those it has."""
        return await self._queue._run(_verbs.finish_run(self.id))

    async def get(self) -> RunSnapshot | None:
        """The run as it is now."""
        return await self._queue._run(_verbs.get_run(self.id))
