"""Enqueues many small jobs and drains them, with each SDK, and prints how long that took. No figure is a limit: what
has to hold is that every job is done once.

Run as a program by `make test-smoke`; its last line is the count of checks that the harness reads.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

from .lab import LANGUAGES, Lab, Programs
from .sizes import sized, until

JOBS = sized(20_000, 100_000)


def main() -> int:
    """Prints a line for each language; 0 when every job was done once."""
    failed = 0
    with tempfile.TemporaryDirectory(prefix="drayhorse-smoke-") as name:
        folder = Path(name)
        made = Programs(folder / "programs")
        for language in LANGUAGES:
            (folder / language).mkdir()
            try:
                print(_drain(made, language, folder / language), flush=True)
            except AssertionError as error:
                failed += 1
                print(f"{language}: {error}", flush=True)
    print(f"smoke: {len(LANGUAGES) - failed} passed, {failed} failed")
    return 1 if failed else 0


def _drain(made: Programs, language: str, folder: Path) -> str:
    with Lab(made, os.environ["DRAYHORSE_TEST_URL"], folder) as lab:
        began = time.monotonic()
        producer = lab.start(language, "batch", str(JOBS))
        assert producer.wait(600) == 0, producer.tail()
        enqueued = time.monotonic() - began
        assert lab.one("select count(*) from runtime") == JOBS

        worker = lab.start(language, concurrency=100, lease_ms=30_000)
        lab.started(1)
        began, spent = time.monotonic(), worker.cpu_s()
        until(lambda: lab.one("select count(*) = 0 from runtime"), lab.situation, 600)
        drained = time.monotonic() - began
        assert lab.outcomes() == {"succeeded": JOBS}
        assert lab.one("select count(*) from outcome where result <> (select payload from job where id = job_id)") == 0
        told = (
            f"{language}: {JOBS} jobs enqueued in {enqueued:.1f} s by batches of 500 (start of the program included), "
            f"drained in {drained:.1f} s ({JOBS / drained:.0f}/s), {worker.cpu_s() - spent:.1f} s of processor time, "
            f"{worker.resident_mb():.0f} MB"
        )
        lab.stop(worker)
    return told


if __name__ == "__main__":
    sys.exit(main())
