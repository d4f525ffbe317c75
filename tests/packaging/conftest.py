"""A schema of the test's own, and a command that must succeed."""

from __future__ import annotations

import os
import subprocess
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest

ROOT = Path(__file__).resolve().parent.parent.parent


@dataclass(frozen=True)
class Place:
    """Where a test's program finds its queue."""

    url: str
    schema: str


@pytest.fixture
def place() -> Iterator[Place]:
    found = Place(os.environ["DRAYHORSE_TEST_URL"], f"packaging_{uuid.uuid4().hex[:8]}")
    yield found
    with psycopg.connect(found.url, autocommit=True) as connection:
        connection.execute(f'drop schema if exists "{found.schema}" cascade')


def clean_env(**more: str) -> dict[str, str]:
    """The environment without the checkout's packages, as on a machine that has only what was installed."""
    kept = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "NODE_PATH")}
    return {**kept, **more}


def run(argv: Sequence[str | Path], cwd: Path, env: Mapping[str, str], timeout_s: float = 900) -> str:
    """Standard output of a command that must succeed."""
    done = subprocess.run(
        [str(part) for part in argv],
        cwd=cwd,
        env=dict(env),
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=timeout_s,
        check=False,
    )
    assert done.returncode == 0, f"{argv}\n{done.stdout}\n{done.stderr}"
    return done.stdout
