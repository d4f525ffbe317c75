"""Executes steps one after another: prepares what each needs, keeps going after a failure, leaves nothing behind.

Used by the command line for `test`, `build`, `lint` and single steps. Ctrl-C and SIGTERM end the step that
runs, then the servers.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from . import build, counts, paths, process, report, tools
from .counts import Counts
from .failure import HarnessError
from .servers import Servers
from .step import RESULTS_VARIABLE, Need, Result, Step

KEPT_LOG_FOLDERS = 5
SOAK_PATIENCE = 20
"""How many times longer a step may take when the tests have their literal sizes."""


class StepFailed(Exception):
    """A step ended badly; what it counted until then is kept."""

    def __init__(self, problem: str, found: Counts) -> None:
        super().__init__(problem)
        self.counts = found


class Runner:
    """One run: its id, its logs, and what has been prepared so far."""

    def __init__(self) -> None:
        self.run_id = uuid.uuid4().hex[:12]
        self.results: list[Result] = []
        self.logs = _fresh_log_folder()
        self.scenarios = self.logs / "scenarios"
        self.scenarios.mkdir()
        self._stack = ExitStack()
        self._problems: dict[Need, str] = {}
        self._servers: Servers | None = None
        self._began = time.monotonic()

    def __enter__(self) -> Runner:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()
        # Whoever was interrupted gets no report; what it started still has to go.
        process.kill_all(process.leftovers(self.run_id))

    def env(self) -> dict[str, str]:
        """The environment of every child: ours, without settings of the person that would change a result."""
        clean = {key: value for key, value in os.environ.items() if not key.startswith("DRAYHORSE_")}
        servers = self._servers.env if self._servers else {}
        # Last: a machine without PostgreSQL still has the psql that some tests call.
        programs = (paths.VENV / "bin", paths.GO_BIN, clean.get("PATH", ""), servers.get("DRAYHORSE_TEST_PG18_BIN", ""))
        return {
            **clean,
            **build.CARGO_ENV,
            process.MARK: self.run_id,
            "PATH": ":".join(str(folder) for folder in programs if str(folder)),
            "PYTHONPATH": f"{paths.PYTHON_PACKAGE.parent}:{paths.TESTS}",
            "NO_COLOR": "1",
            "RUST_BACKTRACE": "1",
            "DRAYHORSE_SCALE": os.environ.get("DRAYHORSE_SCALE", "1"),
            RESULTS_VARIABLE: str(self.scenarios),
            "DRAYHORSE_CLI": str(paths.CARGO_OUT / "drayhorse"),
            **servers,
        }

    def run(self, steps: Sequence[Step]) -> bool:
        """Runs the steps and closes with the report; true when everything went well."""
        needs = [need for need in Need if any(need in step.needs for step in steps)]
        total = len(needs) + len(steps)
        self.prepare(needs, total)
        for number, step in enumerate(steps, len(needs) + 1):
            self._timed(number, total, step.name, step.title, partial(self._execute, step))
        self._stack.close()
        self._look_for_leftovers()
        return report.close(self.results, time.monotonic() - self._began)

    def prepare(self, needs: Sequence[Need], total: int) -> bool:
        """Prepares the needs, each with a line of its own among `total`; true when all are there."""
        for number, need in enumerate(needs, 1):
            self._timed(number, total, need.name.lower(), need.value, partial(self._prepare_once, need))
        return not any(self._problems[need] for need in needs)

    def _prepare_once(self, need: Need, log: Path) -> Counts:
        try:
            # A second run in the same clone waits here instead of installing into the same folder.
            with _setup_lock():
                self._prepare(need, log)
        except HarnessError as error:
            self._problems[need] = str(error)
            raise
        self._problems[need] = ""
        return Counts()

    def _prepare(self, need: Need, log: Path) -> None:
        match need:
            case Need.VENV:
                tools.python()
            case Need.NODE_MODULES:
                tools.node()
            case Need.GO_TOOLS:
                tools.go()
            case Need.RUST:
                build.rust(self.env(), log)
            case Need.TYPESCRIPT:
                build.typescript(self.env(), log)
            case Need.SERVERS:
                self._servers = self._stack.enter_context(Servers(self.env()))
                for name in self._servers.left_out:
                    report.note(f"{name} is not installed and not tested: install Debian's postgresql and pgbouncer")

    def _execute(self, step: Step, log: Path) -> Counts:
        for need in step.needs:
            if problem := self._problems.get(need):
                raise HarnessError(f"not run, {need.value} failed: {problem.splitlines()[0]}")
        env = {**self.env(), **step.env}
        code = 0
        for words in step.commands():
            argv = [env[word[1:]] if word.startswith("$") and word[1:] in env else word for word in words]
            timeout_s = step.timeout_s * (1 if env["DRAYHORSE_SCALE"] == "1" else SOAK_PATIENCE)
            code = process.run(argv, cwd=step.cwd, env=env, log=log, timeout_s=timeout_s) or code
        found = counts.read(step.counts, log.read_text(errors="replace")) if step.counts else Counts()
        if found.failed:
            raise StepFailed(f"{found.failed} of {found.total}", found)
        if code:
            raise StepFailed(f"exit code {code}", found)
        if step.counts and not found.total:
            raise StepFailed("it ran no test", found)
        return found

    def _timed(self, number: int, total: int, name: str, title: str, work: Callable[[Path], Counts]) -> None:
        report.begin(number, total, title)
        log = self.logs / f"{name}.log"
        began = time.monotonic()
        found, problem = Counts(), ""
        try:
            found = work(log)
        except StepFailed as failure:
            found, problem = failure.counts, str(failure)
        except HarnessError as failure:
            problem = str(failure)
        result = Result(name, title, time.monotonic() - began, found, problem, log if log.exists() else None)
        self.results.append(result)
        report.end(result)

    def _look_for_leftovers(self) -> None:
        left = process.await_quiet(self.run_id, wait_s=10)
        if left:
            process.kill_all(left)
            shown = "; ".join(f"{pid} {command[:80]}" for pid, command in left)
            self.results.append(Result("leftovers", "nothing left running", 0, Counts(), shown))


def _fresh_log_folder() -> Path:
    paths.LOGS.mkdir(parents=True, exist_ok=True)
    older = sorted(entry for entry in paths.LOGS.iterdir() if entry.is_dir())
    for entry in older[:-KEPT_LOG_FOLDERS]:
        shutil.rmtree(entry, ignore_errors=True)
    folder = paths.LOGS / f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}"
    folder.mkdir()
    return folder


@contextmanager
def _setup_lock() -> Iterator[None]:
    with (paths.TOOLS / "setup.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
