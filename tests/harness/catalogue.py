"""Every step of `make test`, in the order in which they run: what is quick to fail comes first.

To add a check, add a step here; `make test-GROUP` and `make step NAME=…` find it by its group and name.
"""

from __future__ import annotations

from pathlib import Path

from . import counts, paths
from .counts import Parser
from .step import RESULTS_VARIABLE, Command, Need, Step

ROOT = paths.ROOT
PY = str(paths.PYTHON)
RUFF = str(paths.VENV / "bin" / "ruff")
PYTHON_SOURCES = ("bindings-python", "tests", "examples")
RUFF_CONFIG = ("--config", "tests/ruff.toml")

RESULTS = f"${RESULTS_VARIABLE}"
"""Where the scenario runners of this run write, known only when it runs."""

_TEST_NEEDS = (Need.VENV, Need.RUST, Need.SERVERS)


def _fixed(*argvs: tuple[str, ...]) -> Command:
    return lambda: [list(argv) for argv in argvs]


def _pytest(*folders: str) -> Command:
    return _fixed((PY, "-m", "pytest", "-p", "no:cacheprovider", *folders))


def _node_tests() -> list[list[str]]:
    # Node 20 finds no files by pattern.
    files = sorted((paths.NODE_PACKAGE / "test").rglob("*.test.mjs"))
    return [["node", "--test", *(str(file.relative_to(paths.NODE_PACKAGE)) for file in files)]]


def _scenario_runners() -> tuple[Step, ...]:
    """Each language's own tests run the scenarios; these steps run nothing but them, for `make test-scenarios`."""
    cargo = _fixed(("cargo", "test", "--workspace", "--locked", "--no-fail-fast", "--test", "scenarios"))
    python = _pytest("bindings-python/tests/test_scenarios.py")
    node = _fixed(("node", "--test", "test/scenarios.test.mjs"))
    go = _fixed(("go", "test", "-v", "-count=1", "-run", "^TestScenarios$", "."))
    with_node = (*_TEST_NEEDS, Need.NODE_MODULES, Need.TYPESCRIPT)
    rows: tuple[tuple[str, Command, Path, tuple[Need, ...], Parser], ...] = (
        # C's runner is a test target of the same name, so this is both.
        ("rust", cargo, ROOT, _TEST_NEEDS, counts.cargo),
        ("python", python, ROOT, _TEST_NEEDS, counts.pytest),
        ("node", node, paths.NODE_PACKAGE, with_node, counts.node),
        ("go", go, paths.GO_MODULE, _TEST_NEEDS, counts.go),
    )
    return tuple(
        Step(
            f"{name}-scenarios", f"scenarios in {name}", ("scenarios",), command, cwd, needs, parser, only_by_name=True
        )
        for name, command, cwd, needs, parser in rows
    )


