"""What the demo shows of its jobs: the table of who did what, timelines, and the review before a replay."""

from __future__ import annotations

from collections import Counter

from drayhorse import JobFilter, JobSnapshot, Queue, ReplayPreview, TimelineEvent

LANGUAGES = ("typescript", "python", "go")
SHOWN = ("delayMs", "source", "chosenMs", "chosenSource", "nextAttempt", "worker", "reason", "actor")


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
    ran = Counter((next(t for t in j.tags if t.startswith("from:"))[5:], j.worker) for j in jobs)
    print(
        f"\n{'enqueued in':<14}{'jobs':>6}   "
        + "".join(f"{'ended in ' + w:>21}" for w in LANGUAGES)
        + f"{'attempts':>11}{'retried':>9}"
    )
    for source in LANGUAGES:
        mine = [j for j in jobs if f"from:{source}" in j.tags]
        print(
            f"{source:<14}{len(mine):>6}   "
            + "".join(f"{ran[(source, w)]:>21}" for w in LANGUAGES)
            + f"{sum(j.attempt for j in mine):>11}{sum(j.attempt > 1 for j in mine):>9}"
        )
    print(f"(the {killed} worker was killed in the middle)")


def timeline(queue: Queue, job: JobSnapshot, title: str) -> None:
    """Everything that happened to a job, in seconds since it was enqueued."""
    entries = queue.timeline(job.id)
    print(f"\n{title}: job {job.id}, policy {job.retry_policy}")
    for entry in entries:
        print(tell(entry, entries[0].at.timestamp()))


def tell(entry: TimelineEvent, start: float) -> str:
    """One line of a timeline."""
    about = " ".join(f"{key}={entry.data[key]}" for key in SHOWN if key in entry.data)
    if entry.error is not None:
        about += f"  ({entry.error.name}: {entry.error.message})"
    number = "" if entry.attempt is None else f"attempt {entry.attempt}"
    return f"  {entry.at.timestamp() - start:8.3f} s  {entry.kind:<16} {number:<11} {about}"


def review(preview: ReplayPreview) -> None:
    """What a replay would run, and what speaks against it."""
    would, risks = preview.would_run, preview.risks
    print(f"  it is {preview.state}; a replay would run {would.type}@{would.version} with {preview.payload}")
    print(f"  budget {would.max_attempts}, endpoint {would.endpoint}, idempotency key {would.idempotency_key}")
    print(
        f"  a handler had started: {yes(risks.started)}; effect uncertain: {yes(risks.uncertain)}; "
        f"made from it before: {len(risks.repeated_before)}; circuit: {risks.circuit}; "
        f"acknowledgement needed: {yes(risks.acknowledgement_needed)}"
    )


def yes(value: bool) -> str:
    """For a person."""
    return "yes" if value else "no"
