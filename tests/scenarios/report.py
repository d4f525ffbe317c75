"""Compares what every language's runner has written down with the scenarios there are: none may be left out anywhere.

Usage: report.py FOLDER, where FOLDER holds `LANGUAGE.jsonl`, a line `{"file", "name", "passed"}` per scenario. Closes
with `N passed, N failed` over the scenarios; one has passed when it has in every language it is meant for.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
LANGUAGES = ("rust", "python", "node", "go")
PROTOCOL_LANGUAGES = ("c",)

Scenario = tuple[str, str]


def expected() -> dict[Scenario, tuple[str, ...]]:
    """Every scenario with the languages that have to run it."""
    found = {}
    for path in sorted(HERE.glob("*.json")):
        content = json.loads(path.read_text(encoding="utf-8"))
        languages = LANGUAGES + (PROTOCOL_LANGUAGES if content.get("protocol") else ())
        for scenario in content["scenarios"]:
            found[path.name, scenario["name"]] = languages
    return found


def results(folder: Path, language: str) -> dict[Scenario, bool]:
    """What a language has run; a scenario that ran more than once passed only if it always did."""
    found: dict[Scenario, bool] = {}
    file = folder / f"{language}.jsonl"
    if file.exists():
        for line in file.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            key = (row["file"], row["name"])
            found[key] = found.get(key, True) and row["passed"] is True
    return found


def main() -> int:
    """Exit code 1 when a scenario failed or was left out in any language."""
    folder = Path(sys.argv[1])
    wanted = expected()
    ran = {language: results(folder, language) for language in LANGUAGES + PROTOCOL_LANGUAGES}
    failed = 0
    for (file, name), languages in wanted.items():
        bad = [
            f"{language} {'failed' if (file, name) in ran[language] else 'left it out'}"
            for language in languages
            if not ran[language].get((file, name))
        ]
        if bad:
            failed += 1
            print(f"{file}: {name}: {', '.join(bad)}")
    unknown = sorted({f"{file}: {name}" for rows in ran.values() for file, name in rows if (file, name) not in wanted})
    for scenario in unknown:
        print(f"{scenario}: there is no such scenario")
    for language, rows in ran.items():
        due = sum(language in languages for languages in wanted.values())
        print(f"{language:<8} {sum(rows.values())} of {due}")
    print(f"{len(wanted) - failed} passed, {failed + len(unknown)} failed")
    return 1 if failed or unknown else 0


if __name__ == "__main__":
    sys.exit(main())
