"""T08: what waits for its time waits in the table, however many workers poll for it."""

from __future__ import annotations

from drayhorse import EnqueueOptions

from .evidence import verdict
from .lab import LANGUAGES, Lab
from .sizes import literal_s

LEASE_MS = int(literal_s(1_000, 2_000))
DELAY_MS = int(literal_s(4_000, 10_000))
HINT_MS = int(literal_s(3_000, 30_000))


def test_t08_eight_polling_workers_start_a_delayed_job_once_and_not_before_its_time(lab: Lab) -> None:
    workers = [
        lab.start(language, prefetch=10, poll_ms=100, lease_ms=LEASE_MS)
        for language in (*LANGUAGES, *LANGUAGES, "go", "go")
    ]
    lab.started(8)
    delayed = lab.act(options=EnqueueOptions(delay_ms=DELAY_MS))
    hinted = lab.act(("hintFirst", HINT_MS), options=EnqueueOptions(retry_policy={"type": "fixed", "delayMs": 0}))
    assert lab.rows("select attempt, claimed_at from runtime where job_id = %s", delayed) == [(0, None)]
    lab.all_finished(60 + (DELAY_MS + HINT_MS) / 1000)
    assert len(lab.starts(delayed)) == 1 and len(lab.starts(hinted)) == 2
    ((early,),) = lab.rows(
        "select o.claimed_at < j.run_at or j.run_at < j.enqueued_at + %s * interval '1 ms' "
        "from outcome o join job j on j.id = o.job_id where o.job_id = %s",
        DELAY_MS,
        delayed,
    )
    assert not early
    ((waited_ms, source),) = lab.rows(
        "select extract(epoch from o.claimed_at - a.ended_at) * 1000, a.source "
        "from outcome o join attempt a using (job_id) where job_id = %s",
        hinted,
    )
    assert waited_ms >= HINT_MS and source == "retry_after"
    kinds = [event.kind for event in lab.queue.timeline(delayed)]
    assert kinds == ["enqueued", "promoted", "claimed", "succeeded"]
    verdict(lab, 2)
    lab.stop(*workers)
