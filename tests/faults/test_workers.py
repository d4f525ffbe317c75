"""Workers that are killed, frozen or told to stop in the middle."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from .fleet import LANGUAGES, Fleet, Programs, scale, until

URL = os.environ.get("DRAYHORSE_TEST_URL", "")


@pytest.mark.parametrize("language", LANGUAGES)
def test_killed_in_the_middle(programs: Programs, language: str, tmp_path: Path) -> None:
    with Fleet(programs, URL, tmp_path) as fleet:
        fleet.enqueue(150 * scale())
        fleet.start(language)
        fleet.reach(0.25)
        victim = fleet.workers.pop(language)
        victim.kill()
        victim.wait()
        others = [other for other in LANGUAGES if other != language]
        fleet.start(*others)
        fleet.verdict()


@pytest.mark.parametrize("language", LANGUAGES)
def test_frozen_past_its_lease_and_thawed(programs: Programs, language: str, tmp_path: Path) -> None:
    with Fleet(programs, URL, tmp_path) as fleet:
        fleet.enqueue(150 * scale())
        fleet.start()
        fleet.reach(0.25)
        victim = fleet.workers[language]
        victim.send_signal(signal.SIGSTOP)
        try:
            # The others take over what it held; only then does it come back with its old fences.
            fleet.wait_for(fleet.enqueued)
        finally:
            victim.send_signal(signal.SIGCONT)
        fleet.enqueue(50)
        fleet.verdict()


@pytest.mark.parametrize("language", LANGUAGES)
def test_told_to_stop_it_drains_and_exits_well(programs: Programs, language: str, tmp_path: Path) -> None:
    with Fleet(programs, URL, tmp_path) as fleet:
        fleet.enqueue(100 * scale())
        fleet.start()
        fleet.reach(0.25)
        told = fleet.workers.pop(language)
        told.send_signal(signal.SIGTERM)
        until(lambda: told.poll() is not None, lambda: fleet.log(language).read_text())
        assert told.returncode == 0, fleet.log(language).read_text()
        fleet.verdict()
