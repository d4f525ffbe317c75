"""The worker programs, a queue for each test, and a PostgreSQL that tests may break."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from harness.account import server_account
from harness.postgres import Postgres

from .lab import Lab, Programs
from .sizes import literal_s

URL = os.environ.get("DRAYHORSE_TEST_URL", "")
HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whatever hangs is ended as a failure, and its processes with it."""
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.timeout(literal_s(300, 3_600)))


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Programs:
    return Programs(tmp_path_factory.mktemp("programs"))


@pytest.fixture
def lab(programs: Programs, tmp_path: Path) -> Iterator[Lab]:
    """A queue in a schema of its own."""
    with Lab(programs, URL, tmp_path) as made:
        yield made


@pytest.fixture
def own_lab(programs: Programs, tmp_path: Path) -> Iterator[Lab]:
    """A queue in a database of its own, whose sessions and settings are the test's."""
    with Lab(programs, URL, tmp_path, own_database=True) as made:
        yield made


@pytest.fixture(scope="session")
def own_server() -> Iterator[Postgres]:
    """A PostgreSQL 18 that may be crashed and restarted; whoever does leaves it running."""
    with tempfile.TemporaryDirectory(prefix="drayhorse-faults-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        folder.chmod(0o755)  # the server's user has to pass
        binaries = Path(os.environ["DRAYHORSE_TEST_PG18_BIN"])
        server = Postgres("own", binaries, folder, server_account(), dict(os.environ))
        try:
            yield server
        finally:
            server.stop()


@pytest.fixture
def server_lab(programs: Programs, own_server: Postgres, tmp_path: Path) -> Iterator[Callable[[], Lab]]:
    """Makes queues on the server that may be broken."""
    with ExitStack() as stack:
        yield lambda: stack.enter_context(Lab(programs, own_server.url, tmp_path))
