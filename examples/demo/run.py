"""The demo: 600 jobs from three languages, worked in three languages, through an outage and a killed worker.

Run by `make demo`, which builds everything first and passes the commands of the other languages in the environment:
DEMO_NODE (a folder where `drayhorse` resolves) and DEMO_GO (the built Go program). Ends with a table, two timelines
and a reviewed replay; exit code 1 if a job is lost or ended twice, or if the circuit or the replay did not do theirs.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from evidence import every_job, review, table, timeline
from provider import RETRY_AFTER_S, UNREGISTERED_ACCOUNT, Provider

from drayhorse import CircuitSettings, Counts, GateEvent, JobFilter, JobSnapshot, Queue, WaitTimeoutError

HERE = Path(__file__).resolve().parent
JOBS = 600
SLOW_S, KILL_AT_S, OUTAGE_S, PATIENCE_S = 4.0, 2.5, 6.0, 120.0
COOLDOWN_MS = 3_000
KILLED = "go"
STATES = ("ready", "scheduled", "active", "succeeded", "failed")
SYNC = JobFilter(type="provider.sync")


def commands() -> dict[str, tuple[list[str], list[str]]]:
    """Per language: the command that enqueues a share, and the one that works."""
    node = ["node"]
    go = os.environ["DEMO_GO"]
    module = Path(os.environ["DEMO_NODE"])
    return {
        "typescript": ([*node, str(module / "enqueue.mjs")], [*node, str(module / "worker.mjs")]),
        "python": ([sys.executable, str(HERE / "enqueue.py")], [sys.executable, str(HERE / "worker.py")]),
        "go": ([go, "enqueue"], [go, "worker"]),
    }


class Display:
    """One line that is rewritten on a terminal; elsewhere a line every two seconds, and when the circuit changes."""

    def __init__(self) -> None:
        self.live = sys.stdout.isatty()
        self.last = -2.0
        self.circuit = ""

    def show(self, now: float, phase: str, circuit: str, counts: Counts) -> None:
        line = f"{now:5.1f} s  provider {phase:<4}  circuit {circuit:<9}  " + "  ".join(
            f"{state} {getattr(counts, state):>3}" for state in STATES
        )
        if self.live:
            print(f"\r\x1b[K{line}", end="", flush=True)
        elif now - self.last >= 2 or circuit != self.circuit:
            self.last, self.circuit = now, circuit
            print(line, flush=True)

    def say(self, line: str) -> None:
        print(f"\r\x1b[K{line}" if self.live else line, flush=True)


class Circuit:
    """The circuit of the endpoint as its events tell it; each is said once."""

    def __init__(self, queue: Queue, display: Display) -> None:
        self.queue = queue
        self.display = display
        self.told: list[GateEvent] = []

    def look(self, now: float) -> str:
        """The state now."""
        endpoint = self.queue.endpoints.get("provider")
        if endpoint is None:
            return "closed"
        for event in endpoint.events[len(self.told) :]:
            self.told.append(event)
            if event.event.startswith(("circuit_", "probe_")):
                said = event.event.replace("_", " ")
                job = "" if event.job_id is None else f" by job {event.job_id}"
                self.display.say(f"{now:5.1f} s    {said}{job}")
        return endpoint.circuit.state

    def went_through(self) -> bool:
        """Whether it opened, let a probe out, and closed again."""
        kinds = iter([event.event for event in self.told])
        return all(kind in kinds for kind in ("circuit_opened", "probe_started", "circuit_closed"))


def main() -> int:
    provider = Provider(SLOW_S, OUTAGE_S)
    display = Display()
    with tempfile.TemporaryDirectory(prefix="drayhorse-demo-") as folder:
        url = os.environ.get("DRAYHORSE_URL") or f"embedded:{folder}/db"
        environment = {**os.environ, "DRAYHORSE_URL": url, "PROVIDER_URL": provider.url}
        processes: dict[str, subprocess.Popen[bytes]] = {}
        queue = Queue.connect(url)
        try:
            queue.migrate()
            queue.endpoints.configure(
                "provider",
                actor="demo",
                reason="seconds instead of the minute of production",
                circuit=CircuitSettings(cooldown_ms=COOLDOWN_MS),
            )
            share = JOBS // 3
            begun = time.monotonic()
            for n, (enqueue, _) in enumerate(commands().values()):
                subprocess.run(
                    [*enqueue, str(n * share), str((n + 1) * share)], env=environment, check=True, timeout=60
                )
            display.say(
                f"{JOBS} jobs of type provider.sync enqueued, "
                f"a third from each language, in {time.monotonic() - begun:.1f} s"
            )
            provider.start_clock()
            for language, (_, work) in commands().items():
                processes[language] = subprocess.Popen(work, env=environment)
            display.say(
                "three workers started: TypeScript, Python, Go, 8 slots each; "
                f"the provider is slow, from {SLOW_S:.0f} s on down, from {SLOW_S + OUTAGE_S:.0f} s on up"
            )
            return watch(queue, provider, processes, display)
        finally:
            for process in processes.values():
                if process.poll() is None:
                    process.send_signal(signal.SIGTERM)
            for process in processes.values():
                try:
                    process.wait(timeout=30)
                except subprocess.TimeoutExpired:
                    process.kill()
            queue.close()
            provider.stop()


def watch(queue: Queue, provider: Provider, processes: dict[str, subprocess.Popen[bytes]], display: Display) -> int:
    """Shows progress, kills a worker in the middle, and judges the end."""
    start = time.monotonic()
    circuit = Circuit(queue, display)
    alive = True
    while True:
        now = time.monotonic() - start
        counts = queue.counts(SYNC)
        display.show(now, provider.phase, circuit.look(now), counts)
        if alive and now >= KILL_AT_S:
            processes[KILLED].kill()
            alive = False
            display.say(f"{now:5.1f} s  SIGKILL to the {KILLED} worker; what it ran comes back when its leases end")
        if counts.succeeded + counts.failed >= JOBS:
            break
        if now > PATIENCE_S:
            display.say(f"not done after {PATIENCE_S:.0f} s")
            break
        time.sleep(0.1)
    circuit.look(time.monotonic() - start)

    jobs = every_job(queue)
    table(jobs, KILLED)
    failed = [job for job in jobs if job.state == "failed"]
    ended = Counter(job.state for job in jobs)
    lost = JOBS - ended["succeeded"] - ended["failed"]
    doubled = double_outcomes(queue, jobs)
    repeated = sum(n - 1 for n in provider.effects.values())
    print(
        f"\njobs {len(jobs)}   succeeded {ended['succeeded']}   failed {ended['failed']}   lost {lost}   "
        f"double outcomes {doubled}   calls the provider refused {provider.refused}   "
        f"effects repeated under the same key {repeated}   time {time.monotonic() - start:.1f} s"
    )
    retried = max(jobs, key=lambda j: (j.last_error is not None and j.last_error.cause == "lease", j.attempt))
    timeline(queue, retried, "A job that was retried")
    again = [job for job in jobs if job.attempt > 1]
    told = [job for job in again if any(entry.source == "retry_after" for entry in queue.timeline(job.id))]
    for job in told:
        timeline(queue, job, f"Told to come back in {RETRY_AFTER_S} s, later than the recovery")
    sound = lost == 0 and doubled == 0 and bool(told) and circuit.went_through()
    return 0 if replayed(queue, provider, failed) and sound else 1


def double_outcomes(queue: Queue, jobs: list[JobSnapshot]) -> int:
    """Ids that appear twice, and timelines with more than one end."""
    ends = ("succeeded", "failed", "canceled")
    twice = sum(sum(e.kind in ends for e in queue.timeline(j.id)) > 1 for j in jobs if j.attempt > 1)
    return len(jobs) - len({j.id for j in jobs}) + twice


def replayed(queue: Queue, provider: Provider, failed: list[JobSnapshot]) -> bool:
    """Replays the one job that was expected to fail: reviewed, its cause removed, then once more."""
    if [payload_of(queue, job) for job in failed] != [{"accountId": UNREGISTERED_ACCOUNT}]:
        print(f"expected the job of account {UNREGISTERED_ACCOUNT} to fail, and no other: {[job.id for job in failed]}")
        return False
    (source,) = failed
    timeline(queue, source, "A job whose input the provider refuses: no second attempt")
    print("\nThe review before its replay:")
    preview = queue.replay_preview(source.id)
    review(preview)
    provider.register(UNREGISTERED_ACCOUNT)
    print(f"  account {UNREGISTERED_ACCOUNT} is registered now; replay by the operator:")
    (made,) = queue.replay(
        source.id,
        actor="operator",
        reason=f"account {UNREGISTERED_ACCOUNT} was registered",
        request_id=f"demo-{source.id}",
        acknowledge_duplicate_risk=preview.risks.acknowledgement_needed,
    )
    try:
        outcome = queue.wait(made.id, 20_000)
    except WaitTimeoutError:
        print(f"  job {made.id} has not ended")
        return False
    print(f"  job {made.id}, made from {made.source_id}: {outcome.state}, {outcome.result}")
    return outcome.state == "succeeded"


def payload_of(queue: Queue, job: JobSnapshot) -> object:
    """The payload, which lists leave out."""
    found = queue.get(job.id)
    return None if found is None else found.payload


if __name__ == "__main__":
    sys.exit(main())
