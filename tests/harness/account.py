"""The account the test servers run as: PostgreSQL refuses root, so root uses `postgres` or, failing that, `nobody`.

It also answers whether that account can reach a file, and gives it a folder.
"""

from __future__ import annotations

import os
import pwd
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .failure import HarnessError


@dataclass(frozen=True)
class Account:
    """A user name, or nothing when the servers run as whoever started the harness."""

    name: str | None

    @property
    def guard_name(self) -> str:
        """How `guard.py` is told."""
        return self.name or "-"

    def run(self, argv: Sequence[str | Path], timeout_s: float = 120) -> subprocess.CompletedProcess[str]:
        """Runs a short command as this account."""
        group = pwd.getpwnam(self.name).pw_gid if self.name else None
        return subprocess.run(
            [str(part) for part in argv],
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=timeout_s,
            check=False,
            cwd="/",
            user=self.name,
            group=group,
            extra_groups=[] if self.name else None,
        )

    def can_run(self, program: Path) -> bool:
        """Whether the account reaches the program through every folder on the way and it starts."""
        try:
            return self.run([program, "--version"]).returncode == 0
        except OSError:
            return False

    def own(self, folder: Path) -> None:
        """Gives the account a folder that nobody else may enter."""
        folder.mkdir(mode=0o700)
        if self.name:
            entry = pwd.getpwnam(self.name)
            os.chown(folder, entry.pw_uid, entry.pw_gid)


def server_account() -> Account:
    """The account for this run."""
    if os.geteuid() != 0:
        return Account(None)
    for name in ("postgres", "nobody"):
        try:
            pwd.getpwnam(name)
        except KeyError:
            continue
        return Account(name)
    raise HarnessError("PostgreSQL does not run as root: create a user `postgres` for the test servers")
