"""T07: a handler that lets nothing else run keeps its lease, because the core renews it on a thread of its own.

One language at a time: three busy loops on two processors would say more about the machine than about the core.
"""

from __future__ import annotations

import pytest

from .evidence import verdict
from .lab import LANGUAGES, Lab
from .sizes import literal_s, until

LEASE_MS = int(literal_s(3_000, 5_000))
BUSY_MS = int(literal_s(8_000, 12_000))
ALONE = {"GOMAXPROCS": "1"}


@pytest.mark.parametrize("language", LANGUAGES)
def test_t07_a_handler_that_blocks_its_process_keeps_its_lease(lab: Lab, language: str) -> None:
    job = lab.act(("busy", BUSY_MS))
    busy = lab.start(language, lease_ms=LEASE_MS, env=ALONE)
    until(lambda: lab.starts(job), lab.situation)
    thief = lab.start("go", lease_ms=LEASE_MS)
    leases = set()
    with lab.session() as connection:

        def ended() -> bool:
            row = connection.execute("select wake_at from runtime where job_id = %s", [job]).fetchone()
            leases.add(row)
            return row is None

        until(ended, lab.situation)
    leases.discard(None)
    assert len(lab.starts(job)) == 1
    assert len(leases) >= 3, f"the claim's own lease and at least two renewals: {leases}"
    assert lab.rows("select attempt, state::text from outcome") == [(1, "s")]
    verdict(lab, 1)
    lab.stop(busy, thief)
