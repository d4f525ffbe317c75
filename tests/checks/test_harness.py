"""The harness's own rules: a count that is read wrong would make a failing run look well."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from harness import catalogue, counts, process, toolchain
from harness.counts import Counts

CARGO = """
test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s
test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
"""
PYTEST = """
===== 12 passed in 3.21s =====
===== 1 failed, 3 passed, 2 skipped, 1 error in 63.21s (0:01:03) =====
4 passed, 1 xfailed, 1 warning in 0.50s
"""
NODE_TAP = "# tests 5\n# pass 3\n# fail 1\n# cancelled 1\n# skipped 2\n# todo 0\n# duration_ms 12\n"
NODE_SPEC = "ℹ tests 2\nℹ pass 2\nℹ fail 0\nℹ cancelled 0\nℹ skipped 0\n"
GO = """
=== RUN   TestAll
    --- PASS: TestAll/one (0.00s)
    --- FAIL: TestAll/two (0.00s)
--- FAIL: TestAll (0.01s)
--- PASS: TestAllOther (0.00s)
--- SKIP: TestSlow (0.00s)
"""
PLAIN = (
    "scenario python: 9 of 9\n9 passed, 0 failed\nfaults: 3 passed, 1 failed, 2 skipped\nof 3 passed, 1 failed there\n"
)


@pytest.mark.parametrize(
    ("parser", "text", "expected"),
    [
        (counts.cargo, CARGO, Counts(5, 1, 1)),
        (counts.pytest, PYTEST, Counts(19, 2, 3)),
        (counts.node, NODE_TAP, Counts(3, 2, 2)),
        (counts.node, NODE_SPEC, Counts(2, 0, 0)),
        (counts.go, GO, Counts(2, 1, 1)),
        (counts.plain, PLAIN, Counts(12, 1, 2)),
        (counts.pytest, "\x1b[32m===== \x1b[1m2 passed\x1b[0m in 0.10s =====\x1b[0m", Counts(2, 0, 0)),
        (counts.cargo, "error: could not compile", Counts()),
    ],
)
def test_closing_lines(parser: counts.Parser, text: str, expected: Counts) -> None:
    assert counts.read(parser, text) == expected


def test_versions_are_compared_by_number() -> None:
    assert toolchain.parse_version("cargo 1.95.0 (abc 2026-01-01)") == (1, 95, 0)
    assert toolchain.parse_version("go version go1.26.8 linux/amd64") == (1, 26, 8)
    assert toolchain.parse_version("v20.20.2") > (20,)
    assert toolchain.parse_version("nothing") == ()


def test_a_missing_tool_is_named_in_one_line() -> None:
    line = toolchain.complaint(toolchain.Tool("no-such-tool", ("no-such-tool",), (1,), "install it"))
    assert line == "no-such-tool is missing: install it"
    old = toolchain.complaint(toolchain.Tool("git", ("git", "--version"), (99,), "install a newer one"))
    assert old is not None and old.startswith("git is ") and "\n" not in old


def test_steps_have_unique_names_and_known_groups() -> None:
    names = [step.name for step in catalogue.STEPS]
    assert len(names) == len(set(names))
    for group in ("lint", "rust", "python", "node", "go", "c", "scenarios"):
        assert catalogue.in_group(group), group


def test_a_step_that_hangs_is_ended_with_its_children(tmp_path: Path) -> None:
    log = tmp_path / "log"
    began = time.monotonic()
    code = process.run(
        ["sh", "-c", "sleep 61 & echo $!; wait"], cwd=tmp_path, env={"PATH": "/usr/bin:/bin"}, log=log, timeout_s=0.5
    )
    assert code == 124
    assert time.monotonic() - began < 10
    child = int(log.read_text().splitlines()[1])
    assert not _lives(child)


def test_a_server_ends_with_whoever_started_it(tmp_path: Path) -> None:
    guard = Path(process.__file__).with_name("guard.py")
    starter = (
        "import subprocess, sys, time\n"
        f"g = subprocess.Popen([{sys.executable!r}, {str(guard)!r}, 'SIGINT', '-', 'sh', '-c',"
        f" 'echo $$ > {tmp_path}/pid; exec sleep 62'], stdin=subprocess.PIPE)\n"
        "time.sleep(60)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", starter])
    pid_file = tmp_path / "pid"
    _wait(lambda: pid_file.exists() and pid_file.read_text().strip() != "")
    server = int(pid_file.read_text())
    parent.kill()
    parent.wait()
    _wait(lambda: not _lives(server))


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def _wait(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.05)


def test_a_scenario_left_out_in_one_language_is_a_failure(tmp_path: Path) -> None:
    from scenarios import report

    names = report.expected()
    for language in (*report.LANGUAGES, *report.PROTOCOL_LANGUAGES):
        rows = [
            json.dumps({"file": file, "name": name, "passed": True})
            for (file, name), languages in names.items()
            if language in languages
        ]
        (tmp_path / f"{language}.jsonl").write_text("\n".join(rows))
    argv = [sys.executable, report.__file__, str(tmp_path)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert done.stdout.splitlines()[-1] == f"{len(names)} passed, 0 failed"

    go = tmp_path / "go.jsonl"
    go.write_text("\n".join(go.read_text().splitlines()[1:]))
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "go left it out" in done.stdout
    assert done.stdout.splitlines()[-1] == f"{len(names) - 1} passed, 1 failed"
