"""Enqueues a share of the demo's jobs from Python: enqueue.py FROM TO."""

import os
import sys

from drayhorse import EnqueueOptions, Queue

POLICIES = [
    {"type": "fixed", "delayMs": 900},
    {"type": "exponential", "initialDelayMs": 300, "multiplier": 2, "maxDelayMs": 3_000},
    {"type": "decorrelated-jitter", "baseDelayMs": 300, "maxDelayMs": 3_000},
]


def main() -> None:
    first, last = int(sys.argv[1]), int(sys.argv[2])
    with Queue.connect(os.environ["DRAYHORSE_URL"]) as queue:
        for account_id in range(first, last):
            queue.enqueue(
                "provider.sync",
                {"accountId": account_id},
                EnqueueOptions(
                    endpoint="provider",
                    max_attempts=20,
                    retry_policy=POLICIES[account_id % 3],
                    tags=["from:python"],
                ),
            )


if __name__ == "__main__":
    main()
