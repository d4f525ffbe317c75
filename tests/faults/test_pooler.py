"""T30, T48: PgBouncer in transaction mode, with five server connections, between everybody and the database."""

from __future__ import annotations

import os
import subprocess
import uuid
from contextlib import ExitStack

import psycopg
import pytest
from psycopg import sql

from drayhorse import Queue
from harness import paths
from harness.pgbouncer import SERVER_CONNECTIONS

from .evidence import verdict
from .lab import LANGUAGES, Lab
from .sizes import sized, until

POOLER = os.environ.get("DRAYHORSE_PGBOUNCER_URL", "")
DIRECT = os.environ.get("DRAYHORSE_TEST_URL", "")

pytestmark = pytest.mark.skipif(not POOLER, reason="PgBouncer is not installed")

JOBS_EACH = sized(250, 1_667)
FORBIDDEN = ("42P05", "26000", "prepared statement", "unsupported startup parameter", "08P01")


def test_t30_three_languages_through_five_server_connections(lab: Lab) -> None:
    # Three connections a worker and one a producer: more than twenty clients.
    workers = [lab.start(language, url=POOLER, poll_ms=500) for language in (*LANGUAGES, "go", "go")]
    producers = [lab.start(language, "enqueue", str(JOBS_EACH), url=POOLER) for language in LANGUAGES * 2]
    until(lambda: lab.finished() >= JOBS_EACH, lab.situation)
    ended = lab.one(
        "select count(pg_terminate_backend(pid)) from (select pid from pg_stat_activity "
        "where query like %s and pid <> pg_backend_pid() limit 1) s",
        f"%{lab.schema}%",
    )
    assert ended == 1
    assert [producer.wait() for producer in producers] == [0] * len(producers), lab.tails()
    lab.all_finished()
    verdict(lab, 6 * JOBS_EACH)
    assert lab.outcomes() == {"succeeded": 6 * JOBS_EACH}

    # Nothing ever arrives where LISTEN was sent. Each worker finds out and says so, and goes on polling.
    def said() -> dict[int, int]:
        errors = [r for r in lab.records("error") if "wake-ups do not arrive" in r.more["message"]]
        return {worker.pid: sum(r.pid == worker.pid for r in errors) for worker in workers}

    until(lambda: all(said().values()), lab.situation)
    lab.acts(20)
    lab.all_finished()
    assert set(said().values()) == {1}
    for worker in workers:
        assert not any(sign in worker.log.read_text() for sign in FORBIDDEN), worker.tail()
    for record in lab.records("error"):
        assert not any(sign in record.more["message"] for sign in FORBIDDEN), record
    lab.stop(*workers)
    _nothing_left_behind(lab)


def _nothing_left_behind(lab: Lab) -> None:
    """The server connections are what they were: whoever gets one next meets nobody's settings."""
    with ExitStack() as stack:
        seen = set()
        for _ in range(SERVER_CONNECTIONS):
            session = stack.enter_context(psycopg.connect(POOLER, prepare_threshold=None))
            row = session.execute(
                "select current_setting('synchronous_commit'), current_setting('statement_timeout'), "
                "current_setting('search_path'), current_user = session_user, pg_my_temp_schema() = 0, "
                "(select count(*) from pg_prepared_statements), "
                "(select count(*) from pg_locks where locktype = 'advisory' and pid = pg_backend_pid())"
            ).fetchone()
            assert row == ("on", "0", '"$user", public', True, True, 0, 0)
            seen.add(session.execute("select pg_backend_pid()").fetchone())
        assert len(seen) == SERVER_CONNECTIONS


def test_t30_a_schema_is_migrated_and_a_statement_timeout_is_kept_through_the_pooler(lab: Lab) -> None:
    schema = f"{lab.schema}_migrated"
    url = f"{POOLER}?options=-c%20statement_timeout%3D5000"
    try:
        with Queue.connect(url, schema=schema) as queue:
            assert queue.migrate().applied
            job = queue.enqueue("act")
            (claim,) = queue.claim([{"type": "act"}], limit=1)
            assert claim.id == job
            queue.complete(claim)
            assert queue.wait(job, 1_000).state == "succeeded"
    finally:
        with lab.session() as session:
            session.execute(sql.SQL("drop schema if exists {} cascade").format(sql.Identifier(schema)))


def test_t48_six_migrations_at_once_on_an_empty_database() -> None:
    schema = f"boot_{uuid.uuid4().hex[:10]}"
    env = {**os.environ, "DRAYHORSE_URL": POOLER, "DRAYHORSE_SCHEMA": schema}
    argv = [str(paths.CARGO_OUT / "drayhorse"), "migrate"]
    drop = sql.SQL("drop schema if exists {} cascade").format(sql.Identifier(schema))
    try:
        for _ in range(sized(3, 20)):
            running = [
                subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(6)
            ]
            said = [migration.communicate(timeout=60) for migration in running]
            assert [migration.returncode for migration in running] == [0] * 6, said
            assert sum(b"applied" in out for out, _ in said) == 1
            with psycopg.connect(DIRECT, autocommit=True) as connection:
                versions = sql.SQL("select count(*) from {}").format(sql.Identifier(schema, "schema_version"))
                assert connection.execute(versions).fetchone() == (1,)
                connection.execute(drop)
    finally:
        with psycopg.connect(DIRECT, autocommit=True) as connection:
            connection.execute(drop)
