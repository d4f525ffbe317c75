"""T35: workers ten minutes ahead and behind, a producer an hour ahead. The database's clock decides all."""

from __future__ import annotations

import json
import uuid

from drayhorse import CircuitSettings, EnqueueOptions, RateLimit

from .evidence import verdict
from .lab import Lab
from .sizes import literal_s, until
from .skew import wrong_by

LEASE_MS = int(literal_s(2_000, 30_000))
RETRY_MS = int(literal_s(2_000, 60_000))
DEADLINE_MS = int(literal_s(3_000, 300_000))
RATE = RateLimit(limit=5, interval_ms=int(literal_s(2_000, 60_000)))
COOLDOWN_MS = int(literal_s(2_000, 60_000))


def test_t35_wrong_clocks_of_workers_and_producers_change_nothing(lab: Lab) -> None:
    lab.queue.endpoints.configure("slow", rate_limit=RATE, actor="test")
    circuit = CircuitSettings(failure_threshold=3, cooldown_ms=COOLDOWN_MS)
    lab.queue.endpoints.configure("broken", circuit=circuit, actor="test")
    # Long work first: the one that ends before its report is the one whose lease has to be waited for.
    orphan = lab.act(("stubborn", 600_000), options=EnqueueOptions(queue="orphan", max_attempts=2))
    victim = lab.start("python", queues="orphan", lease_ms=LEASE_MS, env=wrong_by(600))
    until(lambda: lab.starts(orphan), lab.situation)
    ahead = lab.start("python", lease_ms=LEASE_MS, concurrency=10, env=wrong_by(600))
    behind = lab.start("node", lease_ms=LEASE_MS, concurrency=10, env=wrong_by(-600))
    lab.started(3)
    # Wherever the wrong clock shows, it is wrong: the test would prove nothing otherwise.
    (start,) = lab.starts(orphan)
    assert start.at - lab.one("select extract(epoch from clock_timestamp())::float8") > 500

    producer = lab.start("python", "enqueue", "20", queues="default", env=wrong_by(3_600))
    options = EnqueueOptions(retry_policy={"type": "fixed", "delayMs": RETRY_MS})
    retried = lab.acts(4, ("failFirst", "once"), options=options)
    cut = lab.acts(2, ("sleep", 600_000), options=EnqueueOptions(deadline_ms=DEADLINE_MS))
    too_late = lab.act(options=EnqueueOptions(delay_ms=DEADLINE_MS * 2, deadline_ms=DEADLINE_MS))
    paced = lab.acts(12, options=EnqueueOptions(endpoint="slow"))
    broken = EnqueueOptions(endpoint="broken", retry_policy={"type": "fixed", "delayMs": 0}, max_attempts=2)
    tripped = lab.acts(4, ("failFirst", "down"), options=broken)
    victim.kill()
    killed_lease = lab.one("select wake_at from runtime where job_id = %s", orphan)
    with lab.session() as session, session.transaction():
        open_since = session.execute("select now()").fetchone()
        held = str(uuid.uuid4())
        session.execute("select pg_sleep(0.2)")
        session.execute("select enqueue(%s::text::jsonb)", [json.dumps([{"id": held, "type": "noop"}])])
    assert producer.wait() == 0, producer.tail()

    # Somebody has to offer what the orphan's queue holds; it is canceled once it was claimable again.
    until(lambda: lab.one("select count(*) from attempt where job_id = %s", orphan), lab.situation)
    assert lab.rows("select cause, ended_at >= %s from attempt where job_id = %s", killed_lease, orphan) == [
        ("lease", True)
    ]
    lab.queue.cancel(orphan)
    lab.all_finished(60 + literal_s(0, 900))

    early = (
        "select count(*) from attempt a join outcome o using (job_id) "
        "where job_id = any(%s::uuid[]) and o.claimed_at < a.run_at"
    )
    assert lab.one(early, retried) == 0
    assert (
        lab.one("select count(*) from attempt where job_id = any(%s::uuid[]) and delay_ms = %s", retried, RETRY_MS) == 4
    )
    # Who runs it ends it by the time it had left when it was claimed: a round trip early, but not ten minutes.
    deadlines = (
        "select o.reason, o.finished_at >= j.deadline - interval '1 second', "
        "j.deadline - j.enqueued_at = %s * interval '1 ms' "
        "from outcome o join job j on j.id = o.job_id where j.id = any(%s::uuid[])"
    )
    assert lab.rows(deadlines, DEADLINE_MS, [*cut, too_late]) == [("deadline", True, True)] * 3
    assert not lab.starts(too_late)
    crowded = (
        "select max(n) from (select count(*) over (order by claimed_at range between %s * interval '1 ms' preceding "
        "and current row) as n from outcome where job_id = any(%s::uuid[])) w"
    )
    assert lab.one(crowded, RATE.interval_ms - 1, paced) <= 2 * RATE.limit
    (opened,) = lab.rows("select at from gate_event where name = 'broken' and event = 'circuit_opened'")
    assert opened is not None
    probes = (
        "select count(*) from (select claimed_at from attempt where job_id = any(%s::uuid[]) union all "
        "select claimed_at from outcome where job_id = any(%s::uuid[]) and state = 's') c "
        "where claimed_at > %s and claimed_at < %s + %s * interval '1 ms'"
    )
    assert lab.one(probes, tripped, tripped, opened[0], opened[0], COOLDOWN_MS) == 0
    # Enqueued when the statement ran, by the database's clock, however long its transaction was open.
    assert lab.one("select enqueued_at > %s from job where id = %s", open_since and open_since[0], held)
    assert lab.one("select max(enqueued_at) <= clock_timestamp() from job")
    verdict(lab, lab.one("select count(*) from job"))
    lab.stop(ahead, behind)
