"""Wrong clocks: Debian's libfaketime moves the wall clock of a process, not the clock that measures durations."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest


def _library() -> Path | None:
    found = sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))
    return found[0] if found else None


def library() -> Path:
    """The library, installed if that is possible; otherwise the test is left out, and one line says so."""
    found = _library()
    if found is None and os.geteuid() == 0 and shutil.which("apt-get"):
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for argv in (["apt-get", "update", "-q"], ["apt-get", "install", "-y", "-q", "faketime"]):
            subprocess.run(argv, env=environment, capture_output=True, stdin=subprocess.DEVNULL, check=False)
        found = _library()
    if found is None:
        pytest.skip("wrong clocks are not tested: install Debian's package faketime")
    return found


def wrong_by(seconds: int) -> dict[str, str]:
    """The environment of a process whose wall clock is wrong by so much."""
    return {
        "LD_PRELOAD": str(library()),
        "FAKETIME": f"{seconds:+d}s",
        # What the clock of durations says stays true, as on a machine whose wall clock is merely set wrong.
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        "DONT_FAKE_MONOTONIC": "1",
    }
