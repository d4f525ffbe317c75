"""T29: the database has committed and the reply is lost. Whoever sends the statement again meets its own work."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from drayhorse import EnqueueOptions, NewJob, Queue
from drayhorse.options import FailOptions

from .evidence import verdict
from .lab import LANGUAGES, Lab
from .proxy import Proxy
from .sizes import sized

SINGLES = sized(40, 100)


@pytest.fixture
def proxy(lab: Lab) -> Iterator[Proxy]:
    with Proxy(lab.url) as made:
        yield made


@pytest.fixture
def far(lab: Lab, proxy: Proxy) -> Iterator[Queue]:
    """The queue through the proxy."""
    with lab.connect(proxy.url) as queue:
        yield queue


def test_t29_enqueues_whose_reply_is_lost_make_one_job_each(lab: Lab, proxy: Proxy) -> None:
    proxy.lose_replies(".enqueue(")
    producers = [lab.start(language, "enqueue", str(SINGLES), url=proxy.url, queues=language) for language in LANGUAGES]
    assert [producer.wait() for producer in producers] == [0, 0, 0], lab.tails()
    made = lab.rows(
        "select l.queue, count(*), count(distinct j.payload) from job j join lane l on l.id = j.lane_id "
        "group by 1 order by 1"
    )
    assert made == [(language, SINGLES, SINGLES) for language in sorted(LANGUAGES)]
    assert proxy.lost(".enqueue(") >= 3 * SINGLES // 2


def test_t29_a_batch_whose_reply_is_lost_is_there_once_and_in_order(lab: Lab, proxy: Proxy, far: Queue) -> None:
    proxy.lose_replies(".enqueue(")
    made = far.enqueue_many(NewJob("act", n) for n in range(100))
    assert proxy.lost(".enqueue(") > 0
    stored = {str(id): payload for id, payload in lab.rows("select id, payload::int from job")}
    assert [stored[id] for id in made] == list(range(100))
    assert len(stored) == 100


def test_t29_reports_whose_reply_is_lost_count_once(lab: Lab, proxy: Proxy, far: Queue) -> None:
    names = ("rpc_claim", "rpc_complete", "rpc_fail", "rpc_release", "rpc_redrive")
    texts = [f".{name}(" for name in names]
    proxy.lose_replies(*texts)
    done, failing, given_back = (lab.act(options=EnqueueOptions(max_attempts=1)) for _ in range(3))
    (first,) = far.claim([{"type": "act"}], limit=1)
    (second,) = far.claim([{"type": "act"}], limit=1)
    (third,) = far.claim([{"type": "act"}], limit=1)
    assert [first.id, second.id, third.id] == [done, failing, given_back]
    assert [first.attempt, second.attempt, third.attempt] == [1, 1, 1]
    assert far.complete(first, {"n": 1}).state == "succeeded"
    assert far.fail(second, RuntimeError("no"), FailOptions(uncertain=True)).state == "failed"
    far.release(third)
    assert lab.rows("select attempt, state::text from runtime") == [(0, "r")]
    (again,) = far.redrive(failing, actor="me", reason="repaired", request_id="1")
    # The same words once more, on a connection that loses nothing: quietly the same answer.
    assert lab.queue.complete(first, {"n": 1}).state == "succeeded"
    assert lab.queue.fail(second, RuntimeError("no")).state == "failed"
    lab.queue.release(third)
    assert [r.id for r in lab.queue.redrive(failing, actor="me", reason="repaired", request_id="1")] == [again.id]
    assert all(proxy.lost(text) > 0 for text in texts)
    assert lab.one("select count(*) from job") == 4
    assert lab.rows("select job_id::text, attempt, state::text, result from outcome order by finished_at") == [
        (done, 1, "s", '{"n": 1}'),
        (failing, 1, "f", None),
    ]
    assert lab.one("select count(*) from attempt") == 1
    assert lab.one("select count(*) from event where kind = 'released'") == 1


@pytest.mark.parametrize("language", LANGUAGES)
def test_t29_a_worker_whose_replies_are_lost_does_everything_once(lab: Lab, proxy: Proxy, language: str) -> None:
    count = sized(40, 1_000)
    policy = {"type": "fixed", "delayMs": 0}
    lab.acts(count, ("failFirst", "once"), options=EnqueueOptions(retry_policy=policy, max_attempts=5))
    texts = [f".{name}(" for name in ("claim_lanes", "complete", "fail", "heartbeat", "worker_start", "tick")]
    proxy.lose_replies(*texts)
    worker = lab.start(language, url=proxy.url, lease_ms=5_000, concurrency=4)
    lab.all_finished()
    lab.stop(worker)
    assert all(proxy.lost(f".{name}(") > 0 for name in ("claim_lanes", "complete", "fail"))
    assert lab.outcomes() == {"succeeded": count}
    starts = [(start.job, start.more["attempt"]) for start in lab.starts()]
    assert len(starts) == len(set(starts)) == 2 * count
    assert lab.rows("select distinct cause, attempt from attempt") == [("error", 1)]
    verdict(lab, count)
