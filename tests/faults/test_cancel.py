"""T38: a canceled job has no second attempt, whatever its handler does with the news."""

from __future__ import annotations

from drayhorse import EnqueueOptions

from .evidence import verdict
from .lab import LANGUAGES, Lab
from .sizes import until


def test_t38_a_canceled_job_has_no_second_attempt(lab: Lab) -> None:
    soon = {"type": "fixed", "delayMs": 0}
    later = {"type": "fixed", "delayMs": 3_600_000}
    waiting, told, deaf = {}, {}, {}
    workers = []
    for name in LANGUAGES:
        waiting[name] = lab.act(("fail", "once"), options=EnqueueOptions(queue=name, retry_policy=later))
        told[name] = lab.act(("sleep", 600_000), options=EnqueueOptions(queue=name, retry_policy=soon))
        # It does not listen, and throws when it is done.
        deaf[name] = lab.act(("wait",), ("fail", "late"), options=EnqueueOptions(queue=name, retry_policy=soon))
        workers.append(lab.start(name, queues=name))
    until(lambda: len(lab.starts()) == 9, lab.situation)
    until(lambda: lab.one("select count(*) from runtime where state = 's'") == 3, lab.situation)
    for name in LANGUAGES:
        assert lab.queue.cancel(waiting[name]) == "canceled"
        assert lab.queue.cancel(told[name]) == "cancel_requested"
        assert lab.queue.cancel(deaf[name]) == "cancel_requested"
    until(lambda: len(lab.records("told")) == 3, lab.situation)
    lab.go()
    lab.all_finished()
    assert lab.outcomes() == {"canceled": 9}
    for name in LANGUAGES:
        assert [record.more["reason"] for record in lab.records("told", job=told[name])] == ["cancel"], name
    assert len(lab.starts()) == 9
    assert lab.rows("select distinct attempt from outcome") == [(1,)]
    verdict(lab, 9)
    lab.stop(*workers)
