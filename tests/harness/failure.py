"""The one error of the harness: a sentence for the person who ran `make`, printed without a traceback."""

from __future__ import annotations


class HarnessError(Exception):
    """Something the harness needs is missing or did not work; the message says what to do."""
