"""Tool contracts as they are published and read: what jobs of a type and version take and give, and their defaults."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeAlias

from ._record import TIME

__all__ = ["Contract", "JsonSchema", "PublishedContract"]

JsonSchema: TypeAlias = "bool | Mapping[str, object]"
"""A JSON Schema 2020-12 as plain data."""


@dataclass(frozen=True, slots=True)
class Contract:
    """A published contract; it never changes.

    `digest` names its content. `input_schema`: of payloads, `output_schema`: of results. `endpoint`, `retry_policy`
    (normalized), `max_attempts` and `timeout_ms`: of jobs that bring none of their own.
    """

    type: str
    version: str
    digest: str
    published_at: datetime = field(metadata=TIME)
    actor: str | None = None
    endpoint: str | None = None
    input_schema: Any = None
    output_schema: Any = None
    retry_policy: Mapping[str, Any] | None = None
    max_attempts: int | None = None
    timeout_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedContract(Contract):
    """What `publish` answers. `replayed`: the same contract had been published before."""

    replayed: bool
