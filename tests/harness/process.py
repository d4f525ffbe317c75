"""Child processes of the harness: each in its own session, its output in a log file, ended as a whole.

`run` waits for one; `leftovers` finds what a run has left behind by a mark in the environment, which also
reaches children that made a session of their own.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

MARK = "DRAYHORSE_HARNESS_RUN"
"""Set to the run's id in every child, so that a process left behind can be told from a stranger's."""


def run(argv: Sequence[str], *, cwd: Path, env: Mapping[str, str], log: Path, timeout_s: float) -> int:
    """Runs a command with its output appended to `log`; its exit code, or 124 when it took too long."""
    with log.open("ab") as output:
        output.write(f"$ {' '.join(argv)}\n".encode())
        output.flush()
        child = subprocess.Popen(
            argv,
            cwd=cwd,
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            return child.wait(timeout_s)
        except subprocess.TimeoutExpired:
            output.write(f"\nended after {timeout_s:.0f} s without a result\n".encode())
            return 124
        finally:
            end_group(child)


def end_group(child: subprocess.Popen[bytes], grace_s: float = 5.0) -> None:
    """Ends the child's whole session: asks first, kills after the grace time, and takes its exit code."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGTERM)
    if child.poll() is None:
        with suppress(subprocess.TimeoutExpired):
            child.wait(grace_s)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def leftovers(run_id: str) -> list[tuple[int, str]]:
    """Living processes of this run besides this one: their ids and command lines."""
    mark = f"{MARK}={run_id}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            if mark not in (entry / "environ").read_bytes().split(b"\0"):
                continue
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
        except OSError:
            continue  # it ended meanwhile, or belongs to somebody else
        if command:
            found.append((int(entry.name), command))
    return found


def await_quiet(run_id: str, wait_s: float) -> list[tuple[int, str]]:
    """What still lives of this run after `wait_s`; embedded servers end by themselves within that time."""
    end = time.monotonic() + wait_s
    while (left := leftovers(run_id)) and time.monotonic() < end:
        time.sleep(0.1)
    return left


def kill_all(processes: Sequence[tuple[int, str]]) -> None:
    """Kills the given processes."""
    for pid, _ in processes:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
