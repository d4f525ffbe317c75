"""PgBouncer in transaction mode between everybody and the database."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import psycopg
import pytest

from harness import paths

from .fleet import Fleet, Programs, scale

POOLER = os.environ.get("DRAYHORSE_PGBOUNCER_URL")
DIRECT = os.environ.get("DRAYHORSE_TEST_URL", "")

pytestmark = pytest.mark.skipif(POOLER is None, reason="PgBouncer is not installed")


def test_three_languages_through_five_server_connections(programs: Programs, tmp_path: Path) -> None:
    with Fleet(programs, POOLER or "", tmp_path, direct_url=DIRECT) as fleet:
        fleet.enqueue(200 * scale())
        fleet.start()
        fleet.reach(0.3)
        with psycopg.connect(DIRECT, autocommit=True) as connection:
            thrown_out = connection.execute(
                "select count(pg_terminate_backend(pid)) from (select pid from pg_stat_activity "
                "where query ilike %s and pid <> pg_backend_pid() limit 1) s",
                [f"%{fleet.schema}%"],
            ).fetchone()
        assert thrown_out is not None
        fleet.verdict()
        for language in ("python", "node", "go"):
            text = fleet.log(language).read_text(errors="replace")
            # A prepared statement of another client, one that is gone, a parameter the pooler does not pass on.
            for sign in ("42P05", "26000", "prepared statement", "unsupported startup parameter"):
                assert sign not in text


def test_six_migrations_at_once_on_an_empty_database(tmp_path: Path) -> None:
    schema = f"boot_{os.getpid()}"
    env = {**os.environ, "DRAYHORSE_URL": POOLER or "", "DRAYHORSE_SCHEMA": schema}
    argv = [str(paths.CARGO_OUT / "drayhorse"), "migrate"]
    try:
        for _ in range(3 * scale()):
            running = [
                subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(6)
            ]
            said = [migration.communicate(timeout=60) for migration in running]
            assert [migration.returncode for migration in running] == [0] * 6, said
            assert sum(b"applied" in out for out, _ in said) == 1
            with psycopg.connect(DIRECT, autocommit=True) as connection:
                assert connection.execute(f"select count(*) from {schema}.schema_version").fetchone() == (1,)
                connection.execute(f"drop schema {schema} cascade")
    finally:
        with psycopg.connect(DIRECT, autocommit=True) as connection:
            connection.execute(f"drop schema if exists {schema} cascade")
