"""T32, T42: databases that turn read-only, restart or crash under workers in three languages."""

from __future__ import annotations

import time
from collections.abc import Callable

from psycopg import sql

from drayhorse import EnqueueOptions
from harness.postgres import Postgres

from .evidence import verdict
from .lab import LANGUAGES, Lab
from .sizes import literal_s, sized, until

READ_ONLY_S = literal_s(4, 20)


def test_t32_what_is_finished_while_the_server_is_read_only_is_kept(own_lab: Lab) -> None:
    lab = own_lab
    workers = [lab.start(name, concurrency=4, lease_ms=int(READ_ONLY_S * 5_000)) for name in LANGUAGES]
    # They run when it begins, and end in the middle of it or just after; the others wait for a writable server.
    running = lab.acts(6, ("wait",)) + lab.acts(6, ("wait",), ("sleep", READ_ONLY_S * 1_000))
    waiting = lab.acts(60, ("sleep", 20))
    until(lambda: len(lab.starts()) == len(running), lab.situation)

    _read_only(lab, "on")
    at_once = lab.finished()
    time.sleep(READ_ONLY_S / 4)
    lab.go()
    time.sleep(READ_ONLY_S * 3 / 4)
    assert lab.finished() == at_once and all(worker.code is None for worker in workers)
    assert {record.job for record in lab.starts()} == set(running)
    _read_only(lab, "off")
    back = lab.one("select clock_timestamp()")

    lab.all_finished()
    assert lab.outcomes() == {"succeeded": len(running) + len(waiting)}
    assert len(lab.starts()) == len(running) + len(waiting), "somebody started twice"
    kept = "select count(*) from outcome where job_id = any(%s::uuid[]) and attempt = 1 and finished_at > %s"
    assert lab.one(kept, running, back) == len(running)
    assert any(record.more["code"] == "read_only" for record in lab.records("error"))
    verdict(lab, len(running) + len(waiting))
    lab.stop(*workers)


def _read_only(lab: Lab, value: str) -> None:
    # Sessions keep the default they began with: going there the test ends them, as a failover does; coming back it
    # does not, so whoever stays on one never writes again.
    with lab.session() as connection:
        connection.execute("set default_transaction_read_only = off")
        connection.execute(
            sql.SQL("alter database {} set default_transaction_read_only = {}").format(
                sql.Identifier(connection.info.dbname), sql.SQL(value)
            )
        )
        if value == "on":
            connection.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity "
                "where datname = current_database() and pid <> pg_backend_pid()"
            )


def test_t42_a_restart_goes_by_a_node_worker_that_listens_to_no_error(
    server_lab: Callable[[], Lab], own_server: Postgres
) -> None:
    lab = server_lab()
    worker = lab.start("node", deaf="1", lease_ms=12_000)
    lab.started(1)
    number = 0
    # Idle; then while a handler runs and its lease is renewed; then while jobs are claimed and completed all the time.
    for running, waiting in ((0, 0), (1, 0), (0, 300)):
        lab.acts(running, ("sleep", 6_000))
        lab.acts(waiting, ("sleep", 10))
        begun = number + running + min(waiting, 50)
        until(lambda begun=begun: len(lab.starts()) >= begun, lab.situation)  # type: ignore[misc]
        own_server.stop()
        own_server.restart()
        lab.acts(1)
        lab.all_finished()
        number += running + waiting + 1
        assert worker.code is None, worker.tail()
    assert lab.outcomes() == {"succeeded": number}
    assert len(lab.starts()) == number, "somebody started twice"
    said = worker.log.read_text()
    assert "Unhandled" not in said and "uncaught" not in said.lower(), said
    verdict(lab, number)
    lab.stop(worker)


def test_a_crash_of_the_database_loses_no_job_and_doubles_no_outcome(
    server_lab: Callable[[], Lab], own_server: Postgres
) -> None:
    lab = server_lab()
    jobs = sized(300, 3_000)
    options = EnqueueOptions(retry_policy={"type": "fixed", "delayMs": 200})
    lab.acts(jobs, ("sleep", 50), options=options)
    workers = [lab.start(language) for language in LANGUAGES]
    for share in (0.2, 0.5):
        until(lambda share=share: lab.finished() >= jobs * share, lab.situation)  # type: ignore[misc]
        own_server.crash()
        own_server.restart()
    lab.all_finished()
    assert lab.outcomes() == {"succeeded": jobs}
    # A claim that the crash forgot was not counted: its number was given out again, with another start.
    assert len(lab.starts()) >= jobs
    verdict(lab, jobs, claims_forgotten=True)
    lab.stop(*workers)
