"""Fixtures: a schema for each test, migrated, and dropped afterwards; a worker that runs beside the test."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from drayhorse import Queue, Worker

PACKAGE = Path(__file__).resolve().parent.parent / "python"


@pytest.fixture(scope="session")
def url() -> str:
    """The database of the tests."""
    given = os.environ.get("DRAYHORSE_TEST_URL")
    if not given:
        pytest.fail(
            "set DRAYHORSE_TEST_URL to a database in which these tests may create and drop schemas", pytrace=False
        )
    return given


@pytest.fixture
def schema(url: str) -> Iterator[str]:
    """A schema name of the test's own; what it names is dropped at the end."""
    name = f"py_{uuid.uuid4().hex[:16]}"
    yield name
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f'drop schema if exists "{name}" cascade')


@pytest.fixture
def queue(url: str, schema: str) -> Iterator[Queue]:
    """A connected queue in a migrated schema."""
    with Queue.connect(url, schema=schema) as connected:
        connected.migrate()
        yield connected


@contextmanager
def serving(worker: Worker) -> Iterator[Worker]:
    """Runs the worker in a thread for the block, drains it afterwards and raises what ended it."""
    ends: list[BaseException] = []

    def run() -> None:
        try:
            worker.run()
        except BaseException as error:
            ends.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield worker
    finally:
        worker.stop()
        thread.join(30)
    assert not thread.is_alive(), "the worker did not drain"
    if ends:
        raise ends[0]


def eventually(condition: Callable[[], Any], seconds: float = 30) -> Any:
    """What `condition` returns once that is true."""
    end = time.monotonic() + seconds
    while True:
        found = condition()
        if found:
            return found
        assert time.monotonic() < end, "it did not come true in time"
        time.sleep(0.02)


@pytest.fixture
def script(url: str, schema: str) -> Callable[..., subprocess.Popen[str]]:
    """Starts a Python program that finds `URL` and `SCHEMA` defined and the package importable."""

    def start(code: str, python: str = sys.executable) -> subprocess.Popen[str]:
        prelude = "import os\nURL = os.environ['TEST_URL']\nSCHEMA = os.environ['TEST_SCHEMA']\n"
        environment = {
            **os.environ,
            "PYTHONPATH": str(PACKAGE),
            "TEST_URL": url,
            "TEST_SCHEMA": schema,
            "PYTHONUNBUFFERED": "1",
        }
        return subprocess.Popen(
            [python, "-c", prelude + code],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            text=True,
        )

    return start
