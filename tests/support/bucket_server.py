"""A server on loopback that speaks the S3 and SQS APIs, and one that fails on purpose.

Belongs here: starting and stopping them, and clients for filling them. Does not belong here: what
a test expects of a source.
"""

from __future__ import annotations

import itertools
import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

REGION = "us-east-1"
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "test-key", "AWS_SECRET_ACCESS_KEY": "test-secret"}
_numbers = itertools.count()


@dataclass
class BucketServer:
    """The server and its address."""

    endpoint: str
    _made: dict[str, Any] = field(default_factory=dict)

    def client(self, service: str = "s3") -> Any:
        """Return a client that may do everything."""
        if service not in self._made:
            self._made[service] = self._new_client(service)
        return self._made[service]

    def _new_client(self, service: str) -> Any:
        from boto3.session import Session
        from botocore.config import Config

        return Session().client(
            service,
            endpoint_url=self.endpoint,
            region_name=REGION,
            aws_access_key_id=CREDENTIALS["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=CREDENTIALS["AWS_SECRET_ACCESS_KEY"],
            config=Config(s3={"addressing_style": "path"}, retries={"total_max_attempts": 1}),
        )

    def new_bucket(self) -> str:
        """Make an empty bucket and return its name."""
        name = f"bucket-{next(_numbers)}"
        self.client().create_bucket(Bucket=name)
        return name

    def new_queue(self, hidden_seconds: int = 30) -> str:
        """Make an empty queue and return its address.

        A message that was received is delivered again after `hidden_seconds`.
        """
        made = self.client("sqs").create_queue(
            QueueName=f"queue-{next(_numbers)}",
            Attributes={"VisibilityTimeout": str(hidden_seconds)},
        )
        return made["QueueUrl"]


@contextmanager
def running_bucket_server() -> Iterator[BucketServer]:
    """A server in a thread of this process."""
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        yield BucketServer(f"http://{host}:{port}")
    finally:
        server.stop()


@pytest.fixture(scope="module")
def bucket_server() -> Iterator[BucketServer]:
    """Return a running server, one a module."""
    with running_bucket_server() as server:
        yield server


@pytest.fixture
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put the server's credentials into the environment."""
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)


@dataclass(frozen=True)
class Answer:
    """What the failing server says.

    `cut`: the connection ends after so many bytes of the body, whatever was promised.
    """

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    cut: int | None = None


@contextmanager
def scripted_server(
    answer: Callable[[str, int], Answer], heard: Callable[[str], object] = lambda signature: None
) -> Iterator[str]:
    """A server whose answers a function gives: from the request's path and its number.

    `heard` is told how each request was signed.
    """
    numbers = itertools.count()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            heard(self.headers.get("Authorization", ""))
            said = answer(self.path, next(numbers))
            self.send_response(said.status)
            for name, value in said.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(said.body)))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(said.body[: said.cut])
            if said.cut is not None:
                self.close_connection = True

        do_HEAD = do_GET

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
