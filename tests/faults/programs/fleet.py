"""A share of the work in Python: `fleet.py enqueue FROM TO` or `fleet.py work`."""

import os
import sys
import time

from drayhorse import EnqueueOptions, Queue, Worker, WorkerOptions

queue = Queue.connect(os.environ["FLEET_URL"], schema=os.environ["FLEET_SCHEMA"])
policy = {"type": "fixed", "delayMs": 200}

if sys.argv[1] == "enqueue":
    for number in range(int(sys.argv[2]), int(sys.argv[3])):
        queue.enqueue("fleet", {"number": number}, EnqueueOptions(max_attempts=50, retry_policy=policy))
else:
    worker = Worker(queue, WorkerOptions(concurrency=8, lease_ms=2_000, grace_ms=3_000, name="python"))

    @worker.handler("fleet")
    def work(payload: dict[str, int], _job: object) -> int:
        time.sleep(0.05)
        return payload["number"]

    worker.run()
queue.close()
