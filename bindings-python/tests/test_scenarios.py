"""Runs `tests/scenarios`, the behaviour that every language shares; its README says what a step means.

Scenarios alternate between `Queue` and `AsyncQueue`. Those with a worker run twice, with handlers in threads and with
handlers in an event loop. Several run at once, each in a schema of its own.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import threading
import uuid
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
from scenario_calls import AnyQueue, bare, call, result_of
from scenario_values import fill, id_of, mismatch, plain, shown
from scenario_work import Work

from drayhorse import AsyncQueue, DrayhorseError, Queue

FOLDER = Path(__file__).resolve().parents[2] / "tests" / "scenarios"
# Most of a scenario's time is spent waiting for the database.
AT_ONCE = 6
STEP_KEYS = {"call", "args", "as", "expect", "error", "details", "advanceClock", "work", "note"}


@dataclass(frozen=True)
class Case:
    """One scenario and how it is run."""

    file: str
    scenario: dict[str, Any]
    asynchronous: bool
    in_loop: bool

    def __str__(self) -> str:
        kind = "async" if self.asynchronous else "sync"
        handlers = ("-loop" if self.in_loop else "-threads") if has_work(self.scenario) else ""
        return f"{self.file}/{self.scenario['name']}-{kind}{handlers}"


def has_work(scenario: dict[str, Any]) -> bool:
    return any("work" in step for step in scenario["steps"])


def cases() -> list[Case]:
    found = []
    for path in sorted(FOLDER.glob("*.json")):
        for n, scenario in enumerate(json.loads(path.read_text(encoding="utf-8"))["scenarios"]):
            # With handlers of either kind, each under another kind of queue.
            for in_loop in (False, True) if has_work(scenario) else (False,):
                found.append(Case(path.name, scenario, (n % 2 == 1) != in_loop, in_loop))
    assert found, f"no scenarios in {FOLDER}"
    return found


@dataclass
class Play:
    """A scenario on its way: its queue and the answers that it keeps."""

    queue: AnyQueue
    case: Case
    kept: dict[str, Any]

    async def run(self) -> None:
        for n, step in enumerate(self.case.scenario["steps"], 1):
            name = step.get("call") or ("work" if "work" in step else "advanceClock")
            try:
                await self._step(step)
            except (AssertionError, DrayhorseError) as error:
                code = f"{error.code}: " if isinstance(error, DrayhorseError) else ""
                raise AssertionError(f"step {n}, {name}: {code}{error}") from error

    async def _step(self, step: dict[str, Any]) -> None:
        unknown = step.keys() - STEP_KEYS
        assert not unknown, f"a step has no {', '.join(sorted(unknown))}"
        if "error" in step:
            await self._refused(step)
            return
        answer = await self._answer(step)
        if "as" in step:
            self.kept[step["as"]] = answer
        if "expect" in step:
            self._compare(step["expect"], answer)

    async def _answer(self, step: dict[str, Any]) -> Any:
        if "work" in step:
            work = fill(step["work"], self.kept)
            until = {id_of(name, self.kept): state for name, state in work["until"].items()}
            return await Work(self.queue, work, self.case.in_loop).run(until)
        if "advanceClock" in step:
            return await settled(bare(self.queue, "advanceClock", {"ms": step["advanceClock"]}))
        args = fill(step.get("args", {}), self.kept)
        answer = call(self.queue, step["call"], args, must_fail="error" in step)
        return plain(result_of(step["call"], await settled(answer)))

    async def _refused(self, step: dict[str, Any]) -> None:
        try:
            answer = await self._answer(step)
        except DrayhorseError as error:
            assert error.code == step["error"], f"must fail with {step['error']}, not {error.code}: {error.message}"
            if "details" in step:
                self._compare(step["details"], plain(error.details))
        else:
            raise AssertionError(f"answered {shown(answer)}, must fail with {step['error']}")

    def _compare(self, pattern: Any, answer: Any) -> None:
        why = mismatch(fill(pattern, self.kept), answer)
        assert why is None, f"{why}, in {shown(answer)}"


async def settled(answer: Any) -> Any:
    """The answer of either kind of queue."""
    return await answer if inspect.isawaitable(answer) else answer


async def perform(url: str, schema: str, case: Case) -> None:
    if case.asynchronous:
        async with await AsyncQueue.connect(url, schema=schema, pool_size=2) as queue:
            await queue.migrate()
            await Play(queue, case, {}).run()
    else:
        with Queue.connect(url, schema=schema, pool_size=2) as plain_queue:
            plain_queue.migrate()
            await Play(plain_queue, case, {}).run()


results_lock = threading.Lock()


def report(case: Case, passed: bool) -> None:
    """A line for tests/scenarios/report.py, if this run wants one."""
    folder = os.environ.get("DRAYHORSE_SCENARIO_RESULTS")
    if folder:
        line = json.dumps({"file": case.file, "name": case.scenario["name"], "passed": passed}, ensure_ascii=False)
        with results_lock, (Path(folder) / "python.jsonl").open("a", encoding="utf-8") as file:
            file.write(line + "\n")


def perform_and_report(url: str, case: Case) -> None:
    schema = f"py_{uuid.uuid4().hex[:16]}"
    passed = False
    try:
        asyncio.run(perform(url, schema, case))
        passed = True
    finally:
        report(case, passed)
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f'drop schema if exists "{schema}" cascade')


@pytest.fixture(scope="session")
def performances(url: str, request: pytest.FixtureRequest) -> Iterator[dict[str, Future[None]]]:
    """Every chosen scenario, under way."""
    chosen = [item.callspec.params.get("case") for item in request.session.items if hasattr(item, "callspec")]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield {str(case): pool.submit(perform_and_report, url, case) for case in chosen if isinstance(case, Case)}
        pool.shutdown(cancel_futures=True)


@pytest.mark.parametrize("case", cases(), ids=str)
def test_scenario(case: Case, performances: dict[str, Future[None]]) -> None:
    try:
        performances[str(case)].result()
    except AssertionError as failure:
        pytest.fail(str(failure), pytrace=False)
