"""What a run prints: a line per step, the end of a failed step's log, the times, and the closing count."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from . import paths
from .counts import Counts
from .step import Result

TAIL_LINES = 60


def begin(number: int, total: int, title: str) -> None:
    """Announces a step, so that one sees what takes long."""
    _write(f"[{number:>2}/{total}] {title} … ")


def end(result: Result) -> None:
    """Its result, and where to look if that is bad."""
    if not result.problem:
        said = str(result.counts) if result.counts.total else "ok"
        _write(f"{said}  ({result.seconds:.1f} s)\n")
        return
    _write(f"FAILED: {result.problem}  ({result.seconds:.1f} s)\n")
    if result.log and result.log.exists():
        lines = result.log.read_text(errors="replace").splitlines()
        for line in lines[-TAIL_LINES:]:
            _write(f"      | {line}\n")
        _write(f"      whole log: {paths.shown(result.log)}\n")


def note(text: str) -> None:
    """One line between steps."""
    _write(f"        {text}\n")


def close(results: Sequence[Result], seconds: float) -> bool:
    """Times, failures and the plain closing line that machines read; true when nothing failed."""
    total = Counts()
    for result in results:
        total += result.counts
        if result.problem and not result.counts.failed:
            total += Counts(failed=1)
    _write(f"\nTimes ({seconds:.0f} s in all)\n")
    for result in sorted(results, key=lambda r: -r.seconds):
        if result.seconds >= 0.5:
            _write(f"  {result.seconds:7.1f} s  {result.title}\n")
    failures = [result for result in results if result.problem]
    if failures:
        _write("\nFailed\n")
        for result in failures:
            where = f"  {paths.shown(result.log)}" if result.log else ""
            _write(f"  {result.title} ({result.name}): {result.problem}{where}\n")
    if total.total:
        _write(f"\n{total}\n")
    return not failures


def _write(text: str) -> None:
    # A log may hold what the terminal's encoding cannot show; a report must not fail over it.
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, "replace").decode(encoding))
    sys.stdout.flush()
