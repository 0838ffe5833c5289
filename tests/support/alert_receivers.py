"""Receivers of alerts on loopback: a webhook and a mail server that keep what they are sent."""

from __future__ import annotations

import base64
import json
import socketserver
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


@dataclass
class Posted:
    """One request that a webhook got."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def alerts(self) -> list[dict[str, Any]]:
        return json.loads(self.body)["alerts"]


@dataclass
class WebhookReceiver:
    """What it got, and how it answers.

    `answer` gives the status of each request; `before` is called first, so that a test can hold it.
    """

    url: str = ""
    requests: list[Posted] = field(default_factory=list)
    answer: Callable[[], int] = lambda: 204
    before: Callable[[], None] = lambda: None
    answer_body: bytes = b"the answer's body is nobody's business"
    location: str = "/elsewhere"

    @property
    def told(self) -> list[tuple[str, str, str]]:
        """Kind, subject and news of every alert in every request."""
        return [
            (alert["kind"], alert["subject"], alert["news"])
            for request in self.requests
            for alert in request.alerts
        ]


@contextmanager
def webhook_receiver() -> Iterator[WebhookReceiver]:
    """A running webhook for the length of a block."""
    receiver = WebhookReceiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            receiver.before()
            receiver.requests.append(Posted(self.path, dict(self.headers), body))
            status = receiver.answer()
            self.send_response(status)
            if 300 <= status < 400:
                self.send_header("Location", receiver.location)
            content = b"" if status == 204 else receiver.answer_body
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    class Server(ThreadingHTTPServer):
        def handle_error(self, request: object, client_address: object) -> None:
            """A client that goes away is part of some tests."""

    with Server(("127.0.0.1", 0), Handler) as server, _serving(server):
        receiver.url = f"http://127.0.0.1:{server.server_address[1]}/hook"
        yield receiver


@dataclass
class MailReceiver:
    """What it got, and how it answers.

    Attributes:
        port: where it listens.
        mails: sender, recipients and message of each mail.
        logins: user and password of each login.
        commands: the verbs of every conversation, with `encrypted ` before those under TLS.
        refused: recipients that it does not know.
        data_answer: what it says to the mail itself.
        login_answer: what it says to a login.
    """

    port: int = 0
    mails: list[tuple[str, list[str], EmailMessage]] = field(default_factory=list)
    logins: list[tuple[str, str]] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)
    refused: set[str] = field(default_factory=set)
    data_answer: str = "250 taken"
    login_answer: str = "235 welcome"


class _Conversation(socketserver.StreamRequestHandler):
    """As much of RFC 5321 as `smtplib` speaks."""

    receiver: MailReceiver
    tls: ssl.SSLContext | None = None
    tls_at_once = False

    def setup(self) -> None:
        self.encrypted = False
        super().setup()
        if self.tls_at_once:
            self._encrypt()
        self.sender, self.recipients = "", list[str]()

    def handle(self) -> None:
        self._say("220 receiver")
        while line := self.rfile.readline():
            verb, _, rest = line.decode().strip().partition(" ")
            verb = verb.upper()
            self.receiver.commands.append(("encrypted " if self.encrypted else "") + verb)
            if verb == "QUIT":
                self._say("221 bye")
                return
            getattr(self, f"_{verb.lower()}", self._unknown)(rest)

    def finish(self) -> None:
        super().finish()
        self.request.close()

    def _say(self, *lines: str) -> None:
        self.wfile.write("".join(f"{line}\r\n" for line in lines).encode())
        self.wfile.flush()

    def _unknown(self, rest: str) -> None:
        self._say("502 unknown")

    def _ehlo(self, rest: str) -> None:
        offers = ["250-receiver", "250-AUTH PLAIN"]
        if self.tls is not None and not self.encrypted:
            offers.append("250-STARTTLS")
        self._say(*offers, "250 8BITMIME")

    def _starttls(self, rest: str) -> None:
        if self.tls is None:
            self._unknown(rest)
            return
        self._say("220 go on")
        self._encrypt()

    def _auth(self, rest: str) -> None:
        _, user, password = base64.b64decode(rest.split()[1]).decode().split("\0")
        self.receiver.logins.append((user, password))
        self._say(self.receiver.login_answer)

    def _mail(self, rest: str) -> None:
        self.sender, self.recipients = _address(rest), []
        self._say("250 fine")

    def _rcpt(self, rest: str) -> None:
        address = _address(rest)
        if address in self.receiver.refused:
            self._say("550 no such mailbox")
            return
        self.recipients.append(address)
        self._say("250 fine")

    def _rset(self, rest: str) -> None:
        self._say("250 fine")

    def _data(self, rest: str) -> None:
        self._say("354 go on")
        lines = []
        while (line := self.rfile.readline()) != b".\r\n":
            lines.append(line.removeprefix(b"."))
        if self.receiver.data_answer.startswith("2"):
            mail = message_from_bytes(b"".join(lines), policy=policy.default)
            assert isinstance(mail, EmailMessage)
            self.receiver.mails.append((self.sender, self.recipients, mail))
        self._say(self.receiver.data_answer)

    def _encrypt(self) -> None:
        assert self.tls is not None
        self.request = self.tls.wrap_socket(self.request, server_side=True)
        self.rfile = self.request.makefile("rb")
        self.wfile = self.request.makefile("wb")
        self.encrypted = True


@contextmanager
def mail_receiver(
    tls: ssl.SSLContext | None = None, *, tls_at_once: bool = False
) -> Iterator[MailReceiver]:
    """A running mail server for the length of a block; with `tls` it offers STARTTLS."""
    receiver = MailReceiver()
    handler = type(
        "Handler",
        (_Conversation,),
        {"receiver": receiver, "tls": tls, "tls_at_once": tls_at_once},
    )

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True

        def handle_error(self, request: Any, client_address: object) -> None:
            """A client that goes away is part of some tests."""
            request.close()

    with Server(("127.0.0.1", 0), handler) as server, _serving(server):
        receiver.port = server.server_address[1]
        yield receiver


def self_signed(folder: Path) -> tuple[ssl.SSLContext, Path]:
    """A server's TLS for 127.0.0.1, and the file of the certificate to trust."""
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
            *("-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"),
            *("-keyout", str(key), "-out", str(certificate)),
        ],
        check=True,
        capture_output=True,
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context, certificate


def _address(rest: str) -> str:
    return rest.split("<", 1)[1].split(">", 1)[0]


@contextmanager
def _serving(server: socketserver.BaseServer) -> Iterator[None]:
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
