"""Puts the demo together and runs it in the foreground: `examples/demo` expects the other languages' programs ready."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping

from . import paths, programs
from .servers import postgres_18

SOURCE = paths.ROOT / "examples" / "demo"
FOLDER = paths.TOOLS / "demo"


def run(env: Mapping[str, str]) -> int:
    """The demo's exit code."""
    environment = {
        **env,
        "DEMO_NODE": str(programs.node(SOURCE, FOLDER / "node")),
        "DEMO_GO": str(programs.go(SOURCE / "go", FOLDER / "go", env)),
        "DRAYHORSE_POSTGRES_BIN": str(postgres_18()),
    }
    if url := os.environ.get("DRAYHORSE_URL"):
        environment["DRAYHORSE_URL"] = url
    return subprocess.run([str(paths.PYTHON), str(SOURCE / "run.py")], env=environment, check=False).returncode
