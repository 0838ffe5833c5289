"""`tallybook metrics --serve`: the text over HTTP, for a scraper.

Belongs here: the one address, its answers, and who may be listening. Does not belong here: the
text (`account/openmetrics.py`).

A scraper that is refused an answer must notice, so a read that fails is a 503 and never an old
text. Two scrapes at once read once: the second waits for the first and is given the same text.
"""

from __future__ import annotations

import ipaddress
import socket
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from socketserver import TCPServer, ThreadingMixIn
from typing import TYPE_CHECKING
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

PATH = "/metrics"
FRESH_SECONDS = 1.0
"""A text is given out again for so long: several scrapers cost no more than one."""
SLOWEST_CLIENT_SECONDS = 30
"""A client that sends or takes nothing for so long is left."""
_PLAIN = "text/plain; charset=utf-8"


class CannotListen(Exception):
    """The address that metrics were to be served at cannot be used."""

    def __init__(self, host: str, port: int, problem: str) -> None:
        super().__init__(
            f"metrics cannot be served at {host} port {port} ({problem}). Give another address "
            "with --host or --port, or end what listens there."
        )


@dataclass(frozen=True)
class Answer:
    """What a request is answered.

    Attributes:
        status: HTTP's, with its words.
        content_type: of the body.
        body: the text.
        headers: more headers.
    """

    status: str
    content_type: str
    body: bytes
    headers: tuple[tuple[str, str], ...] = ()


class Scrapes:
    """The text, read anew for each scrape but never twice at once.

    Args:
        read: reads it.
        content_type: what it is.
        failed: is told of a read that failed, once as long as it fails in the same way.
        monotonic: seconds that only grow.
    """

    def __init__(
        self,
        read: Callable[[], bytes],
        content_type: str,
        failed: Callable[[Exception], None],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._read, self._content_type, self._failed = read, content_type, failed
        self._monotonic = monotonic
        self._one_at_a_time = threading.Lock()
        self._text, self._read_at = b"", float("-inf")
        self._trouble: str | None = None

    def answer(self, method: str, path: str) -> Answer:
        """The answer to a request; nothing that goes wrong while reading is raised."""
        if path != PATH:
            return _plain("404 Not Found", f"there is only {PATH} here")
        if method not in ("GET", "HEAD"):
            allowed = (("Allow", "GET, HEAD"),)
            return _plain("405 Method Not Allowed", "expected GET or HEAD", allowed)
        try:
            return Answer("200 OK", self._content_type, self._fresh())
        except Exception as error:  # noqa: BLE001 - the scraper gets a status, the operator the why
            self._tell(error)
            return _plain(
                "503 Service Unavailable",
                "the figures cannot be read now; the server's standard error says why",
            )

    def _fresh(self) -> bytes:
        with self._one_at_a_time:
            if self._monotonic() - self._read_at >= FRESH_SECONDS:
                self._text = self._read()
                self._read_at, self._trouble = self._monotonic(), None
            return self._text

    def _tell(self, error: Exception) -> None:
        trouble = f"{type(error).__name__}: {error}"
        with self._one_at_a_time:
            is_news, self._trouble = trouble != self._trouble, trouble
        if is_news:
            self._failed(error)


class MetricsServer(ThreadingMixIn, WSGIServer):
    """Answers every request in a thread of its own until it is told to stop.

    Args:
        host: a name or address of this machine.
        port: 0 for any that is free.
        scrapes: what is answered.

    Raises:
        CannotListen: the address is taken, or not one of this machine.
    """

    daemon_threads = True

    def __init__(self, host: str, port: int, scrapes: Scrapes) -> None:
        try:
            family, _, _, _, address = socket.getaddrinfo(
                host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
            )[0]
            self.address_family = family
            super().__init__((str(address[0]), port), _Quiet)
        except (OSError, UnicodeError) as error:
            problem = error.strerror if isinstance(error, OSError) else None
            raise CannotListen(host, port, problem or "no address of this machine") from error
        self.set_app(_application(scrapes))

    @property
    def address(self) -> str:
        """The IP address that it listens at."""
        return str(self.server_address[0])

    @property
    def url(self) -> str:
        """Where the text is."""
        host = f"[{self.address}]" if ":" in self.address else self.address
        return f"http://{host}:{self.server_port}{PATH}"

    def server_bind(self) -> None:
        """Bind without asking a name server what this machine is called, which may take long."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]
        self.setup_environ()

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that goes away in the middle is no news."""


def who_can_read(address: str) -> str | None:
    """A warning for an address that others reach too; None for loopback."""
    found = ipaddress.ip_address(address)
    if found.is_loopback:
        return None
    at = "every address of this machine" if found.is_unspecified else address
    return (
        f"listening on {at}: whoever reaches this port over the network can read the figures, "
        "without a login and unencrypted. They hold no text of documents. Put a firewall or a "
        "proxy with a login in front, or leave --host out."
    )


class _Quiet(WSGIRequestHandler):
    timeout = SLOWEST_CLIENT_SECONDS

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: a line a scrape would fill the log."""


def _application(
    scrapes: Scrapes,
) -> Callable[[WSGIEnvironment, StartResponse], Iterable[bytes]]:
    def application(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        method = environ["REQUEST_METHOD"]
        answer = scrapes.answer(method, environ["PATH_INFO"])
        headers = [
            ("Content-Type", answer.content_type),
            ("Content-Length", str(len(answer.body))),
            ("Cache-Control", "no-store"),
            ("X-Content-Type-Options", "nosniff"),
            *answer.headers,
        ]
        start_response(answer.status, headers)
        return [] if method == "HEAD" else [answer.body]

    return application


def _plain(status: str, text: str, headers: tuple[tuple[str, str], ...] = ()) -> Answer:
    return Answer(status, _PLAIN, f"{text}\n".encode(), headers)
