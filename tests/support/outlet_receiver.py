"""A receiver of changes on loopback, as a business system would write one.

It keeps each effect once by its idempotency key and applies it to what it holds, ignoring what is
older than what it has. It can answer with any status, and it can take a change and then break the
connection, so that the sender never learns of it.
"""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = int | str
"""A status, or `drop`: take the change and break the connection; `lose`: break it before that."""


@dataclass
class Holder:
    """What a receiver holds, and every effect by its key.

    Attributes:
        requests: key, effect and document_id of every request that was read, in order.
        effects: each key's message, once, in order.
        held: document_id → archive version and title.
        newest: document_id → the newest archive version that was heard of.
    """

    requests: list[tuple[str, str, str]] = field(default_factory=list)
    effects: dict[str, dict[str, Any]] = field(default_factory=dict)
    held: dict[str, tuple[int, str | None]] = field(default_factory=dict)
    newest: dict[str, int] = field(default_factory=dict)

    def take(self, message: dict[str, Any]) -> None:
        """Apply a change unless its key is known; what is older than what is held is ignored."""
        key = message["idempotency_key"]
        if key in self.effects:
            assert self.effects[key] == message, "a repeated key carried another message"
            return
        self.effects[key] = message
        document, version = message["document_id"], message["archive_version"]
        if version < self.newest.get(document, 0):
            return
        self.newest[document] = version
        if message["effect"] == "remove":
            self.held.pop(document, None)
        else:
            self.held[document] = (version, message["fields"]["title"]["value"])


@dataclass
class OutletReceiver:
    """A running receiver.

    Attributes:
        url: where it listens.
        holder: what it holds.
        answer: what it does with each request: gets its number (from 1) and the message.
        headers: the headers of every request.
        bodies: the exact bytes of every request.
        retry_after: sent along with every status that is not of the 200s.
        before: called at the start of each request, so that a test can hold it.
        most_at_once: the most requests that were under way together.
    """

    url: str = ""
    holder: Holder = field(default_factory=Holder)
    answer: Callable[[int, dict[str, Any]], Answer] = lambda _number, _message: 204
    headers: list[dict[str, str]] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    retry_after: str | None = None
    before: Callable[[], None] = lambda: None
    most_at_once: int = 0


@contextmanager
def outlet_receiver() -> Iterator[OutletReceiver]:
    """A running receiver for the length of a block."""
    receiver = OutletReceiver()
    lock = threading.Lock()
    under_way = 0

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            nonlocal under_way
            with lock:
                under_way += 1
                receiver.most_at_once = max(receiver.most_at_once, under_way)
            try:
                receiver.before()
                self._handle()
            finally:
                with lock:
                    under_way -= 1

        def _handle(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            message = json.loads(body)
            with lock:
                receiver.headers.append(dict(self.headers))
                receiver.bodies.append(body)
                receiver.holder.requests.append(
                    (message["idempotency_key"], message["effect"], message["document_id"])
                )
                answer = receiver.answer(len(receiver.bodies), message)
                if answer == "drop" or (isinstance(answer, int) and 200 <= answer < 300):
                    receiver.holder.take(message)
            if isinstance(answer, str):
                self.connection.shutdown(socket.SHUT_RDWR)
                self.close_connection = True
                return
            self.send_response(answer)
            if 300 <= answer < 400:
                self.send_header("Location", "/elsewhere")
            if receiver.retry_after is not None and answer >= 300:
                self.send_header("Retry-After", receiver.retry_after)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    class Server(ThreadingHTTPServer):
        request_queue_size = 64

        def handle_error(self, request: object, client_address: object) -> None:
            """A connection that is broken off is part of some tests."""

    with Server(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        receiver.url = f"http://127.0.0.1:{server.server_address[1]}/changes"
        try:
            yield receiver
        finally:
            server.shutdown()
            thread.join()


def every_third_is_dropped(number: int, _message: dict[str, Any]) -> Answer:
    """Take every change and lose each third acknowledgement."""
    return "drop" if number % 3 == 0 else 204
