"""One process of a test: the worker program of a language, its log, its signals, what it costs.

Children stay in the test runner's process group, so that whoever ends the runner's group ends them too.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from .sizes import PATIENCE_S

_TICKS = os.sysconf("SC_CLK_TCK")


class Child:
    """A running program; `end` is called for every one of them, however the test went."""

    def __init__(self, name: str, argv: list[str], env: Mapping[str, str], log: Path) -> None:
        self.name = name
        self.log = log
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                argv, env=dict(env), stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
            )

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def code(self) -> int | None:
        """Its exit code, a signal as a negative number; nothing while it runs."""
        return self._process.poll()

    def send(self, number: signal.Signals) -> None:
        """Sends a signal; one that comes too late is none."""
        self._process.send_signal(number)

    def kill(self) -> None:
        """SIGKILL, and waits until it is gone."""
        self.send(signal.SIGKILL)
        self._process.wait()

    def wait(self, patience_s: float = PATIENCE_S) -> int:
        """Its exit code, when it has one."""
        try:
            return self._process.wait(patience_s)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.name} did not end within {patience_s:.0f} s\n{self.tail()}") from None

    def end(self) -> None:
        """Ends it whatever state it is in, stopped ones included."""
        with suppress(ProcessLookupError):
            self._process.kill()
        self._process.wait()

    def tail(self) -> str:
        """The end of what it wrote."""
        return f"{self.name}: {self.log.read_text(errors='replace')[-2000:]}"

    def cpu_s(self) -> float:
        """Processor time it has used."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    def resident_mb(self) -> float:
        """Memory it holds."""
        return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
