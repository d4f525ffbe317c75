"""What comes from Debian packages: PostgreSQL 15, the oldest supported server, and PgBouncer.

Root gets them installed when they are missing; anybody else is told in one line what is left out. In CI a
missing one is an error, so that a green run always means both.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from .failure import HarnessError

POSTGRES_15 = Path("/usr/lib/postgresql/15/bin")


def pgbouncer() -> Path | None:
    """The PgBouncer program, also where Debian puts it outside a user's PATH."""
    found = shutil.which("pgbouncer", path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin")
    return Path(found) if found else None


def missing() -> list[str]:
    """The names of what is not installed."""
    names = []
    if not (POSTGRES_15 / "postgres").exists():
        names.append("PostgreSQL 15")
    if pgbouncer() is None:
        names.append("PgBouncer")
    return names


def install() -> list[str]:
    """Installs what is missing if that is possible; the names of what is still left out, for the caller to say."""
    if not missing():
        return []
    if os.geteuid() == 0 and shutil.which("apt-get"):
        # RUNLEVEL=1 keeps the packages from starting servers of their own.
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
        for argv in (
            ["apt-get", "update", "-q"],
            ["apt-get", "install", "-y", "-q", "--no-install-recommends", "postgresql", "pgbouncer"],
        ):
            done = subprocess.run(
                argv, env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False
            )
            if done.returncode != 0:
                tail = "\n".join((done.stdout + done.stderr).splitlines()[-5:])
                print(f"`{' '.join(argv)}` failed:\n{tail}", flush=True)
    left_out = missing()
    if left_out and os.environ.get("CI"):
        raise HarnessError(f"{' and '.join(left_out)} missing: install Debian's packages postgresql and pgbouncer")
    return left_out
