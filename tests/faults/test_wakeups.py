"""T31, T34: wake-ups that get lost, and what they cost those who send them."""

from __future__ import annotations

import json
import threading
import time
import uuid

import pytest

from drayhorse import EnqueueOptions

from .evidence import verdict
from .lab import Lab
from .proxy import Proxy
from .sizes import literal_s, sized, until

REFUSED_S = literal_s(20, 300)
POLL_MS = 120_000
WITHIN_S = 60
"""So long a job may wait after a listener was lost. Without wake-ups the next look would come after two minutes."""

PRODUCERS = 32
EACH = sized(40, 2_000)


def test_t31_lost_listeners_are_noticed_replaced_and_cost_nothing(lab: Lab) -> None:
    with Proxy(lab.url) as silent, Proxy(lab.url) as refusing:
        workers = {
            "ended": lab.start("python", queues="ended", name="ended", poll_ms=POLL_MS),
            "silent": lab.start("node", queues="silent", name="silent", poll_ms=POLL_MS, url=silent.url),
            "refused": lab.start("go", queues="refused", name="refused", poll_ms=POLL_MS, url=refusing.url),
        }
        until(lambda: lab.one("select count(*) from sleeper") == 3, lab.situation)
        spent = {name: worker.cpu_s() for name, worker in workers.items()}
        began = time.monotonic()

        assert lab.one(
            "select count(pg_terminate_backend(a.pid)) from worker w join pg_stat_activity a "
            "on a.query = format('listen \"%s\"', w.channel) where w.name = 'ended'"
        )
        assert silent.fall_silent("listen ") == 1
        refusing.refuse()
        # At once, so that the jobs fall into the gap.
        gaps = {name: lab.act(options=EnqueueOptions(queue=name)) for name in workers}
        until(lambda: lab.finished() == 2, lab.situation)
        time.sleep(max(0, REFUSED_S - (time.monotonic() - began)))
        assert lab.finished() == 2 and all(worker.code is None for worker in workers.values())
        burnt = {name: worker.cpu_s() - spent[name] for name, worker in workers.items()}
        lasted = time.monotonic() - began
        refusing.accept()
        accepted = lab.one("select clock_timestamp()")
        lab.all_finished()

        # And when all is as it was, wake-ups come again.
        until(lambda: lab.one("select count(*) from sleeper where until > clock_timestamp()") == 3, lab.situation)
        later = {name: lab.act(options=EnqueueOptions(queue=name)) for name in workers}
        lab.all_finished()
        waited = "select claimed_at - greatest(enqueued_at, %s) from outcome join job on id = job_id where id = %s"
        for name in workers:
            for job in (gaps[name], later[name]):
                since = accepted if job == gaps["refused"] else None
                assert lab.one(waited, since, job).total_seconds() < WITHIN_S, name
        print(f"processor time in {lasted:.0f} s: {burnt}")
        for name, seconds in burnt.items():
            assert seconds < 0.2 * lasted + 0.5, f"{name} spins"
        assert len(lab.starts()) == 6
        verdict(lab, 6)
        lab.stop(*workers.values())


def test_t34_wake_ups_do_not_hold_up_commits(lab: Lab) -> None:
    off, _ = _produce(lab)
    assert lab.one("select count(*) from runtime") == PRODUCERS * EACH
    worker = lab.start("go", concurrency=50)
    lab.all_finished()
    until(lambda: lab.one("select count(*) from sleeper"), lab.situation)
    on, waiting = _produce(lab)
    lab.all_finished()
    print(
        f"{off:.0f} commits/s without a sleeping worker, {on:.0f} with one; waiting for the notification lock: "
        f"{max(waiting)} of {PRODUCERS} at most, {sum(waiting) / len(waiting):.2f} on average"
    )
    assert sum(waiting) / len(waiting) < PRODUCERS / 4, f"sessions pile up in their commits: {waiting}"

    # A producer that keeps its transaction open after the enqueue holds up nobody.
    until(lambda: lab.one("select count(*) from sleeper"), lab.situation)
    with lab.session() as slow, slow.transaction():
        slow.execute("select enqueue(%s::text::jsonb)", [_job()])
        done = lab.finished()
        _produce(lab)
        until(lambda: lab.finished() == done + PRODUCERS * EACH, lab.situation)
    lab.all_finished()
    verdict(lab, 3 * PRODUCERS * EACH + 1)
    lab.stop(worker)


def _job() -> str:
    return json.dumps([{"id": str(uuid.uuid4()), "type": "noop"}])


def _produce(lab: Lab) -> tuple[float, list[int]]:
    """Many producers, one job and one commit at a time. Commits per second, and how many waited for the lock."""
    ready = threading.Barrier(PRODUCERS + 1)
    failed: list[BaseException] = []

    def produce() -> None:
        try:
            with lab.session() as session:
                ready.wait()
                for _ in range(EACH):
                    session.execute("select enqueue(%s::text::jsonb)", [_job()])
        except BaseException as error:
            failed.append(error)
            raise

    threads = [threading.Thread(target=produce) for _ in range(PRODUCERS)]
    for thread in threads:
        thread.start()
    ready.wait()
    began = time.monotonic()
    waiting: list[int] = []
    with lab.session() as session:
        while any(thread.is_alive() for thread in threads):
            # The lock under which notifications are queued, from before the commit to its end.
            row = session.execute(
                "select count(*) from pg_locks where locktype = 'object' and classid = 'pg_database'::regclass "
                "and objid = 0 and not granted"
            ).fetchone()
            assert row is not None
            waiting.append(int(row[0]))
            time.sleep(0.01)
    for thread in threads:
        thread.join()
    if failed:
        pytest.fail(f"a producer failed: {failed[0]}")
    return PRODUCERS * EACH / (time.monotonic() - began), waiting
