"""What the harness installs for itself under `.tools/`: a Python environment, Node packages and Go programs.

Everything is pinned: Python packages by hash, Node packages by the lock file, Go programs by version and Go's own
checksum database. Each part is stamped with the digest of what it was made from and made again only when that
changes.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from . import paths
from .failure import HarnessError

STATICCHECK = "honnef.co/go/tools/cmd/staticcheck@v0.8.2"


def python() -> None:
    """The environment in `.tools/venv` with everything in `tests/requirements.txt`."""
    requirements = paths.TESTS / "requirements.txt"

    def make() -> None:
        shutil.rmtree(paths.VENV, ignore_errors=True)
        _run([sys.executable, "-m", "venv", str(paths.VENV)], paths.ROOT)
        pip = [str(paths.PYTHON), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        _run([*pip, "--require-hashes", "--only-binary=:all:", "-r", str(requirements)], paths.ROOT)

    _stamped("venv", [requirements], sys.version, paths.PYTHON, make)


def node() -> None:
    """`node_modules` of the Node package, by its lock file."""
    lock = paths.NODE_PACKAGE / "package-lock.json"
    if not lock.exists():
        raise HarnessError(f"{paths.shown(lock)} is missing")

    def make() -> None:
        _run(["npm", "ci", "--no-audit", "--no-fund", "--loglevel=error"], paths.NODE_PACKAGE)

    _stamped("npm", [lock], "", paths.NODE_PACKAGE / "node_modules", make)


def go() -> None:
    """Staticcheck; Go's module proxy and checksum database fix its content."""

    def make() -> None:
        environment = {**os.environ, "GOBIN": str(paths.GO_BIN), "GOFLAGS": ""}
        _run(["go", "install", STATICCHECK], paths.ROOT, environment)

    version = subprocess.run(["go", "version"], capture_output=True, text=True, check=True).stdout
    _stamped("go", [], STATICCHECK + version, paths.GO_BIN / "staticcheck", make)


def _stamped(name: str, files: Sequence[Path], extra: str, product: Path, make: Callable[[], None]) -> None:
    digest = hashlib.sha256(extra.encode())
    for file in files:
        digest.update(file.read_bytes())
    stamp = paths.TOOLS / f"{name}.stamp"
    if product.exists() and stamp.exists() and stamp.read_text() == digest.hexdigest():
        return
    stamp.unlink(missing_ok=True)
    make()
    stamp.write_text(digest.hexdigest())


def _run(argv: Sequence[str], cwd: Path, env: dict[str, str] | None = None) -> None:
    done = subprocess.run(argv, cwd=cwd, env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    if done.returncode != 0:
        tail = "\n".join((done.stdout + done.stderr).splitlines()[-20:])
        raise HarnessError(f"`{' '.join(argv)}` failed:\n{tail}")
