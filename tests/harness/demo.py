"""Puts the demo together and runs it in the foreground: `examples/demo` expects the other languages' programs ready.

Node gets a folder in which `drayhorse` resolves to the checkout, Go a module that replaces the published one.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from . import paths
from .failure import HarnessError
from .servers import postgres_18

SOURCE = paths.ROOT / "examples" / "demo"
FOLDER = paths.TOOLS / "demo"


def run(env: Mapping[str, str]) -> int:
    """The demo's exit code."""
    environment = {
        **env,
        "DEMO_NODE": str(_node()),
        "DEMO_GO": str(_go(env)),
        "DRAYHORSE_POSTGRES_BIN": str(postgres_18()),
    }
    if url := os.environ.get("DRAYHORSE_URL"):
        environment["DRAYHORSE_URL"] = url
    return subprocess.run([str(paths.PYTHON), str(SOURCE / "run.py")], env=environment, check=False).returncode


def _node() -> Path:
    folder = _empty(FOLDER / "node")
    for program in SOURCE.glob("*.mjs"):
        shutil.copy2(program, folder)
    modules = folder / "node_modules"
    modules.mkdir()
    (modules / "drayhorse").symlink_to(paths.NODE_PACKAGE)
    return folder


def _go(env: Mapping[str, str]) -> Path:
    folder = _empty(FOLDER / "go")
    for program in (SOURCE / "go").glob("*.go"):
        shutil.copy2(program, folder)
    module = (paths.GO_MODULE / "go.mod").read_text().split()[1]
    (folder / "go.mod").write_text(
        f"module demo\n\ngo 1.24\n\nrequire {module} v0.0.0\n\nreplace {module} => {paths.GO_MODULE}\n"
    )
    program = folder / "demo"
    built = subprocess.run(
        ["go", "build", "-o", str(program), "."], cwd=folder, env=dict(env), capture_output=True, text=True, check=False
    )
    if built.returncode != 0:
        raise HarnessError(f"the demo's Go program does not build:\n{built.stderr.strip()}")
    return program


def _empty(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder
