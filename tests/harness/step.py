"""One step of a run: what it is called, what it needs first, the command, and how its tests are counted.

`catalogue` holds them all, `runner` executes them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from .counts import Counts, Parser

Command = Callable[[], list[list[str]]]
"""The command lines of a step, made when it runs: some depend on what a build put in place."""


RESULTS_VARIABLE = "DRAYHORSE_SCENARIO_RESULTS"
"""Names the folder of a run in which every language's scenario runner notes what it ran."""


class Need(Enum):
    """What has to be there before a step can run; each is prepared once in a run."""

    VENV = "Python environment"
    NODE_MODULES = "Node packages"
    GO_TOOLS = "Go tools"
    RUST = "Rust build"
    TYPESCRIPT = "TypeScript build"
    SERVERS = "databases"


@dataclass(frozen=True)
class Step:
    """Everything that is fixed about a step."""

    name: str
    title: str
    groups: tuple[str, ...]
    commands: Command
    cwd: Path
    needs: tuple[Need, ...] = ()
    counts: Parser | None = None
    timeout_s: float = 900
    env: Mapping[str, str] = field(default_factory=dict)
    only_by_name: bool = False
    """Not in a full run: another step covers it, this one is for `make test-GROUP`."""


@dataclass(frozen=True)
class Result:
    """How a step ended. `problem` is empty when it went well."""

    name: str
    title: str
    seconds: float
    counts: Counts
    problem: str = ""
    log: Path | None = None
