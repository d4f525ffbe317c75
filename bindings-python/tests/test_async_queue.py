"""`AsyncQueue`: the same verbs, awaited, side by side and cancelled."""

from __future__ import annotations

import asyncio
import inspect

import pytest
from helpers import serving

from drayhorse import (
    AsyncQueue,
    AsyncRun,
    ClosedError,
    NewJob,
    Queue,
    Run,
    WaitTimeoutError,
    Worker,
    WorkerOptions,
    _async_groups,
    _groups,
)


@pytest.mark.parametrize(
    ("plain", "awaited"),
    [
        (Queue, AsyncQueue),
        (Run, AsyncRun),
        *(
            (getattr(_groups, name), getattr(_async_groups, f"Async{name}"))
            for name in ("Endpoints", "Queues", "Workers")
        ),
    ],
)
def test_both_have_the_same_verbs(plain: type, awaited: type) -> None:
    def verbs(kind: type) -> dict[str, str]:
        public = {name: fn for name, fn in vars(kind).items() if callable(fn) and name[0] != "_"}
        return {name: str(inspect.signature(fn)).replace("Async", "") for name, fn in public.items()}

    assert verbs(plain) == verbs(awaited)
    assert all(inspect.iscoroutinefunction(vars(awaited)[name]) for name in verbs(awaited))


def test_calls_side_by_side(url: str, schema: str) -> None:
    async def main() -> None:
        async with await AsyncQueue.connect(url, schema=schema) as queue:
            await queue.migrate()
            made = await asyncio.gather(*(queue.enqueue("t", n) for n in range(50)))
            assert len(set(made)) == 50
            found = await asyncio.gather(*(queue.get(id) for id in made))
            assert [job.payload for job in found if job] == list(range(50))
            with pytest.raises(WaitTimeoutError):
                await queue.wait(made[0], 50)
            assert await queue.workers.list() == []
        with pytest.raises(ClosedError):
            await queue.counts()

    asyncio.run(main())


def test_cancelled_calls_leave_the_queue_usable(url: str, schema: str) -> None:
    async def main() -> None:
        async with await AsyncQueue.connect(url, schema=schema, pool_size=1) as queue:
            await queue.migrate()
            made = await queue.enqueue("t")
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(queue.wait(made, 1_000), 0.05)
            calls = [asyncio.ensure_future(queue.enqueue("t", n)) for n in range(50)]
            await asyncio.sleep(0)
            for call in calls[10:]:
                call.cancel()
            ends = await asyncio.gather(*calls, return_exceptions=True)
            assert all(isinstance(end, asyncio.CancelledError) for end in ends[10:])
            assert len({str(end) for end in ends[:10]}) == 10
            counts = await queue.counts()
            assert 11 <= counts.ready <= 51

    asyncio.run(main())


def test_one_queue_in_two_loops(url: str, schema: str) -> None:
    async def first() -> AsyncQueue:
        queue = await AsyncQueue.connect(url, schema=schema)
        await queue.migrate()
        return queue

    async def second(queue: AsyncQueue) -> int:
        await queue.enqueue_many([NewJob("t"), NewJob("t")])
        counts = await queue.counts()
        await queue.close()
        return counts.ready

    queue = asyncio.run(first())
    assert asyncio.run(second(queue)) == 2


def test_a_worker_of_an_async_queue(url: str, schema: str) -> None:
    async def main() -> None:
        async with await AsyncQueue.connect(url, schema=schema) as queue:
            await queue.migrate()
            worker = Worker(queue, WorkerOptions(concurrency=2))
            worker.handle("double", lambda payload, job: payload * 2)
            with serving(worker):
                made = await queue.enqueue("double", 21)
                outcome = await queue.wait(made, 30_000)
            assert outcome.result == 42

    asyncio.run(main())
