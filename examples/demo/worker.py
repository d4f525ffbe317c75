"""The demo's Python worker: calls the provider for each job."""

import json
import os
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from drayhorse import Job, NonRetryableError, Queue, RetryableError, Worker, WorkerOptions, decision_from_response

queue = Queue.connect(os.environ["DRAYHORSE_URL"])
worker = Worker(queue, WorkerOptions(concurrency=8, lease_ms=3_000, name="python"))


@worker.handler("provider.sync")
def sync(payload: dict[str, int], job: Job) -> object:
    request = Request(
        os.environ["PROVIDER_URL"],
        data=json.dumps(payload).encode(),
        headers={"Content-Type": "application/json", "Idempotency-Key": job.idempotency_key},
    )
    try:
        with urlopen(request, timeout=10) as response:
            return json.load(response)
    except HTTPError as answer:
        decision = decision_from_response(answer)
        message = f"the provider answered {answer.status}"
        if decision.retryable:
            raise RetryableError(message, decision.retry_after_ms) from answer
        raise NonRetryableError(message, decision.uncertain) from answer


worker.run()
queue.close()
