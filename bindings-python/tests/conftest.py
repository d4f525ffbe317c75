"""Fixtures: a schema for each test, migrated, and dropped afterwards; programs that use it."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator

import psycopg
import pytest
from helpers import PACKAGE

from drayhorse import Queue


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
