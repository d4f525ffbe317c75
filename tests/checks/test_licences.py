"""What the shipped libraries may contain: licences that a user of an MIT or Apache project expects, and no crate
twice without a reason.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections import defaultdict
from functools import cache
from typing import Any

from . import tree

SHIPPED = {
    "MIT", "MIT-0", "Apache-2.0", "Apache-2.0 WITH LLVM-exception", "BSD-2-Clause", "BSD-3-Clause", "ISC", "Zlib",
    "Unicode-3.0", "Unlicense", "BSL-1.0", "CC0-1.0", "CDLA-Permissive-2.0",
}  # fmt: skip
# Tools that run at build time leave nothing in a library; a file-wise copyleft does no harm there.
BUILD_TIME = SHIPPED | {"MPL-2.0"}

# Crates that others still need in two versions, and which those are.
KNOWN_DUPLICATES: dict[str, str] = {
    "const-oid": "sha2 0.11 of ours, and the certificate parser under tokio-postgres-rustls",
    "getrandom": "uuid and rand of ours, and ring",
    "syn": "procedural macros, at build time",
    "nix": "two generations behind terminal crates",
}

TARGET = "x86_64-unknown-linux-gnu"


@cache
def _metadata() -> dict[str, Any]:
    asked = subprocess.run(
        ["cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform", TARGET],
        cwd=tree.ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    metadata: dict[str, Any] = json.loads(asked.stdout)
    return metadata


def _packages(kinds: set[str | None]) -> list[dict[str, Any]]:
    """Everything reached from the workspace by dependencies of these kinds (None is a normal one)."""
    metadata = _metadata()
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    reached: set[str] = set()
    waiting = list(metadata["workspace_members"])
    while waiting:
        current = waiting.pop()
        if current in reached:
            continue
        reached.add(current)
        for dependency in nodes[current]["deps"]:
            if any(kind["kind"] in kinds for kind in dependency["dep_kinds"]):
                waiting.append(dependency["pkg"])
    return [package for package in metadata["packages"] if package["id"] in reached]


def _allowed(expression: str, allowed: set[str]) -> bool:
    """Whether an SPDX expression can be met with these licences."""
    text = expression.replace("/", " OR ")
    tokens = re.findall(r"\(|\)|\bAND\b|\bOR\b|[\w.+-]+(?: WITH [\w.-]+)?", text)
    said = [
        {"AND": "and", "OR": "or"}.get(token, token if token in "()" else str(token in allowed)) for token in tokens
    ]
    return bool(eval(" ".join(said), {"__builtins__": {}}))


def test_expressions_are_understood() -> None:
    assert _allowed("MIT/Apache-2.0", {"MIT"})
    assert _allowed("(MIT OR GPL-3.0) AND ISC", {"MIT", "ISC"})
    assert not _allowed("(MIT OR GPL-3.0) AND ISC", {"MIT"})
    assert _allowed("Apache-2.0 WITH LLVM-exception OR GPL-3.0", {"Apache-2.0 WITH LLVM-exception"})
    assert not _allowed("GPL-3.0", {"MIT"})


def test_shipped_licences() -> None:
    bad = [f"{p['name']} {p['version']}: {p['license']}" for p in _packages({None}) if not _fits(p, SHIPPED)]
    assert bad == []


def test_build_time_licences() -> None:
    every = _packages({None, "build", "dev"})
    bad = [f"{p['name']} {p['version']}: {p['license']}" for p in every if not _fits(p, BUILD_TIME)]
    assert bad == []


def _fits(package: dict[str, Any], allowed: set[str]) -> bool:
    return package["license"] is not None and _allowed(package["license"], allowed)


def test_no_crate_is_shipped_twice_without_a_reason() -> None:
    versions: defaultdict[str, set[str]] = defaultdict(set)
    for package in _packages({None}):
        versions[package["name"]].add(package["version"])
    twice = {name: sorted(found) for name, found in versions.items() if len(found) > 1}
    assert {name: found for name, found in twice.items() if name not in KNOWN_DUPLICATES} == {}


def test_our_own_licence_is_there() -> None:
    ours = [package for package in _metadata()["packages"] if package["name"].startswith("drayhorse")]
    assert {package["license"] for package in ours} == {"MIT OR Apache-2.0"}
    for name in ("LICENSE-MIT", "LICENSE-APACHE"):
        assert (tree.ROOT / name).stat().st_size > 500
