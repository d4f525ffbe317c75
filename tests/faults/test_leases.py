"""T02, T03, T04: workers that die, freeze and come back, and what they may still say."""

from __future__ import annotations

import signal
from collections.abc import Callable

import psycopg
import pytest

from drayhorse import Claim, EnqueueOptions, LeaseLostError

from .children import Child
from .evidence import verdict
from .lab import LANGUAGES, Lab
from .sizes import until

LEASE_MS = 3_000


def test_t02_a_restarted_worker_of_the_same_name_does_not_keep_the_old_claim_alive(lab: Lab) -> None:
    jobs = {language: lab.act(("stubborn", 600_000), options=EnqueueOptions(queue=language)) for language in LANGUAGES}

    def start() -> list[Child]:
        return [lab.start(name, name="pod-0", queues=name, lease_ms=LEASE_MS) for name in LANGUAGES]

    first = start()
    until(lambda: len(lab.starts()) == 3, lab.situation)
    for child in first:
        child.kill()
    killed = lab.one("select clock_timestamp()")
    start()
    until(lambda: len(lab.starts()) == 6, lab.situation)
    for language, job in jobs.items():
        assert [start.more["attempt"] for start in lab.starts(job)] == [1, 2]
        ((cause, held, later, new_fence, new_worker, named_alike),) = lab.rows(
            "select a.cause, a.ended_at - a.claimed_at >= %s * interval '1 ms', r.claimed_at - %s, "
            "(r.claim_id, r.claim_no) <> (a.claim_id, a.claim_no), r.worker_id <> a.worker_id, old.name = new.name "
            "from attempt a join runtime r using (job_id) join worker old on old.id = a.worker_id "
            "join worker new on new.id = r.worker_id where job_id = %s",
            LEASE_MS,
            killed,
            job,
        )
        assert (cause, held, new_fence, new_worker, named_alike) == ("lease", True, True, True, True), language
        # A lease and a look for ended ones; the rest is patience with a busy machine.
        assert later.total_seconds() < LEASE_MS / 1000 + 20, language


def test_t03_a_frozen_process_cannot_speak_for_a_claim_it_has_lost(lab: Lab) -> None:
    jobs = {language: lab.act(("outlive",), options=EnqueueOptions(queue=language)) for language in LANGUAGES}
    workers = [lab.start(name, queues=name, concurrency=2, lease_ms=LEASE_MS) for name in LANGUAGES]
    until(lambda: len(lab.starts()) == 3, lab.situation)
    for worker in workers:
        worker.send(signal.SIGSTOP)
    until(lambda: lab.one("select max(wake_at) < clock_timestamp() from runtime where state = 'a'") is not False)
    lab.rows("select * from tick(100)")
    assert lab.one("select count(*) from runtime where state = 'r'") == 3
    for worker in workers:
        worker.send(signal.SIGCONT)
    until(lambda: len(lab.records("saved")) == 3 and len(lab.records("refused")) == 3, lab.situation)
    for language, job in jobs.items():
        first, second = lab.starts(job)
        assert first.pid == second.pid and [first.more["attempt"], second.more["attempt"]] == [1, 2]
        assert [told.more["reason"] for told in lab.records("told", job=job)] == ["lease_lost"], language
        assert [refused.more["code"] for refused in lab.records("refused", job=job)] == ["lease_lost"], language
        _speak_for_the_dead(lab, job)
    lab.go()
    lab.all_finished()
    assert lab.rows("select distinct result from outcome") == [('"new"',)]
    assert lab.rows("select distinct name, value from checkpoint") == [("step", "1")]
    verdict(lab, 3)
    lab.stop(*workers)


def _speak_for_the_dead(lab: Lab, job: str) -> None:
    """Every report under the first fence is refused and leaves the second claim as it is."""
    current = "select claim_id, claim_no, attempt, state, checkpoints from runtime where job_id = %s"
    before = lab.rows(current, job)
    fence = lab.one("select fence_text(claim_id, claim_no) from attempt where job_id = %s", job)
    stale = Claim(job, fence, "default", "act", "1", 1, 25)
    assert lab.queue.heartbeat([stale], lease_ms=600_000) == ["lease_lost"]
    reports: list[Callable[[], object]] = [
        lambda: lab.queue.complete(stale, {"r": "old"}),
        lambda: lab.queue.release(stale),
        lambda: lab.queue.fail(stale, RuntimeError("old")),
    ]
    for report in reports:
        with pytest.raises(LeaseLostError):
            report()
    with pytest.raises(psycopg.errors.Error, match="claim is no longer current"):
        lab.rows(
            "select rpc_checkpoint_put(jsonb_build_object('name', 'step', 'value', 9, "
            "'claim', jsonb_build_object('id', %s::text, 'fence', %s::text)))",
            job,
            fence,
        )
    assert lab.rows(current, job) == before
    assert lab.one("select wake_at < clock_timestamp() + interval '60 s' from runtime where job_id = %s", job)


def test_t04_a_job_that_kills_its_process_is_dead_after_its_budget(lab: Lab) -> None:
    poisons, workers = {}, {}
    for language in LANGUAGES:
        poisons[language] = lab.act(("sleep", 150), ("kill",), options=EnqueueOptions(queue=language, max_attempts=3))
        lab.acts(9, ("sleep", 400), options=EnqueueOptions(queue=language, max_attempts=10))
        workers[language] = _start(lab, language)

    def supervised() -> bool:
        for language, worker in workers.items():
            if worker.code is not None:
                workers[language] = _start(lab, language)
        return lab.finished() == 30

    until(supervised, lab.situation)
    for language, poison in poisons.items():
        assert [start.more["attempt"] for start in lab.starts(poison)] == [1, 2, 3], language
        assert lab.rows("select cause, attempt from attempt where job_id = %s order by attempt", poison) == [
            ("lease", 1),
            ("lease", 2),
            ("lease", 3),
        ]
        ((state, reason),) = lab.rows("select state::text, reason from outcome where job_id = %s", poison)
        assert (state, reason) == ("f", "exhausted"), language
        kinds = [event.kind for event in lab.queue.timeline(poison)]
        assert kinds.count("lease_expired") == 3 and kinds[-1] == "failed"
    assert lab.outcomes() == {"failed": 3, "succeeded": 27}
    # The neighbours in the killed processes paid for it.
    assert lab.one("select count(*) from attempt where cause = 'lease'") > 9
    verdict(lab, 30)
    lab.stop(*workers.values())


def _start(lab: Lab, language: str) -> Child:
    return lab.start(language, queues=language, concurrency=10, lease_ms=LEASE_MS // 3)
