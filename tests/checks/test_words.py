"""One word for each thing: these are the words of other systems for what is called otherwise here.

The glossary is in `docs/`; a host's own vocabulary (asyncio's tasks) is no synonym.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from . import tree

SYNONYMS = {
    "attempt": r"(retry|try|tries|failure)_?(count|number)\b|(max|num)_?(re)?tries",
    "fence": r"lock_?token|claim_?token|receipt_?handle",
    "lease": r"visibility_?timeout|lock_?duration",
    "job": r"\btasks?\b|\btask_|_tasks?\b",
    "failed outcome, dead letter": r"\bdlq\b|dead_?queue|morgue",
    "release, recovery or redrive": r"\bre-?queue",
    "complete, fail, release": r"\bn?acks?\b|\bnacked\b|\backed\b",
}

# What runtimes call a coroutine or a thread pool's work is theirs to name: a line that speaks of it, and any file
# that uses asyncio.
HOST_WORDS = re.compile(r"std::task|libuv|microtask|coroutine|tokio|threads or tasks")

SOURCES = {".rs", ".py", ".pyi", ".ts", ".mts", ".mjs", ".go", ".sql", ".c", ".h", ".md", ".json", ".toml"}
# This list, and what compares Drayhorse with systems that use the other words.
EXEMPT = re.compile(r"^(tests/checks/test_words\.py|docs/(glossary|compar).*|bench/.*)$")


def _uses_asyncio(file: Path) -> bool:
    if file.suffix not in {".py", ".pyi"}:
        return False
    return "async" in file.name or any("asyncio" in line for _, line in tree.lines(file))


def _found(word: str, pattern: str) -> list[str]:
    wanted = re.compile(pattern, re.IGNORECASE)
    return [
        f"{file}:{number}: say {word}: {line.strip()[:120]}"
        for file in tree.files()
        if file.suffix in SOURCES and not EXEMPT.match(str(file))
        if not (word == "job" and _uses_asyncio(file))
        for number, line in tree.lines(file)
        if wanted.search(line) and not HOST_WORDS.search(line)
    ]


@pytest.mark.parametrize(("word", "pattern"), SYNONYMS.items())
def test_synonyms_are_not_used(word: str, pattern: str) -> None:
    assert _found(word, pattern) == []
