"""One PgBouncer in transaction mode with five server connections: what many people have between them and PostgreSQL.

Nothing is added to its list of ignored start-up parameters, so a client that sends an unusual one is found out.
"""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

from .account import Account
from .failure import HarnessError
from .postgres import free_port, start_guarded, stop_guarded

SERVER_CONNECTIONS = 5


class PgBouncer:
    """A running pooler in front of one PostgreSQL server."""

    def __init__(self, program: Path, server_port: int, folder: Path, account: Account, env: Mapping[str, str]) -> None:
        self.log = folder / "pgbouncer.log"
        home = folder / "pgbouncer"
        account.own(home)
        for _ in range(5):  # as with PostgreSQL: the free port may be gone by now
            self.port = free_port()
            self._guard = self._start(program, server_port, home, account, env)
            if self._wait_ready():
                return
            stop_guarded(self._guard)
        raise HarnessError("pgbouncer did not start:\n" + "\n".join(self.log.read_text().splitlines()[-5:]))

    @property
    def url(self) -> str:
        """Where tests connect."""
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    def _start(
        self, program: Path, server_port: int, home: Path, account: Account, env: Mapping[str, str]
    ) -> subprocess.Popen[bytes]:
        users = home / "users.txt"
        users.write_text('"postgres" ""\n')
        settings = home / "pgbouncer.ini"
        settings.write_text(
            "[databases]\n"
            f"* = host=127.0.0.1 port={server_port}\n"
            "[pgbouncer]\n"
            "listen_addr = 127.0.0.1\n"
            f"listen_port = {self.port}\n"
            "unix_socket_dir =\n"
            "auth_type = trust\n"
            f"auth_file = {users}\n"
            "pool_mode = transaction\n"
            f"default_pool_size = {SERVER_CONNECTIONS}\n"
            "max_client_conn = 500\n"
        )
        for file in (users, settings):
            os.chmod(file, 0o644)
        return start_guarded("SIGTERM", account, [str(program), str(settings)], self.log, env)

    def _wait_ready(self) -> bool:
        end = time.monotonic() + 15
        while time.monotonic() < end and self._guard.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
            except OSError:
                time.sleep(0.05)
            else:
                return True
        return False

    def stop(self) -> None:
        """Ends the pooler."""
        stop_guarded(self._guard)
