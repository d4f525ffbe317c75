"""The files that belong to the product: what git tracks or would add, without lock files."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent

_LOCKS = {"Cargo.lock", "package-lock.json", "go.sum", "requirements.txt"}


@cache
def files() -> tuple[Path, ...]:
    """Every file of the product, relative to the top."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    names = sorted(name.decode() for name in listed.stdout.split(b"\0") if name)
    return tuple(Path(name) for name in names if (ROOT / name).is_file() and Path(name).name not in _LOCKS)


def lines(file: Path) -> Iterator[tuple[int, str]]:
    """The numbered lines of a text file; none of a binary one."""
    content = (ROOT / file).read_bytes()
    if b"\0" not in content:
        yield from enumerate(content.decode("utf-8", "replace").splitlines(), 1)
