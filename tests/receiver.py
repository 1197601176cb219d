"""An HTTP server for webhooks: keeps what it is sent, and answers when and as the test wants."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any


class HttpReceiver(HTTPServer):
    """A receiver on a port of its own.

    `got` has path, headers and body of each request; `status` is the answer to the next ones; `asked` is set by the
    first request, and no request is answered while `answers` is not set.
    """

    def __init__(self) -> None:
        self.got: list[tuple[str, dict[str, str], bytes]] = []
        self.status = 204
        self.asked, self.answers = threading.Event(), threading.Event()
        self.answers.set()
        super().__init__(('127.0.0.1', 0), self.Handler)

    @property
    def url(self) -> str:
        """Where it is told."""
        return f'http://127.0.0.1:{self.server_port}/told'

    def expect(self, count: int) -> list[dict[str, Any]]:
        """Wait until so many requests have come; what they say."""
        for _ in range(6000):
            if len(self.got) >= count:
                return [json.loads(body) for _, _, body in self.got]
            time.sleep(0.01)
        raise AssertionError(f'there were {len(self.got)} requests of {count}')

    class Handler(BaseHTTPRequestHandler):
        """Keeps each request."""

        server: HttpReceiver

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers['Content-Length']))
            self.server.asked.set()
            self.server.answers.wait(60)
            self.server.got.append((self.path, dict(self.headers), body))
            self.send_response(self.server.status)
            self.send_header('Location', 'http://127.0.0.1/elsewhere')
            self.end_headers()

        def log_message(self, *given: object) -> None:
            """Say nothing."""


@contextlib.contextmanager
def receiving() -> Iterator[HttpReceiver]:
    """A receiver that runs."""
    made = HttpReceiver()
    thread = threading.Thread(target=made.serve_forever, kwargs={'poll_interval': 0.01})
    thread.start()
    try:
        yield made
    finally:
        made.answers.set()
        made.shutdown()
        thread.join()
        made.server_close()
