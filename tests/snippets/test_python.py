"""Python: mypy --strict, but that a snippet may leave the types of its own functions out.

`queue`, `worker` and `job` are what their names say; any other name a snippet takes for granted may be anything.
"""

from __future__ import annotations

import ast
import builtins
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from . import blocks
from .blocks import ROOT, Block

BLOCKS = blocks.of("python")
KNOWN = {"queue": "Queue", "worker": "Worker", "job": "Job"}
RELAXED = ["--allow-untyped-defs", "--allow-untyped-calls", "--allow-untyped-decorators", "--check-untyped-defs"]


def _taken_for_granted(text: str) -> list[str]:
    tree = ast.parse(text)
    bound, used = set(dir(builtins)), set()
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Load()):
                used.add(name)
            case ast.Name(id=name) | ast.arg(arg=name):
                bound.add(name)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                bound.add(name)
            case ast.ExceptHandler(name=str(name)):
                bound.add(name)
            case ast.alias(name=name, asname=other):
                bound.add((other or name).split(".")[0])
    return sorted(used - bound)


def _program(block: Block) -> str:
    import drayhorse

    lines = ["import typing as _t", "import drayhorse as _d"]
    for name in _taken_for_granted(block.text):
        if hasattr(drayhorse, name):
            lines.append(f"from drayhorse import {name}")
        else:
            lines.append(f"{name}: {'_d.' + KNOWN[name] if name in KNOWN else '_t.Any'}")
    body = block.text
    if _awaits_at_the_top(body):
        body = "async def _snippet() -> None:\n" + textwrap.indent(body, "    ")
    return "\n".join(lines) + "\n" + body


def _awaits_at_the_top(text: str) -> bool:
    try:
        compile(text, "snippet", "exec")
    except SyntaxError:
        return True
    return False


@pytest.fixture(scope="module")
def complaints(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """What mypy says, by snippet; one run for all."""
    folder = tmp_path_factory.mktemp("python")
    for block in BLOCKS:
        (folder / f"{block.stem}.py").write_text(_program(block))
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", *RELAXED, "--cache-dir", str(ROOT / ".tools" / "mypy"), "."],
        cwd=folder,
        env={"MYPYPATH": str(ROOT / "bindings-python" / "python"), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    said: dict[str, list[str]] = {}
    for line in done.stdout.splitlines():
        said.setdefault(Path(line.split(":")[0]).stem, []).append(line)
    return said


@pytest.mark.parametrize("block", BLOCKS, ids=blocks.name)
def test_python_snippet(block: Block, complaints: dict[str, list[str]]) -> None:
    assert complaints.get(block.stem, []) == []


def test_what_a_snippet_takes_for_granted_is_found() -> None:
    text = "@worker.handler('x')\ndef f(a, b: int = c):\n    import os\n    return os.path, a, d, len([e for e in b])\n"
    assert _taken_for_granted(text) == ["c", "d", "worker"]
