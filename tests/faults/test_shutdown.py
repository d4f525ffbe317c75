"""T36, T37: workers that are told to stop, at any moment and more than once."""

from __future__ import annotations

import signal
import time

from drayhorse import EnqueueOptions

from .children import Child
from .evidence import fences, verdict
from .lab import LANGUAGES, Lab
from .sizes import sized, until

ROUNDS = sized(12, 200)
QUEUES = 5
GRACE_MS = 5_000

# Every claim of these workers, whatever became of it.
_CLAIMS = """
select w.pid, c.job_id, c.attempt, c.claimed_at, c.how from (
  select worker_id, job_id::text, attempt, claimed_at, 'success' as how from outcome where state = 's'
  union all select worker_id, job_id::text, attempt, claimed_at, cause from attempt
  union all select worker_id, job_id::text, attempt, claimed_at, 'active' from runtime where state = 'a'
  union all select (data->>'workerId')::int, job_id::text, attempt, (data->>'claimedAt')::timestamptz,
    case when (data->>'started')::boolean then 'released' else 'untouched' end from event where kind = 'released'
) c join worker w on w.id = c.worker_id
"""


def test_t36_nothing_starts_after_the_signal_wherever_it_falls(lab: Lab) -> None:
    jobs = 0
    workers = {}
    for language in LANGUAGES:
        queues = [f"{language}-{n}" for n in range(QUEUES)]
        for queue in queues:
            lab.acts(sized(200, 2_000), ("sleep", 40), options=EnqueueOptions(queue=queue))
            jobs += sized(200, 2_000)
        workers[language] = lab.start(
            language, queues=",".join(queues), rounds=ROUNDS, concurrency=5, grace_ms=GRACE_MS, lease_ms=30_000
        )
    for round in range(ROUNDS):
        for worker in workers.values():
            _stop_in_round(lab, worker, round)
    for worker in workers.values():
        assert worker.wait() == 0, worker.tail()

    assert lab.one("select count(*) from runtime where state = 'a'") == 0
    assert lab.one("select count(*) from worker where stopped_at is null") == 0
    # Nothing is lost and nothing is spent: what did not succeed waits as if it had never been touched.
    assert lab.rows("select distinct attempt, state::text from runtime") == [(0, "r")]
    assert lab.rows("select count(*) from attempt") == [(0,)]
    _nothing_after(lab)
    begun = lab.one("select count(*) from outcome") + lab.one(
        "select count(*) from event where kind = 'released' and data->'started' = 'true'"
    )
    assert len(lab.starts()) == begun
    fences(lab)
    back = lab.one("select count(*) from event where kind = 'released' and data->'started' = 'false'")
    print(f"{3 * ROUNDS} drains, {begun} starts, {back} claims handed back untouched")
    assert lab.one("select count(*) from job") == jobs


def _stop_in_round(lab: Lab, worker: Child, round: int) -> None:
    """SIGTERM a millisecond later in each round, counted from the round's first start; waits for the round's end."""

    def mine(kind: str) -> list[float]:
        return [record.at for record in lab.records(kind) if record.pid == worker.pid]

    until(lambda: len(mine("round")) == round + 1, lab.situation)
    begun = mine("round")[-1]
    until(lambda: any(at >= begun for at in mine("start")), lab.situation)
    time.sleep(round % 50 / 1000)
    worker.send(signal.SIGTERM)
    until(lambda: len(mine("ended")) == round + 1, lab.situation)


def _nothing_after(lab: Lab) -> None:
    """A claim that the database made after the worker was stopped has started nothing and was handed back."""
    periods: dict[int, list[tuple[float, float]]] = {}
    for told in lab.records("stopped"):
        end = min(r.at for r in lab.records("ended") if r.pid == told.pid and r.at >= told.at)
        periods.setdefault(told.pid, []).append((told.at, end))
    started = {(record.pid, record.job, record.more["attempt"], round(record.at, 3)) for record in lab.starts()}
    for pid, job, attempt, claimed_at, how in lab.rows(_CLAIMS):
        for stopped, ended in periods[pid]:
            if stopped < claimed_at.timestamp() < ended:
                assert how == "untouched", (job, attempt, claimed_at, how)
                assert not [s for s in started if s[:3] == (pid, job, attempt) and stopped < s[3] < ended]


def test_t37_the_grace_is_the_limit_and_a_second_signal_ends_it(lab: Lab) -> None:
    long, short = {}, {}
    stubborn: dict[str, list[Child]] = {}
    for language in LANGUAGES:
        for way in ("grace", "twice", "killed"):
            queue = f"{language}-{way}"
            long[queue] = lab.act(("stubborn", 60_000), options=EnqueueOptions(queue=queue))
            if way == "grace":
                short[queue] = lab.act(("stubborn", 600), options=EnqueueOptions(queue=queue))
        stubborn[language] = [
            lab.start(language, queues=f"{language}-grace", grace_ms=2_000, lease_ms=10_000),
            lab.start(language, queues=f"{language}-twice", grace_ms=60_000, lease_ms=3_000),
            lab.start(language, queues=f"{language}-killed", grace_ms=60_000, lease_ms=3_000),
        ]
    until(lambda: len(lab.starts()) == 12, lab.situation)
    for grace, twice, killed in stubborn.values():
        for worker in (grace, twice, killed):
            worker.send(signal.SIGTERM)
    time.sleep(1)
    assert all(worker.code is None for workers in stubborn.values() for worker in workers), lab.tails()
    for _, twice, killed in stubborn.values():
        twice.send(signal.SIGTERM)
        killed.send(signal.SIGKILL)
    codes = {language: [worker.wait(30) for worker in workers] for language, workers in stubborn.items()}
    for language, (_, second, third) in codes.items():
        assert second != 0 and third == -signal.SIGKILL, (language, codes)

    # What fits the grace ends well; what does not is given back unspent; what was killed comes back by its lease.
    lab.start("go", queues="tick")
    until(lambda: lab.one("select count(*) from runtime where state = 'a'") == 0, lab.situation)
    for language in LANGUAGES:
        assert lab.rows("select attempt, state::text from outcome where job_id = %s", short[f"{language}-grace"]) == [
            (1, "s")
        ]
        state = "select attempt, state::text from runtime where job_id = %s"
        assert lab.rows(state, long[f"{language}-grace"]) == [(0, "r")], language
        for way in ("twice", "killed"):
            job = long[f"{language}-{way}"]
            assert lab.rows(state, job) == [(1, "r")], language
            assert lab.rows("select cause, delay_ms from attempt where job_id = %s", job) == [("lease", 0)], language
    for job in long.values():
        assert lab.queue.cancel(job) == "canceled"
    verdict(lab, 12)
