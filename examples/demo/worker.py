"""The demo's Python worker: calls the provider for each job."""

import json
import os
import urllib.request

from drayhorse import Job, Queue, Worker, WorkerOptions

queue = Queue.connect(os.environ["DRAYHORSE_URL"])
worker = Worker(queue, WorkerOptions(concurrency=8, lease_ms=3_000, name="python"))


@worker.handler("provider.sync")
def sync(payload: dict[str, int], job: Job) -> object:
    request = urllib.request.Request(
        os.environ["PROVIDER_URL"],
        data=json.dumps(payload).encode(),
        headers={"Content-Type": "application/json", "Idempotency-Key": job.idempotency_key},
    )
    with urllib.request.urlopen(request, timeout=10) as response:  # an HTTP error raises, and fails the attempt
        return json.load(response)


worker.run()
queue.close()
