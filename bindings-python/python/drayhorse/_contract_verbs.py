"""The verbs of `queue.contracts`, without the waiting (see `_verbs`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ._record import records
from ._verbs import HandlerSpec, Request, handler_key, optional, reader
from .contracts import Contract, JsonSchema, PublishedContract
from .options import encode_object


def publish(
    type: str,
    version: str | None,
    endpoint: str | None,
    input_schema: JsonSchema | None,
    output_schema: JsonSchema | None,
    retry_policy: Mapping[str, object] | None,
    max_attempts: int | None,
    timeout_ms: int | None,
    actor: str | None,
) -> Request[PublishedContract]:
    args = encode_object(
        {
            "type": type,
            "version": version,
            "endpoint": endpoint,
            "input_schema": input_schema,
            "output_schema": output_schema,
            "retry_policy": retry_policy,
            "max_attempts": max_attempts,
            "timeout_ms": timeout_ms,
            "actor": actor,
        }
    )
    return Request("contracts.publish", args, reader(PublishedContract))


def get(type: str, version: str | None) -> Request[Contract | None]:
    return Request("contracts.get", encode_object({"type": type, "version": version}), optional(Contract))


def list_contracts(handlers: Sequence[HandlerSpec] | None) -> Request[list[Contract]]:
    keys = None if handlers is None else [handler_key(spec) for spec in handlers]
    read = records(Contract)
    return Request("contracts.list", encode_object({"handlers": keys}), lambda sent: read(sent["contracts"]))
