"""The demo: 600 jobs from three languages, worked in three languages, through an outage and a killed worker.

Run by `make demo`, which builds everything first and passes the commands of the other languages in the environment:
DEMO_NODE (a folder where `drayhorse` resolves) and DEMO_GO (the built Go program). Ends with a table and the timeline
of one retried job; exit code 1 if a job is lost or ended twice.
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

from provider import Provider

from drayhorse import JobFilter, JobSnapshot, Queue, TimelineEvent

HERE = Path(__file__).resolve().parent
JOBS = 600
SLOW_S, OUTAGE_S, KILL_AT_S, PATIENCE_S = 4.0, 6.0, 7.0, 120.0
STATES = ("ready", "scheduled", "active", "succeeded", "failed")


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
    """One line that is rewritten on a terminal, and a line every two seconds elsewhere."""

    def __init__(self) -> None:
        self.live = sys.stdout.isatty()
        self.last = 0.0

    def show(self, line: str, *, now: float) -> None:
        if self.live:
            print(f"\r\x1b[K{line}", end="", flush=True)
        elif now - self.last >= 2:
            self.last = now
            print(line, flush=True)

    def say(self, line: str) -> None:
        print(f"\r\x1b[K{line}" if self.live else line, flush=True)


def every_job(queue: Queue) -> list[JobSnapshot]:
    """All jobs, page by page."""
    jobs: list[JobSnapshot] = []
    after: str | None = None
    while True:
        page = queue.list(JobFilter(type="provider.sync"), limit=200, after=after)
        jobs.extend(page.jobs)
        if page.next is None:
            return jobs
        after = page.next


def table(jobs: list[JobSnapshot], killed: str) -> None:
    """Who enqueued, who ran, with how many attempts."""
    languages = ("typescript", "python", "go")
    ran = Counter((next(t for t in j.tags if t.startswith("from:"))[5:], j.worker) for j in jobs)
    print(
        f"\n{'enqueued in':<14}{'jobs':>6}   "
        + "".join(f"{'ended in ' + w:>21}" for w in languages)
        + f"{'attempts':>11}{'retried':>9}"
    )
    for source in languages:
        mine = [j for j in jobs if f"from:{source}" in j.tags]
        print(
            f"{source:<14}{len(mine):>6}   "
            + "".join(f"{ran[(source, w)]:>21}" for w in languages)
            + f"{sum(j.attempt for j in mine):>11}{sum(j.attempt > 1 for j in mine):>9}"
        )
    print(f"(the {killed} worker was killed in the middle)")


def tell(entry: TimelineEvent, start: float) -> str:
    """One line of a timeline, in seconds since the job was enqueued."""
    about = " ".join(
        f"{key}={value}"
        for key, value in entry.data.items()
        if key in ("delayMs", "source", "nextAttempt", "worker", "reason")
    )
    error = entry.data.get("error")
    if isinstance(error, dict):
        about += f"  ({error.get('name')}: {error.get('message')})"
    number = "" if entry.attempt is None else f"attempt {entry.attempt}"
    return f"  {entry.at.timestamp() - start:8.3f} s  {entry.kind:<16} {number:<11} {about}"


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
                "three workers started: TypeScript, Python, Go, 8 slots each; the provider is slow, then down, then up"
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
    killed = "go"
    start = time.monotonic()
    alive = True
    while True:
        now = time.monotonic() - start
        counts = queue.counts(JobFilter(type="provider.sync"))
        display.show(
            f"{now:5.1f} s  provider {provider.phase:<4}  " + "  ".join(f"{s} {getattr(counts, s):>3}" for s in STATES),
            now=now,
        )
        if alive and now >= KILL_AT_S:
            processes[killed].kill()
            alive = False
            display.say(f"{now:5.1f} s  SIGKILL to the {killed} worker; what it ran comes back when its leases end")
        if counts.succeeded + counts.failed >= JOBS:
            break
        if now > PATIENCE_S:
            display.say(f"not done after {PATIENCE_S:.0f} s")
            break
        time.sleep(0.2)

    jobs = every_job(queue)
    table(jobs, killed)
    ended = Counter(j.state for j in jobs)
    lost = JOBS - ended["succeeded"]
    doubled = (
        len(jobs)
        - len({j.id for j in jobs})
        + sum(
            sum(e.kind in ("succeeded", "failed", "canceled") for e in queue.timeline(j.id)) > 1
            for j in jobs
            if j.attempt > 1
        )
    )
    repeated = sum(n - 1 for n in provider.effects.values())
    print(
        f"\njobs {len(jobs)}   succeeded {ended['succeeded']}   lost {lost}   double outcomes {doubled}   "
        f"calls the provider refused {provider.refused}   effects repeated under the same key {repeated}   "
        f"time {time.monotonic() - start:.1f} s"
    )
    retried = max(jobs, key=lambda j: (j.last_error is not None and j.last_error.cause == "lease", j.attempt))
    entries = queue.timeline(retried.id)
    print(f"\nThe timeline of job {retried.id}, policy {retried.retry_policy}:")
    for entry in entries:
        print(tell(entry, entries[0].at.timestamp()))
    return 0 if lost == 0 and doubled == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
