"""Where things are: the folders of the repository that the harness reads and the ignored ones it writes."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent

TOOLS = ROOT / ".tools"
VENV = TOOLS / "venv"
PYTHON = VENV / "bin" / "python"
GO_BIN = TOOLS / "go" / "bin"
LOGS = TOOLS / "logs"

CARGO_OUT = ROOT / "target" / "debug"
PYTHON_PACKAGE = ROOT / "bindings-python" / "python" / "drayhorse"
NODE_PACKAGE = ROOT / "bindings-node"
GO_MODULE = ROOT / "go"
TESTS = ROOT / "tests"


def shown(path: Path) -> str:
    """The path as a person at the repository's top would type it."""
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)
