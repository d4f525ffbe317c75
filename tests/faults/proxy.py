"""A proxy between clients and a server that misbehaves on request: it loses replies, falls silent, refuses.

It runs in a thread of its own. A reply is lost after the server has sent all of it, so what it answers is committed.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, TypeVar

from psycopg.conninfo import conninfo_to_dict

from .lab import url_with

T = TypeVar("T")

_CHUNK = 1 << 16
_READY_FOR_QUERY = ord("Z")


@dataclass(eq=False)
class _Connection:
    """One client and its session on the server."""

    client: asyncio.StreamWriter
    server: asyncio.StreamWriter
    said: bytes = b""
    """The last that the client sent: enough to find a statement in, also across two reads."""
    losing: bool = False
    silent: bool = False
    reply: bytearray = field(default_factory=bytearray)


class Proxy:
    """A port of its own in front of the server of `target`."""

    def __init__(self, target: str) -> None:
        parts = conninfo_to_dict(target)
        self._host, self._port = str(parts["host"]), int(str(parts["port"]))
        self._connections: set[_Connection] = set()
        self._lost: dict[bytes, int] = {}
        self._lose_next: dict[bytes, bool] = {}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)
        self._thread.start()
        self._server: asyncio.Server | None = None
        self.port = 0
        self.accept()
        self.url = url_with(target, port=self.port)

    def __enter__(self) -> Proxy:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.refuse()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def accept(self) -> None:
        """Listens, on the same port as before."""

        async def listen() -> None:
            self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
            self.port = self._server.sockets[0].getsockname()[1]

        self._run(listen())

    def refuse(self) -> None:
        """Refuses connections and breaks those that exist."""

        async def close() -> None:
            if self._server is not None:
                self._server.close()
            for connection in list(self._connections):
                _abort(connection)
            while self._connections:
                await asyncio.sleep(0.01)

        self._run(close())

    def lose_replies(self, *statements: str) -> None:
        """Every other reply to a statement with one of these texts is lost, beginning with the first."""
        for statement in statements:
            self._lose_next[statement.encode()] = True
            self._lost[statement.encode()] = 0

    def lost(self, statement: str) -> int:
        """How many replies to it were lost."""
        return self._lost[statement.encode()]

    def fall_silent(self, statement: str) -> int:
        """Passes nothing any more on the connections whose last statement has this text, and keeps them open."""

        async def silence() -> int:
            chosen = [c for c in self._connections if statement.encode() in c.said]
            for connection in chosen:
                connection.silent = True
            return len(chosen)

        return self._run(silence())

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(30)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            server_reader, server_writer = await asyncio.open_connection(self._host, self._port)
        except OSError:
            writer.close()
            return
        connection = _Connection(writer, server_writer)
        self._connections.add(connection)
        try:
            await asyncio.gather(
                self._pass_on(reader, connection, self._hear_client),
                self._pass_on(server_reader, connection, self._hear_server),
            )
        finally:
            _abort(connection)
            self._connections.discard(connection)

    async def _pass_on(
        self,
        reader: asyncio.StreamReader,
        connection: _Connection,
        hear: Callable[[_Connection, bytes], asyncio.StreamWriter | None],
    ) -> None:
        with suppress(OSError):
            while chunk := await reader.read(_CHUNK):
                if connection.silent:
                    continue
                if writer := hear(connection, chunk):
                    writer.write(chunk)
                    await writer.drain()
        if not connection.silent:
            # An end is passed on as an end of both directions: neither side of this protocol uses one alone.
            _abort(connection)

    def _hear_client(self, connection: _Connection, chunk: bytes) -> asyncio.StreamWriter:
        said = connection.said[-200:] + chunk
        for statement, lose in self._lose_next.items():
            # Not in what was looked through before.
            if said.rfind(statement) + len(statement) > len(said) - len(chunk) and statement in said:
                connection.losing = lose
                self._lose_next[statement] = not lose
                self._lost[statement] += lose
        connection.said = said[-_CHUNK:]
        return connection.server

    def _hear_server(self, connection: _Connection, chunk: bytes) -> asyncio.StreamWriter | None:
        if not connection.losing:
            return connection.client
        connection.reply += chunk
        if _is_complete(connection.reply):
            _abort(connection)
        return None


def _is_complete(reply: bytearray) -> bool:
    """Whether the messages of the reply end with the one that says that its transaction is over."""
    at = 0
    while at + 5 <= len(reply):
        kind, length = reply[at], int.from_bytes(reply[at + 1 : at + 5], "big")
        at += 1 + length
        if kind == _READY_FOR_QUERY and at <= len(reply):
            return True
    return False


def _abort(connection: _Connection) -> None:
    for writer in (connection.client, connection.server):
        writer.transport.abort()
