"""Programs in other languages that use the checkout's packages as if they were installed.

Node gets a folder in which `drayhorse` resolves, Go a module that replaces the published one. The demo and the fault
tests have theirs made here.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from . import paths
from .failure import HarnessError


def node(sources: Path, folder: Path) -> Path:
    """The folder, with copies of the `.mjs` files of `sources`."""
    _empty(folder)
    for program in sources.glob("*.mjs"):
        shutil.copy2(program, folder)
    modules = folder / "node_modules"
    modules.mkdir()
    (modules / "drayhorse").symlink_to(paths.NODE_PACKAGE)
    return folder


def go(sources: Path, folder: Path, env: Mapping[str, str] = os.environ) -> Path:
    """The program built from the Go files of `sources`."""
    _empty(folder)
    for file in sources.glob("*.go"):
        shutil.copy2(file, folder)
    module = (paths.GO_MODULE / "go.mod").read_text().split()[1]
    (folder / "go.mod").write_text(
        f"module program\n\ngo 1.24\n\nrequire {module} v0.0.0\n\nreplace {module} => {paths.GO_MODULE}\n"
    )
    argv = ["go", "build", "-o", "program", "."]
    built = subprocess.run(argv, cwd=folder, env=dict(env), capture_output=True, text=True, check=False)
    if built.returncode != 0:
        raise HarnessError(f"the Go program of {paths.shown(sources)} does not build:\n{built.stderr.strip()}")
    return folder / "program"


def _empty(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
