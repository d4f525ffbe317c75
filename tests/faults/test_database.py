"""A database that crashes, turns read-only, or throws its sessions out, while three languages work."""

from __future__ import annotations

from pathlib import Path

import psycopg

from harness.postgres import Postgres

from .fleet import Fleet, Programs, scale


def _superuser(server: Postgres, *statements: str) -> None:
    with psycopg.connect(server.url, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement)


def test_a_crash_loses_no_job_and_doubles_no_outcome(
    programs: Programs, own_postgres: Postgres, tmp_path: Path
) -> None:
    with Fleet(programs, own_postgres.url, tmp_path) as fleet:
        fleet.enqueue(300 * scale())
        fleet.start()
        for share in (0.2, 0.5):
            fleet.reach(share)
            own_postgres.crash()
            own_postgres.restart()
        fleet.verdict()


def test_read_only_for_a_while(programs: Programs, own_postgres: Postgres, tmp_path: Path) -> None:
    with Fleet(programs, own_postgres.url, tmp_path) as fleet:
        fleet.enqueue(200 * scale())
        fleet.start()
        fleet.reach(0.2)
        _superuser(own_postgres, "alter system set default_transaction_read_only = on", "select pg_reload_conf()")
        _settle(fleet)
        before = fleet.succeeded()
        # Whoever sees the answer of a writer's session throws it away; nothing moves, nobody gives up.
        assert before < fleet.enqueued
        _superuser(
            own_postgres,
            "set default_transaction_read_only = off",
            "alter system reset default_transaction_read_only",
            "select pg_reload_conf()",
        )
        fleet.verdict()


def test_sessions_are_thrown_out(programs: Programs, own_postgres: Postgres, tmp_path: Path) -> None:
    with Fleet(programs, own_postgres.url, tmp_path) as fleet:
        fleet.enqueue(200 * scale())
        fleet.start()
        for share in (0.2, 0.4, 0.6):
            fleet.reach(share)
            _superuser(
                own_postgres,
                "select pg_terminate_backend(pid) from pg_stat_activity "
                "where backend_type = 'client backend' and pid <> pg_backend_pid()",
            )
        fleet.verdict()


def _settle(fleet: Fleet) -> None:
    """Until two looks a second apart see the same number of outcomes: what was in flight has landed."""
    import time

    seen = fleet.succeeded()
    while True:
        time.sleep(1)
        now = fleet.succeeded()
        if now == seen:
            return
        seen = now
