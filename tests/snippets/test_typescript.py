"""TypeScript: tsc --strict. Names a snippet takes for granted are declared as Python's are."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from . import blocks
from .blocks import ROOT, Block

BLOCKS = blocks.of("ts")
NODE = ROOT / "bindings-node"
KNOWN = {"queue": "Queue", "worker": "Worker", "job": "Job"}
MISSING = re.compile(
    r"^(?P<file>\w+)\.mts\(\d+,\d+\): error TS(?:2304|2552|2503): Cannot find name(?:space)? '(?P<name>\w+)'"
)
SETTINGS = {
    "compilerOptions": {
        "target": "es2022",
        "module": "nodenext",
        "strict": True,
        "noEmit": True,
        "skipLibCheck": True,
        "types": ["node"],
        "typeRoots": [str(NODE / "node_modules" / "@types")],
    },
    "include": ["*.mts"],
}


def _tsc(folder: Path) -> list[str]:
    done = subprocess.run(
        [str(NODE / "node_modules" / ".bin" / "tsc"), "-p", "."],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    return [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]


def _declared(name: str) -> str:
    kind = f'import("drayhorse").{KNOWN[name]}' if name in KNOWN else "any"
    return f"declare const {name}: {kind};"


@pytest.fixture(scope="module")
def complaints(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """What tsc says, by snippet: asked twice, because the first time it also names what has to be declared."""
    folder = tmp_path_factory.mktemp("ts")
    (folder / "node_modules").mkdir()
    (folder / "node_modules" / "drayhorse").symlink_to(NODE)
    (folder / "tsconfig.json").write_text(json.dumps(SETTINGS))
    for block in BLOCKS:
        (folder / f"{block.stem}.mts").write_text(f"export {{}};\n{block.text}")
    missing: dict[str, set[str]] = {}
    for line in _tsc(folder):
        if found := MISSING.match(line):
            missing.setdefault(found["file"], set()).add(found["name"])
    for stem, names in missing.items():
        file = folder / f"{stem}.mts"
        file.write_text("\n".join(_declared(name) for name in sorted(names)) + "\n" + file.read_text())
    said: dict[str, list[str]] = {}
    for line in _tsc(folder) if BLOCKS else []:
        said.setdefault(line.split(".mts(")[0], []).append(line)
    return said


@pytest.mark.parametrize("block", BLOCKS, ids=blocks.name)
def test_typescript_snippet(block: Block, complaints: dict[str, list[str]]) -> None:
    unknown = [line for stem, lines in complaints.items() if stem not in {b.stem for b in BLOCKS} for line in lines]
    assert complaints.get(block.stem, []) + unknown == []
