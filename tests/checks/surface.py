"""The public surface of every language against one table, `tests/surface.json`.

Usage: surface.py [LANGUAGE ...]. Each row of the table is a concept and its spelling per language; a row that leaves
out one of Python, TypeScript and Go says why. A spelling that does not exist fails, and so does a public name that no
row lists. Durations have a unit: `ms` is whole milliseconds and stands at the end of the name, `Duration` is Go's type.
Closes with `N passed, N failed` over the spellings.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
TABLE = ROOT / "tests" / "surface.json"
SDKS = ("python", "typescript", "go")

Row: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True)
class Name:
    """A public name: its type as the language writes it, and whether the table has to list it."""

    type: str
    required: bool


Surface: TypeAlias = dict[str, Name]


def _printed(*argv: str) -> Surface:
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{argv[0]}: {done.stderr.strip()}")
    return {name: Name(one["type"], one["required"]) for name, one in json.loads(done.stdout).items()}


def python() -> Surface:
    """The package, by inspection."""
    from checks import surface_python  # needs the built package, which the other languages do not

    return {name: Name(type, required) for name, (type, required) in surface_python.names().items()}


def typescript() -> Surface:
    """The package's declarations, by the compiler."""
    return _printed("node", str(HERE / "surface_typescript.mjs"), "bindings-node")


def go() -> Surface:
    """The package's sources, by Go's parser."""
    return _printed("go", "run", str(HERE / "surface_go.go"), "go")


def c() -> Surface:
    """The functions of the header. A verb goes through one of them."""
    header = (ROOT / "bindings-c" / "include" / "drayhorse.h").read_text(encoding="utf-8")
    return {name: Name("", True) for name in re.findall(r"\b(dh_\w+)\(", header)}


def rust() -> Surface:
    """The verbs of the bridge."""
    source = (ROOT / "core" / "src" / "bridge" / "client" / "verbs.rs").read_text(encoding="utf-8")
    found = re.findall(r'\("([a-zA-Z.]+)", "rpc_\w+"\)', source) + re.findall(r'"([a-zA-Z.]+)" => Ok\(Verb', source)
    return {verb: Name("", True) for verb in found}


def sql() -> Surface:
    """The functions of the schema."""
    text = "\n".join(file.read_text(encoding="utf-8") for file in sorted((ROOT / "core" / "sql").rglob("*.sql")))
    return {name: Name("", False) for name in re.findall(r"create (?:or replace )?function (\w+)\(", text)}


SURFACES: Mapping[str, Callable[[], Surface]] = {
    "python": python,
    "typescript": typescript,
    "go": go,
    "c": c,
    "rust": rust,
    "sql": sql,
}


def rows() -> list[Row]:
    """The table."""
    table: list[Row] = json.loads(TABLE.read_text(encoding="utf-8"))
    return table


def spellings(row: Row, language: str) -> list[str]:
    """How a language spells a concept; several names where it needs several."""
    given = row.get(language, [])
    return [given] if isinstance(given, str) else list(given)


def table_faults(table: list[Row]) -> Iterator[str]:
    """What is wrong with the table itself."""
    concepts = [row["concept"] for row in table]
    for concept in sorted({one for one in concepts if concepts.count(one) > 1}):
        yield f"{concept} is listed twice"
    for row in table:
        unknown = row.keys() - {"concept", "unit", "why", *SURFACES}
        if unknown:
            yield f"{row['concept']} has no {', '.join(sorted(unknown))}"
        missing = [language for language in SDKS if not spellings(row, language)]
        if missing and not row.get("why"):
            yield f"{row['concept']} does not say why {' and '.join(missing)} have no name for it"
    documented = _documented_verbs()
    verbs = {verb for row in table for verb in spellings(row, "rust")}
    for verb in sorted(documented ^ verbs):
        yield f"verb {verb}: {'the table' if verb in documented else 'docs/architecture.md'} does not list it"


def _documented_verbs() -> set[str]:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    text = text[text.index("### Control verbs") : text.index("### Worker options")]
    found: set[str] = set()
    for cell in re.findall(r"^\| (`[^|]*) \|", text, re.M):
        group = ""
        for name in re.findall(r"`([\w.]+)`", cell):
            # `endpoints.pause` `resume`: the group is written once.
            group = name.rpartition(".")[0] or group
            found.add(name if "." in name or not group else f"{group}.{name}")
    return found


def language_faults(language: str, table: list[Row], real: Surface) -> Iterator[str]:
    """Where a language and the table differ."""
    listed: set[str] = set()
    for row in table:
        for name in spellings(row, language):
            listed.add(name)
            if name not in real:
                yield f"{language}: {row['concept']} is no {name} there"
            elif language in SDKS:
                yield from _unit_faults(language, name, real[name], row)
    for name, one in real.items():
        if one.required and name not in listed:
            yield f"{language}: {name} is in no row"


def _unit_faults(language: str, name: str, real: Name, row: Row) -> Iterator[str]:
    in_ms = re.search(r"(?:_ms|Ms)\)?$", name) is not None
    in_go_type = language == "go" and "time.Duration" in real.type
    unit = row.get("unit")
    if unit is None and (in_ms or in_go_type):
        yield f"{language}: {name} is a duration, its row has no unit"
    elif unit == "ms" and not in_ms and not in_go_type:
        yield f"{language}: {name} does not tell its unit"


def main() -> int:
    """Exit code 1 on any difference."""
    languages = sys.argv[1:] or list(SURFACES)
    table = rows()
    found = list(table_faults(table))
    compared = 0
    for language in languages:
        faults = list(language_faults(language, table, SURFACES[language]()))
        compared += sum(len(spellings(row, language)) for row in table)
        found.extend(faults)
    for fault in found:
        print(fault)
    print(f"{max(compared - len(found), 0)} passed, {len(found)} failed")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
