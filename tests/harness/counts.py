"""How many tests a runner says it ran: the closing lines of each, read from its log.

A runner that ends well without having run a test is a failure, so each parser answers zero rather than guessing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Counts:
    """Tests by how they ended."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def __add__(self, other: Counts) -> Counts:
        return Counts(self.passed + other.passed, self.failed + other.failed, self.skipped + other.skipped)

    @property
    def total(self) -> int:
        """Tests that were executed."""
        return self.passed + self.failed

    def __str__(self) -> str:
        skipped = f", {self.skipped} skipped" if self.skipped else ""
        return f"{self.passed} passed, {self.failed} failed{skipped}"


Parser = Callable[[str], Counts]

_CARGO = re.compile(r"^test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored", re.M)
_PYTEST_LINE = re.compile(r"^=*\s*((?:\d+ [a-z]+(?:, )?)+) in [\d.]+s.*$", re.M)
_PYTEST_PART = re.compile(r"(\d+) (passed|failed|errors?|skipped|xfailed|xpassed)\b")
_NODE = re.compile(r"^(?:#|ℹ) (pass|fail|cancelled|skipped|todo) (\d+)$", re.M)
_GO = re.compile(r"^\s*--- (PASS|FAIL|SKIP): (\S+)", re.M)
_PLAIN = re.compile(r"^(?:\w+: )?(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$", re.M)
_ANSI = re.compile(r"\x1b\[[0-9;]*m")


def cargo(text: str) -> Counts:
    """`test result: ok. 3 passed; 0 failed; 1 ignored; …`, one line for each test binary."""
    return _sum(Counts(*map(int, row)) for row in _CARGO.findall(text))


def pytest(text: str) -> Counts:
    """`== 3 passed, 1 error in 0.2s ==`; an error in a fixture is a failure."""
    total = Counts()
    for line in _PYTEST_LINE.findall(text):
        for number, word in _PYTEST_PART.findall(line):
            if word in ("passed", "xpassed"):
                total += Counts(passed=int(number))
            elif word in ("skipped", "xfailed"):
                total += Counts(skipped=int(number))
            else:
                total += Counts(failed=int(number))
    return total


def node(text: str) -> Counts:
    """`# pass 3` in TAP, `ℹ pass 3` for people; a cancelled test has failed."""
    total = Counts()
    for word, number in _NODE.findall(text):
        if word == "pass":
            total += Counts(passed=int(number))
        elif word in ("fail", "cancelled"):
            total += Counts(failed=int(number))
        else:
            total += Counts(skipped=int(number))
    return total


def go(text: str) -> Counts:
    """`--- PASS: TestX/case`, as `go test -v` prints them; a parent of subtests does not count besides them."""
    rows = _GO.findall(text)
    parents = {name.rsplit("/", depth)[0] for _, name in rows for depth in range(1, name.count("/") + 1)}
    leaves = [word for word, name in rows if name not in parents]
    return Counts(leaves.count("PASS"), leaves.count("FAIL"), leaves.count("SKIP"))


def plain(text: str) -> Counts:
    """`3 passed, 0 failed` alone on a line, how our own runners close."""
    return _sum(Counts(int(p), int(f), int(s or 0)) for p, f, s in _PLAIN.findall(text))


def read(parser: Parser, text: str) -> Counts:
    """What `parser` finds in a log, colours removed."""
    return parser(_ANSI.sub("", text))


def _sum(rows: Iterable[Counts]) -> Counts:
    total = Counts()
    for row in rows:
        total += row
    return total
