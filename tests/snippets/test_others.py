"""Go, shell, JSON and the Makefile's targets: parsed by their own tools; a whole Go program is also type-checked."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from . import blocks
from .blocks import ROOT, Block


def _check(argv: list[str], cwd: Path, text: str | None = None) -> None:
    done = subprocess.run(argv, cwd=cwd, input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def _go(text: str, folder: Path) -> None:
    # An ellipsis character stands for code that is left out.
    _check(["gofmt", "-e"], folder, text.replace("…", "/* … */"))
    if re.match(r"\s*(//[^\n]*\n|\s)*package \w+", text):
        module = (ROOT / "go" / "go.mod").read_text().split()[1]
        (folder / "snippet.go").write_text(text)
        (folder / "go.mod").write_text(
            f"module snippet\n\ngo 1.24\n\nrequire {module} v0.0.0\n\nreplace {module} => {ROOT / 'go'}\n"
        )
        _check(["go", "vet", "."], folder)


def _shell(text: str, folder: Path) -> None:
    _check(["bash", "-n"], folder, text)


def _json(text: str, folder: Path) -> None:
    json.loads(text)


CHECKS = {"go": _go, "sh": _shell, "json": _json}
BLOCKS = [block for language in CHECKS for block in blocks.of(language)]


@pytest.mark.parametrize("block", BLOCKS, ids=blocks.name)
def test_snippet(block: Block, tmp_path: Path) -> None:
    CHECKS[block.language](block.text, tmp_path)


def test_every_make_target_that_is_named_exists() -> None:
    targets = set(re.findall(r"^([a-z%-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    groups = re.search(r"^GROUPS := (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert groups is not None
    targets |= {f"test-{group}" for group in groups[1].split()} | {"test-GROUP", "test-X"}
    named = {
        (str(page.relative_to(ROOT)), target)
        for page in blocks.pages()
        for target in re.findall(r"`make ([a-zA-Z-]+)", page.read_text(encoding="utf-8"))
    }
    assert {(page, target) for page, target in named if target not in targets} == set()
