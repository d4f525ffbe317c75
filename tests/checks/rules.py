"""Every rule of docs/rules.md has a proof that exists, and every scenario proves a rule that is listed there.

A proof is `file.json`: name of a scenario in it, or a path of a test in the repository.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ROW = re.compile(r"^\| `(?P<rule>[A-Za-z0-9.-]+)` \| (?P<says>.+?) \| (?P<proof>.*) \|$")


def faults() -> list[str]:
    """What is wrong, a sentence each; empty when the map holds."""
    found: list[str] = []
    scenarios: dict[str, set[str]] = {}
    named: set[str] = set()
    for path in sorted((ROOT / "tests" / "scenarios").glob("*.json")):
        content = json.loads(path.read_text(encoding="utf-8"))
        scenarios[path.name] = {s["name"] for s in content["scenarios"]}
        for scenario in content["scenarios"]:
            if not scenario["rules"]:
                found.append(f"{path.name}: {scenario['name']!r} proves no rule")
            named.update(scenario["rules"])
    listed: set[str] = set()
    for line in (ROOT / "docs" / "rules.md").read_text(encoding="utf-8").splitlines():
        row = ROW.match(line)
        if row is None:
            continue
        rule = row["rule"]
        if rule in listed:
            found.append(f"{rule} is listed twice")
        listed.add(rule)
        proofs = [p.strip() for p in row["proof"].split(";") if p.strip()]
        if not proofs:
            found.append(f"{rule} has no proof")
        for proof in proofs:
            file, _, name = proof.partition(": ")
            file = file.strip("`")
            if file.endswith(".json"):
                if name not in scenarios.get(file, set()):
                    found.append(f"{rule}: there is no scenario {name!r} in {file}")
            elif not (ROOT / file).is_file():
                found.append(f"{rule}: there is no test {file}")
    found.extend(f"scenarios name {rule}, which docs/rules.md does not list" for rule in sorted(named - listed))
    if not listed:
        found.append("docs/rules.md lists no rule")
    return found


def main() -> int:
    found = faults()
    for fault in found:
        print(fault)
    print(f"rules: {len(found)} faults")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
