"""The documented snippets: they run as they stand and pass mypy --strict."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from helpers import PACKAGE

import drayhorse
from drayhorse import EnqueueOptions, Queue

SNIPPETS = {
    "attempt budget": """\
queue.enqueue(
    "provider.sync",
    {"accountId": account_id},
    EnqueueOptions(max_attempts=5),
)
""",
    "retry policy": """\
jitter = {"type": "decorrelated-jitter", "baseDelayMs": 1_000, "maxDelayMs": 60_000}
queue.enqueue(
    "provider.sync", {"accountId": account_id},
    EnqueueOptions(retry_policy=jitter, max_attempts=5),
)
""",
}

PRELUDE = """\
from drayhorse import EnqueueOptions, Queue

queue: Queue
account_id: int
"""


def strict(tmp_path: Path, code: str) -> str:
    file = tmp_path / "snippet.py"
    file.write_text(code)
    answer = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), str(file)],
        env={"MYPYPATH": str(PACKAGE), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    return answer.stdout


@pytest.mark.parametrize("name", SNIPPETS)
def test_snippets_run(queue: Queue, name: str) -> None:
    exec(SNIPPETS[name], {"queue": queue, "account_id": 7, "EnqueueOptions": EnqueueOptions})
    (job,) = queue.list(payload=True).jobs
    assert (job.type, job.payload, job.max_attempts) == ("provider.sync", {"accountId": 7}, 5)


def test_snippets_pass_the_strict_checker(tmp_path: Path) -> None:
    assert "Success" in strict(tmp_path, PRELUDE + "\n".join(SNIPPETS.values()))


def test_the_checker_sees_types(tmp_path: Path) -> None:
    """A wrong option is found, and typed handlers of both kinds are accepted."""
    assert "max_attempts" in strict(tmp_path, PRELUDE + 'queue.enqueue("t", 1, EnqueueOptions(max_attempts="5"))')
    typed = """
from collections.abc import Mapping
from typing import Any
from drayhorse import AsyncJob, AsyncQueue, Job, Queue, Worker, WorkerOptions

def delay(attempt: int, job: Job | AsyncJob) -> float | None:
    return 5.0 * attempt

def build(queue: Queue) -> Worker:
    worker = Worker(queue, WorkerOptions(concurrency=2, retry_delay_ms=delay))

    @worker.handler("a")
    def plain(payload: Mapping[str, Any], job: Job) -> dict[str, int]:
        rows: list[int] = job.checkpoint("rows", lambda: [1, 2])
        return {"rows": len(rows)}

    @worker.handler("b", version="2")
    async def coroutine(payload: Any, job: AsyncJob) -> int:
        async def fetch() -> list[int]:
            return [1]
        rows: list[int] = await job.checkpoint("rows", fetch)
        count: int = await job.checkpoint("count", lambda: len(rows))
        return count

    plain({}, None)  # type: ignore[arg-type]
    return worker

async def main(url: str) -> str:
    async with await AsyncQueue.connect(url) as queue:
        made = await queue.enqueue("a", {"n": 1})
        job = await queue.get(made)
        assert job is not None
        return job.state + made.id
"""
    found = strict(tmp_path, typed)
    assert "Success" in found, found


def test_everything_public_is_exported_once() -> None:
    assert len(set(drayhorse.__all__)) == len(drayhorse.__all__)
    for name in drayhorse.__all__:
        assert getattr(drayhorse, name) is not None
