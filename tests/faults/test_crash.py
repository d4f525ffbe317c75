"""The crash test: workers in three languages under a stream of kills, and their database sessions too."""

from __future__ import annotations

import random
import time

from drayhorse import EnqueueOptions

from .children import Child
from .evidence import fences, verdict
from .lab import Lab
from .sizes import literal_s, sized, until

JOBS = sized(300, 3_000)
FAULTS = sized(12, 30)
FLEET = ("python", "node", "go", "go")
MAX_ATTEMPTS = 8


def test_every_job_ends_once_while_workers_and_sessions_are_killed(own_lab: Lab) -> None:
    lab = own_lab
    # Some work of every kind: what always fails spends its whole budget between the kills.
    options = EnqueueOptions(max_attempts=MAX_ATTEMPTS, retry_policy={"type": "fixed", "delayMs": 100})
    hopeless = lab.acts(JOBS // 10, ("sleep", 20), ("fail", "hopeless"), options=options)
    lab.acts(JOBS // 10, ("failFirst", "once"), ("sleep", 50), options=options)
    lab.acts(JOBS - 2 * (JOBS // 10), ("sleep", 200), options=options)
    workers = [_start(lab, language) for language in FLEET]
    until(lambda: lab.starts(), lab.situation)

    # The faults come at random, but the same ones in every run.
    chance = random.Random(1)
    kills = ends = 0
    while kills < FAULTS or ends < FAULTS:
        time.sleep(chance.uniform(0.05, literal_s(0.5, 2)))
        if kills <= ends:
            place = chance.randrange(len(FLEET))
            workers[place].kill()
            workers[place] = _start(lab, FLEET[place])
            kills += 1
        else:
            # One session of the fleet, whatever it is doing.
            ends += lab.one(
                "select count(pg_terminate_backend(pid)) from (select pid from pg_stat_activity "
                "where datname = current_database() and application_name = 'drayhorse' order by md5(pid::text || %s) "
                "limit 1) s",
                chance.random(),
            )
        if lab.one("select count(*) < 50 from runtime"):
            # The faults have to hit work.
            lab.acts(JOBS // 5, ("sleep", 200), options=options)
    lab.all_finished(120 * literal_s(1, 10))

    jobs = lab.one("select count(*) from job")
    verdict(lab, jobs)
    outcomes = lab.outcomes()
    assert outcomes["failed"] >= len(hopeless) and outcomes["failed"] + outcomes["succeeded"] == jobs
    assert lab.rows("select count(*) from outcome where state = 'f' and attempt <> %s", MAX_ATTEMPTS) == [(0,)]
    lost = lab.one("select count(*) from attempt where cause = 'lease'")
    print(f"{jobs} jobs, {kills} kills, {ends} sessions ended, {lost} leases lost, {len(fences(lab))} fences")
    lab.stop(*workers)


def _start(lab: Lab, language: str) -> Child:
    return lab.start(language, lease_ms=1_500, concurrency=3, poll_ms=200)