STEPS: tuple[Step, ...] = (
    Step("rustfmt", "rustfmt", ("lint",), _fixed(("cargo", "fmt", "--all", "--check")), ROOT),
    Step(
        "ruff",
        "ruff check and format",
        ("lint",),
        _fixed(
            (RUFF, "check", *RUFF_CONFIG, *PYTHON_SOURCES),
            (RUFF, "format", "--check", *RUFF_CONFIG, *PYTHON_SOURCES),
        ),
        ROOT,
        (Need.VENV,),
    ),
    Step(
        "mypy",
        "mypy --strict",
        ("lint",),
        _fixed((PY, "-m", "mypy", "--strict", "--config-file", "tests/mypy.ini")),
        ROOT,
        (Need.VENV,),
    ),
    Step(
        "tsc",
        "tsc --strict and the TypeScript linter",
        ("lint",),
        # The types test reads the declarations that the build makes.
        _fixed(("npm", "run", "typecheck"), ("npm", "run", "lint")),
        paths.NODE_PACKAGE,
        (Need.NODE_MODULES, Need.TYPESCRIPT),
    ),
    Step(
        "golint",
        "gofmt, go vet, staticcheck",
        ("lint",),
        _fixed(
            # gofmt lists files and exits 0: the list has to be empty.
            ("sh", "-c", 'bad=$(gofmt -l .); [ -z "$bad" ] || { echo "not formatted: $bad"; exit 1; }'),
            ("go", "vet", "./..."),
            (str(paths.GO_BIN / "staticcheck"), "./..."),
        ),
        paths.GO_MODULE,
        (Need.GO_TOOLS, Need.RUST),
    ),
    Step(
        "clippy",
        "clippy",
        ("lint",),
        _fixed(("cargo", "clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings")),
        ROOT,
        timeout_s=1800,
    ),
    Step(
        "checks",
        "words, licences, versions, harness",
        ("lint", "checks"),
        _pytest("tests/checks"),
        ROOT,
        (Need.VENV,),
        counts.pytest,
    ),
    Step(
        "surface",
        "the public surface of every language",
        ("lint", "checks"),
        _fixed((PY, "tests/checks/surface.py")),
        ROOT,
        (Need.VENV, Need.RUST, Need.NODE_MODULES, Need.TYPESCRIPT),
        counts.plain,
    ),
    Step(
        "rust",
        "Rust tests",
        ("rust",),
        _fixed(("cargo", "test", "--workspace", "--locked", "--no-fail-fast")),
        ROOT,
        _TEST_NEEDS,
        counts.cargo,
        timeout_s=2400,
    ),
    Step(
        "c",
        "C programs",
        ("c",),
        # Test targets of the whole workspace: choosing a package would compile it again with other features.
        _fixed(
            (
                *("cargo", "test", "--workspace", "--locked", "--no-fail-fast"),
                *("--test", "header", "--test", "programs", "--test", "scenarios"),
            )
        ),
        ROOT,
        _TEST_NEEDS,
        counts.cargo,
        timeout_s=1800,
        only_by_name=True,
    ),
    Step(
        "python",
        "Python tests",
        ("python",),
        _pytest("bindings-python/tests"),
        ROOT,
        _TEST_NEEDS,
        counts.pytest,
        timeout_s=1800,
    ),
    Step(
        "node",
        "Node tests",
        ("node",),
        _node_tests,
        paths.NODE_PACKAGE,
        (*_TEST_NEEDS, Need.NODE_MODULES, Need.TYPESCRIPT),
        counts.node,
        timeout_s=1800,
    ),
    Step(
        "go",
        "Go tests with the race detector",
        ("go",),
        _fixed(("go", "test", "-race", "-v", "-count=1", "-timeout", "25m", "./...")),
        paths.GO_MODULE,
        _TEST_NEEDS,
        counts.go,
        timeout_s=1800,
    ),
    *_scenario_runners(),
    Step(
        "scenarios",
        "every scenario in every language",
        ("scenarios",),
        _fixed((PY, "tests/scenarios/report.py", RESULTS)),
        ROOT,
        (Need.VENV,),
        counts.plain,
    ),
    Step(
        "snippets",
        "code in the documentation",
        ("snippets",),
        _pytest("tests/snippets"),
        ROOT,
        (Need.VENV, Need.RUST, Need.NODE_MODULES, Need.TYPESCRIPT),
        counts.pytest,
    ),
    Step(
        "packaging",
        "packages in empty environments",
        ("packaging",),
        _pytest("tests/packaging"),
        ROOT,
        (*_TEST_NEEDS, Need.NODE_MODULES, Need.TYPESCRIPT),
        counts.pytest,
        timeout_s=1800,
    ),
    Step(
        "faults",
        "faults between processes",
        ("faults",),
        _pytest("tests/faults", "-rP"),
        ROOT,
        (*_TEST_NEEDS, Need.NODE_MODULES, Need.TYPESCRIPT),
        counts.pytest,
        # The literal sizes of a long run take an hour or two.
        timeout_s=4 * 3600,
    ),
    Step(
        "smoke",
        "many jobs through each SDK",
        ("smoke",),
        _fixed((PY, "-m", "faults.smoke")),
        ROOT,
        (*_TEST_NEEDS, Need.NODE_MODULES, Need.TYPESCRIPT),
        counts.plain,
        timeout_s=1800,
    ),
)


def in_group(group: str) -> list[Step]:
    """The steps of a group, or the one step with that name."""
    return [step for step in STEPS if group in step.groups or group == step.name]


def groups() -> list[str]:
    """Every group and step name that `make` can be asked for."""
    return sorted({name for step in STEPS for name in (step.name, *step.groups)})
