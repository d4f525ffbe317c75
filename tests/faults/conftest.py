"""The fleet's programs, and a PostgreSQL that a test may break."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.account import server_account
from harness.postgres import Postgres

from .fleet import Programs


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Programs:
    return Programs(tmp_path_factory.mktemp("programs"))


@pytest.fixture
def own_postgres() -> Iterator[Postgres]:
    """A server of the test's own: PostgreSQL 18, on a free port."""
    with tempfile.TemporaryDirectory(prefix="drayhorse-faults-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        folder.chmod(0o755)  # the server's user has to pass
        server = Postgres(
            "broken", Path(os.environ["DRAYHORSE_TEST_PG18_BIN"]), folder, server_account(), dict(os.environ)
        )
        yield server
        server.stop()
