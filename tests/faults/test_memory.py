"""T45: a worker's memory does not grow with the jobs it has done."""

from __future__ import annotations

import time

from .lab import LANGUAGES, Lab
from .sizes import sized, until

JOBS_EACH = sized(10_000, 1_000_000)
GROWTH_MB = 40
"""Collectors breathe; what leaks a kilobyte a job shows even in the small size."""


def test_t45_a_worker_s_memory_is_the_same_after_many_jobs(lab: Lab) -> None:
    workers = {language: lab.start(language, queues=language, concurrency=50) for language in LANGUAGES}
    # The first tenth fills pools, caches and arenas.
    resident = {}
    for part, jobs in ((1, JOBS_EACH // 10), (2, JOBS_EACH - JOBS_EACH // 10)):
        began = time.monotonic()
        for language in LANGUAGES:
            for first in range(0, jobs, 5_000):
                _enqueue(lab, language, min(5_000, jobs - first))
        until(lambda: lab.one("select count(*) from runtime") == 0, lab.situation, 120 + JOBS_EACH / 100)
        resident[part] = {language: worker.resident_mb() for language, worker in workers.items()}
        print(f"{3 * jobs} jobs in {time.monotonic() - began:.1f} s, resident MB: {resident[part]}")
    assert lab.outcomes() == {"succeeded": 3 * JOBS_EACH}
    for language in LANGUAGES:
        grown = resident[2][language] - resident[1][language]
        assert grown < GROWTH_MB, f"{language} grew by {grown:.0f} MB"
    lab.stop(*workers.values())


def _enqueue(lab: Lab, queue: str, count: int) -> None:
    lab.rows(
        "select length(enqueue((select jsonb_agg(jsonb_build_object('id', gen_random_uuid(), 'type', 'noop', "
        "'queue', %s::text, 'payload', n)) from generate_series(1, %s) n)))",
        queue,
        count,
    )
