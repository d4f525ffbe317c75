"""Workers and producers in three languages on one queue, and the verdict on what they did."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType

import psycopg

from harness import paths, programs

SOURCES = Path(__file__).with_name("programs")
LANGUAGES = ("python", "node", "go")
PATIENCE_S = 90.0


def scale() -> int:
    """How many times the small sizes: 1, or 100 in `make soak`."""
    return int(os.environ.get("DRAYHORSE_SCALE", "1"))


class Programs:
    """The fleet's program in each language, built once for all tests."""

    def __init__(self, folder: Path) -> None:
        node = programs.node(SOURCES, folder / "node")
        go = programs.go(SOURCES / "go", folder / "go")
        self.argv: dict[str, list[str]] = {
            "python": [sys.executable, str(SOURCES / "fleet.py")],
            "node": ["node", str(node / "fleet.mjs")],
            "go": [str(go)],
        }


class Fleet:
    """One queue with its workers; leaving it ends them and drops the schema."""

    def __init__(self, made: Programs, url: str, folder: Path, direct_url: str | None = None) -> None:
        self._programs = made
        self.url = url
        self.direct_url = direct_url or url
        self.schema = f"fleet_{uuid.uuid4().hex[:8]}"
        self.enqueued = 0
        self.workers: dict[str, subprocess.Popen[bytes]] = {}
        self._folder = folder
        self._env = {**os.environ, "FLEET_URL": url, "FLEET_SCHEMA": self.schema}

    def __enter__(self) -> Fleet:
        self.command_line("migrate")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for worker in self.workers.values():
            worker.send_signal(signal.SIGTERM)
        for worker in self.workers.values():
            with suppress(subprocess.TimeoutExpired):
                worker.wait(15)
            worker.kill()
            worker.wait()
        with psycopg.connect(self.direct_url, autocommit=True) as connection:
            connection.execute(f'drop schema if exists "{self.schema}" cascade')

    def command_line(self, *words: str) -> str:
        """The program `drayhorse` on this queue."""
        env = {**self._env, "DRAYHORSE_URL": self.url, "DRAYHORSE_SCHEMA": self.schema}
        done = subprocess.run(
            [str(paths.CARGO_OUT / "drayhorse"), *words], env=env, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def enqueue(self, jobs_each: int) -> None:
        """So many jobs from each language, all languages at the same time."""
        running = []
        for language in LANGUAGES:
            words = ["enqueue", str(self.enqueued), str(self.enqueued + jobs_each)]
            running.append(subprocess.Popen([*self._programs.argv[language], *words], env=self._env))
            self.enqueued += jobs_each
        assert [producer.wait(PATIENCE_S) for producer in running] == [0] * len(running)

    def start(self, *languages: str) -> None:
        """A worker in each of the languages; all three when none is named."""
        for language in languages or LANGUAGES:
            with self.log(language).open("ab") as log:
                argv = [*self._programs.argv[language], "work"]
                self.workers[language] = subprocess.Popen(argv, env=self._env, stdout=log, stderr=log)

    def log(self, language: str) -> Path:
        """What a worker wrote."""
        return self._folder / f"{language}.log"

    def succeeded(self) -> int:
        """Jobs that have ended well; while the database is away, none that we know of."""
        try:
            with psycopg.connect(self.direct_url, autocommit=True, connect_timeout=2) as connection:
                row = connection.execute(f"select count(*) from \"{self.schema}\".outcome where state = 's'").fetchone()
        except psycopg.OperationalError:
            return -1
        return int(row[0]) if row else 0

    def wait_for(self, jobs: int) -> None:
        """Until so many jobs have succeeded. A worker that ends meanwhile is a failure."""
        until(lambda: self.succeeded() >= jobs, lambda: f"{self.succeeded()} of {jobs} succeeded\n{self._tails()}")

    def reach(self, share: float) -> None:
        """Until this share has succeeded. The fault that follows has to hit work that is under way."""
        self.wait_for(int(self.enqueued * share))
        assert self.succeeded() < self.enqueued, "all work was done before the fault: the test shows nothing"

    def verdict(self) -> None:
        """Every job ended once, as a success, with its own result; the workers live and none says it is in trouble."""
        self.wait_for(self.enqueued)
        assert {name: worker.poll() for name, worker in self.workers.items()} == dict.fromkeys(self.workers), (
            self._tails()
        )
        with psycopg.connect(self.direct_url, autocommit=True) as connection:
            connection.execute(f'set search_path = "{self.schema}"')
            ended = connection.execute(
                "select count(*), count(distinct o.job_id), count(*) filter (where o.state = 's' and "
                "o.result::int = (j.payload::jsonb->>'number')::int) from outcome o join job j on j.id = o.job_id"
            ).fetchone()
            left = connection.execute("select count(*) from runtime").fetchone()
        assert ended == (self.enqueued,) * 3
        assert left == (0,)

    def _tails(self) -> str:
        logs = (self.log(language) for language in LANGUAGES)
        return "\n".join(f"{log.name}:\n{log.read_text(errors='replace')[-1500:]}" for log in logs if log.exists())


def until(condition: Callable[[], bool], said: Callable[[], str], patience_s: float = PATIENCE_S) -> None:
    """Waits for a condition; `said` tells what was seen instead."""
    end = time.monotonic() + patience_s * scale()
    while not condition():
        assert time.monotonic() < end, said()
        time.sleep(0.1)
