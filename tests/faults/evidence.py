"""The verdict on a queue after a fault: every job ended once, within its budget, under fences that never repeat, and
its timeline tells all of it.
"""

from __future__ import annotations

from collections import Counter, defaultdict

from .lab import Lab

# The end of a job repeats the fence of its last attempt: only a success has its record in the outcome.
_CLAIMS = """
select job_id::text, fence_text(claim_id, claim_no), attempt, worker_id, claimed_at, 'attempt' from attempt
union all
select job_id::text, fence_text(claim_id, claim_no), attempt, worker_id, claimed_at, 'success' from outcome
where state = 's'
union all
select job_id::text, data->>'fence', attempt, (data->>'workerId')::int, (data->>'claimedAt')::timestamptz, 'released'
from event where kind = 'released'
"""


def fences(lab: Lab) -> dict[str, str]:
    """The fence of every claim that has ended, with its job; none is used twice."""
    claims = lab.rows(_CLAIMS)
    again = [fence for fence, times in Counter(claim[1] for claim in claims).items() if times > 1]
    assert not again, f"fences were used again: {again[:3]}"
    return {claim[1]: claim[0] for claim in claims}


def verdict(lab: Lab, jobs: int, *, claims_forgotten: bool = False) -> None:
    """So many jobs exist, and each has ended as the contract says.

    A crash of the database may forget claims: then a handler may have started without one that is still known.
    """
    assert lab.one("select count(*) from job") == jobs
    assert lab.one("select count(*) from runtime") == 0
    ended = lab.rows("select count(*), count(distinct job_id) from outcome")
    assert ended == [(jobs, jobs)]
    beyond = lab.rows(
        "select o.job_id, o.attempt, j.max_attempts from outcome o join job j on j.id = o.job_id "
        "where o.attempt > j.max_attempts"
    )
    assert beyond == []
    _numbers(lab)
    if not claims_forgotten:
        _starts(lab)
    _timelines(lab)


def _numbers(lab: Lab) -> None:
    """Attempts are numbered without gap or repetition, and only the last may be a success."""
    spent: defaultdict[str, list[int]] = defaultdict(list)
    for job, attempt in lab.rows("select job_id::text, attempt from attempt"):
        spent[job].append(attempt)
    for job, state, last in lab.rows("select job_id::text, state::text, attempt from outcome"):
        expected = list(range(1, last + (0 if state == "s" else 1)))
        assert sorted(spent[job]) == expected, (job, state, last, sorted(spent[job]))


def _starts(lab: Lab) -> None:
    """No handler started without a claim of its own."""
    claims = Counter((claim[0], claim[2]) for claim in lab.rows(_CLAIMS))
    started = Counter((record.job, record.more["attempt"]) for record in lab.starts())
    without = {start: times for start, times in started.items() if times > claims[start]}
    assert not without, f"started more often than claimed: {without}"
    fences(lab)


def _timelines(lab: Lab) -> None:
    """Each begins with the enqueue, ends with the end, and tells every claim and how it came out."""
    told = Counter((job, fence) for fence, job in fences(lab).items())
    with lab.session() as connection:
        seen = connection.execute(
            "select j.id::text, outcome_state(o.state), "
            "array_agg(t.kind order by t.n), "
            "array_agg(t.data->>'fence' order by t.n) filter (where t.kind = 'claimed') "
            "from job j join outcome o on o.job_id = j.id, "
            "lateral (select kind, data, row_number() over () as n from timeline(j.id)) t group by j.id, o.state"
        ).fetchall()
    for job, state, kinds, claimed in seen:
        assert kinds[0] == "enqueued" and kinds[-1] == state, (job, kinds)
        for fence in claimed or ():
            told[job, fence] -= 1
        claims = kinds.count("claimed")
        # A failure that is the last is told by the end alone.
        endings = sum(kind in ("retry_scheduled", "lease_expired", "timed_out", "released") for kind in kinds)
        assert endings <= claims <= endings + 1, (job, kinds)
    assert not +told and not -told, (+told, -told)
