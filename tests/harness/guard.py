"""Runs one server and ends it when whoever started this is gone, however that happened.

The harness starts `python3 guard.py STOP_SIGNAL USER COMMAND...` and keeps the write end of its standard input;
when that closes, even by SIGKILL, the guard stops the server and exits. USER `-` changes nothing. It is a
program of its own and imports nothing of the harness.
"""

from __future__ import annotations

import os
import pwd
import selectors
import signal
import subprocess
import sys


def start(user: str, command: list[str]) -> subprocess.Popen[bytes]:
    """Starts the server, as another user if one is named, in a session of its own."""
    if user == "-":
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True)
    group = pwd.getpwnam(user).pw_gid
    return subprocess.Popen(
        command, stdin=subprocess.DEVNULL, start_new_session=True, user=user, group=group, extra_groups=[], cwd="/"
    )


def main() -> int:
    """Exits with the server's code, or 0 when it was stopped on purpose."""
    stop_signal = signal.Signals[sys.argv[1]]
    server = start(sys.argv[2], sys.argv[3:])
    # A Ctrl-C at the terminal goes to the whole foreground group; the harness decides about the order.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with selectors.DefaultSelector() as selector:
        selector.register(sys.stdin.fileno(), selectors.EVENT_READ)
        selector.register(os.pidfd_open(server.pid), selectors.EVENT_READ)
        selector.select()
    if server.poll() is not None:
        return server.returncode
    server.send_signal(stop_signal)
    try:
        server.wait(20)
    except subprocess.TimeoutExpired:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
