"""The demo's provider: an HTTP service that is slow, then answers 503 for a while, then recovers.

Every accepted call is an effect under its Idempotency-Key; a key that comes again is answered like the first time and
not applied again, as a good destination does. One account is not registered at first: its calls are a 400. The first
call of the outage is told to come back in 12 s, later than the recovery.
"""

from __future__ import annotations

import json
import random
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

UNREGISTERED_ACCOUNT = 20
RETRY_AFTER_S = 12
# How long an answer takes. That of the outage comes late, as from a gateway that gives up.
SLOW_S, DOWN_S, UP_S = (0.15, 0.4), (0.3, 0.5), (0.15, 0.25)

Answer = tuple[int, dict[str, str], dict[str, object]]


class Provider:
    """Owns the server's thread, its phase and what it has seen."""

    def __init__(self, slow_s: float, outage_s: float) -> None:
        self.slow_s = slow_s
        self.outage_s = outage_s
        self.started: float | None = None
        self.unregistered = {UNREGISTERED_ACCOUNT}
        self.effects: dict[str, int] = {}
        self.refused = 0
        self.lock = threading.Lock()
        provider = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                length = int(self.headers.get("Content-Length", "0"))
                account = json.loads(self.rfile.read(length))["accountId"]
                status, headers, answer = provider.answer(account, self.headers.get("Idempotency-Key", ""))
                body = json.dumps(answer).encode()
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                """Quiet: the demo's own display tells what happens."""

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128

            def handle_error(self, request: object, client_address: object) -> None:
                """A caller that was killed in the middle of its call: the demo does that on purpose."""

        self.server = Server(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}/sync"

    def start_clock(self) -> None:
        """The phases count from here."""
        self.started = time.monotonic()

    def register(self, account: int) -> None:
        """From now on the account's calls are accepted."""
        self.unregistered.discard(account)

    @property
    def phase(self) -> str:
        if self.started is None:
            return "slow"
        age = time.monotonic() - self.started
        if age < self.slow_s:
            return "slow"
        return "down" if age < self.slow_s + self.outage_s else "up"

    def answer(self, account: int, key: str) -> Answer:
        """Status, headers and body for one call."""
        phase = self.phase
        if phase == "down":
            with self.lock:
                self.refused += 1
                first = self.refused == 1
            time.sleep(random.uniform(*DOWN_S))
            return 503, {"Retry-After": str(RETRY_AFTER_S)} if first else {}, {"error": "service unavailable"}
        time.sleep(random.uniform(*(SLOW_S if phase == "slow" else UP_S)))
        if account in self.unregistered:
            return 400, {}, {"error": f"account {account} is not registered"}
        with self.lock:
            self.effects[key] = self.effects.get(key, 0) + 1
        return 200, {}, {"synced": True, "key": key}

    def stop(self) -> None:
        self.server.shutdown()
