"""Drayhorse: a job queue in PostgreSQL, from Python.

`Queue` (or `AsyncQueue`) enqueues and looks, `Worker` runs handlers.
"""

from ._async_groups import AsyncRun
from ._async_queue import AsyncQueue
from ._decision import ErrorDecision, JobCancelled, NonRetryableError, RetryableError
from ._groups import Run
from ._http import HttpDecision, decision_from_response, http_decision
from ._job import AsyncJob, Job
from ._queue import Queue
from ._worker import Worker
from .contracts import *  # noqa: F403
from .contracts import __all__ as _contracts
from .errors import *  # noqa: F403
from .errors import __all__ as _errors
from .gates import *  # noqa: F403
from .gates import __all__ as _gates
from .options import *  # noqa: F403
from .options import __all__ as _options
from .results import *  # noqa: F403
from .results import __all__ as _results
from .snapshots import *  # noqa: F403
from .snapshots import __all__ as _snapshots

__all__ = [
    "AsyncJob",
    "AsyncQueue",
    "AsyncRun",
    "ErrorDecision",
    "HttpDecision",
    "Job",
    "JobCancelled",
    "NonRetryableError",
    "Queue",
    "RetryableError",
    "Run",
    "Worker",
    "decision_from_response",
    "http_decision",
    *_contracts,
    *_errors,
    *_gates,
    *_options,
    *_results,
    *_snapshots,
]
