"""The demo's provider: an HTTP service that is slow, then answers 503 for a while, then recovers.

Every accepted call is an effect under its Idempotency-Key; a key that comes again is answered like the first time and
not applied again, as a good destination does.
"""

from __future__ import annotations

import json
import random
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Provider:
    """Owns the server's thread, its phase and what it has seen."""

    def __init__(self, slow_s: float, outage_s: float) -> None:
        self.slow_s = slow_s
        self.outage_s = outage_s
        self.started: float | None = None
        self.effects: dict[str, int] = {}
        self.refused = 0
        self.lock = threading.Lock()
        provider = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                length = int(self.headers.get("Content-Length", "0"))
                self.rfile.read(length)
                status, answer = provider.answer(self.headers.get("Idempotency-Key", ""))
                body = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                """Quiet: the demo's own display tells what happens."""

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128

        self.server = Server(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}/sync"

    def start_clock(self) -> None:
        """The phases count from here."""
        self.started = time.monotonic()

    @property
    def phase(self) -> str:
        if self.started is None:
            return "slow"
        age = time.monotonic() - self.started
        if age < self.slow_s:
            return "slow"
        return "down" if age < self.slow_s + self.outage_s else "up"

    def answer(self, key: str) -> tuple[int, dict[str, object]]:
        phase = self.phase
        if phase == "down":
            with self.lock:
                self.refused += 1
            return 503, {"error": "service unavailable"}
        time.sleep(random.uniform(0.15, 0.4) if phase == "slow" else 0.01)
        with self.lock:
            self.effects[key] = self.effects.get(key, 0) + 1
        return 200, {"synced": True, "key": key}

    def stop(self) -> None:
        self.server.shutdown()
