"""A queue of a test's own: its schema, the processes that work on it, what they recorded, what the database says.

Leaving it ends every process and removes the schema or database, however the test went.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from drayhorse import EnqueueOptions, NewJob, Queue
from harness import programs

from .children import Child
from .sizes import PATIENCE_S, until

SOURCES = Path(__file__).with_name("programs")
LANGUAGES = ("python", "node", "go")


class Programs:
    """The worker program in each language, built once for all tests."""

    def __init__(self, folder: Path) -> None:
        node = programs.node(SOURCES, folder / "node")
        go = programs.go(SOURCES / "go", folder / "go")
        self.argv: dict[str, list[str]] = {
            "python": [sys.executable, str(SOURCES / "worker.py")],
            "node": ["node", str(node / "worker.mjs")],
            "go": [str(go)],
        }


@dataclass(frozen=True)
class Record:
    """One line that a program wrote about itself."""

    what: str
    pid: int
    at: float
    """Seconds since the epoch, by the clock that the database has too."""
    more: Mapping[str, Any] = field(default_factory=dict)

    @property
    def job(self) -> str:
        """The job it is about."""
        return str(self.more["job"])


def url_with(url: str, *, port: int | None = None, database: str | None = None) -> str:
    """The URL with another port or database."""
    parts = conninfo_to_dict(url)
    host, user = parts.get("host", "127.0.0.1"), parts.get("user", "postgres")
    return f"postgresql://{user}@{host}:{port or parts['port']}/{database or parts.get('dbname', 'postgres')}"


class Lab:
    """One queue and everything that works on it."""

    def __init__(self, made: Programs, url: str, folder: Path, *, own_database: bool = False) -> None:
        self._programs = made
        self._folder = folder
        self._stack = ExitStack()
        name = f"faults_{uuid.uuid4().hex[:10]}"
        self._server_url = url
        self._database = name if own_database else None
        self.url = url_with(url, database=self._database)
        self.schema = "drayhorse" if own_database else name
        self.children: list[Child] = []
        self.record_file = folder / "records"
        self.record_file.touch()
        self._records: list[Record] = []
        self._records_read = 0

    def __enter__(self) -> Lab:
        try:
            self._open()
        except BaseException:
            self._stack.close()
            raise
        return self

    def _open(self) -> None:
        if self._database is not None:
            self._on_server(sql.SQL("create database {}").format(sql.Identifier(self._database)))
            drop = sql.SQL("drop database {} with (force)").format(sql.Identifier(self._database))
        else:
            drop = sql.SQL("drop schema if exists {} cascade").format(sql.Identifier(self.schema))
        self._stack.callback(self._on_server, drop)
        self.queue = self._stack.enter_context(self.connect())
        self.queue.migrate()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for child in self.children:
            child.end()
        if error is not None:
            for child in self.children:
                print(child.tail())
        self._stack.close()

    def _on_server(self, statement: sql.Composed) -> None:
        with psycopg.connect(self._server_url, autocommit=True) as connection:
            connection.execute(statement)

    def connect(self, url: str | None = None) -> Queue:
        """A queue in this process."""
        return Queue.connect(url or self.url, schema=self.schema)

    def session(self) -> psycopg.Connection[tuple[Any, ...]]:
        """A session in the schema, past every proxy and pooler."""
        connection = psycopg.connect(self.url, autocommit=True)
        connection.execute(sql.SQL("set search_path = {}, pg_catalog").format(sql.Identifier(self.schema)))
        return connection

    def rows(self, query: str, *params: object) -> list[tuple[Any, ...]]:
        """The rows of one statement in the schema."""
        with self.session() as connection:
            return connection.execute(query.encode(), params or None).fetchall()

    def one(self, query: str, *params: object) -> Any:
        """The value of a statement with one row and one column."""
        ((value,),) = self.rows(query, *params)
        return value

    # Processes

    def start(
        self,
        language: str,
        *words: str,
        url: str | None = None,
        env: Mapping[str, str] | None = None,
        **options: object,
    ) -> Child:
        """A program of this language, `work` unless words say otherwise; options become FAULT_ variables."""
        given = {f"FAULT_{name.upper()}": str(value) for name, value in options.items()}
        where = {"FAULT_URL": url or self.url, "FAULT_SCHEMA": self.schema, "FAULT_RECORD": str(self.record_file)}
        argv = [*self._programs.argv[language], *(words or ("work",))]
        name = f"{language}-{len(self.children)}"
        given.setdefault("FAULT_NAME", name)
        child = Child(name, argv, {**os.environ, **where, **given, **(env or {})}, self._folder / f"{name}.log")
        self.children.append(child)
        return child

    def started(self, workers: int) -> None:
        """Until so many workers have registered, those that are gone by now included."""
        until(lambda: self.one("select count(*) from worker") >= workers, self.tails)

    def stop(self, *children: Child) -> None:
        """Ends workers as an operator does, and expects that they end well."""
        for child in children:
            child.send(signal.SIGTERM)
        for child in children:
            assert child.wait() == 0, child.tail()

    def tails(self) -> str:
        """What everybody wrote, for a failure's message."""
        return "\n".join(child.tail() for child in self.children)

    # Jobs

    def act(self, *steps: Sequence[object], options: EnqueueOptions | None = None) -> str:
        """One job whose handler does these steps."""
        return str(self.queue.enqueue("act", {"do": steps}, options))

    def acts(self, count: int, *steps: Sequence[object], options: EnqueueOptions | None = None) -> list[str]:
        """So many of them; each returns its number."""
        made = []
        for first in range(0, count, 500):
            numbers = range(first, min(first + 500, count))
            made += self.queue.enqueue_many(NewJob("act", {"number": n, "do": steps}, options) for n in numbers)
        return [str(id) for id in made]

    def finished(self) -> int:
        """Jobs that have ended."""
        return int(self.one("select count(*) from outcome"))

    def all_finished(self, patience_s: float = PATIENCE_S) -> None:
        """Until every job has ended."""
        until(lambda: self.one("select count(*) from runtime") == 0, self.situation, patience_s)

    def situation(self) -> str:
        """Where the jobs are and what everybody wrote."""
        return f"{self.queue.counts()}\n{self.records('error')[-5:]}\n{self.tails()}"

    def outcomes(self) -> Counter[str]:
        """How many jobs ended how."""
        return Counter(dict(self.rows("select outcome_state(state), count(*) from outcome group by 1")))

    def go(self) -> None:
        """Lets every handler go on that waits for it."""
        self.record_file.with_name("records.go").touch()

    # Records

    def records(self, *kinds: str, job: str | None = None) -> list[Record]:
        """What the programs recorded, in the order in which it was written."""
        with self.record_file.open("rb") as file:
            file.seek(self._records_read)
            # A line that is just being written may be seen in part.
            whole, newline, _ = file.read().rpartition(b"\n")
        self._records_read += len(whole) + len(newline)
        for line in map(json.loads, whole.splitlines()):
            self._records.append(Record(line.pop("what"), line.pop("pid"), line.pop("at"), line))
        return [
            r for r in self._records if (not kinds or r.what in kinds) and (job is None or r.more.get("job") == job)
        ]

    def starts(self, job: str | None = None) -> list[Record]:
        """Starts of handlers."""
        return self.records("start", job=job)
