"""A collector that decodes what it is sent, and an exporter that keeps or refuses spans."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from pipeline_assets.tracing.exporter import ExportFailed
from pipeline_assets.tracing.spans import Span


@dataclass
class CollectorServer:
    """What a collector was sent.

    Attributes:
        url: its base address.
        status: what it answers.
        requests: decoded, in order.
        headers: of each.
    """

    url: str
    status: int = 200
    requests: list[ExportTraceServiceRequest] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)

    def spans(self) -> list[Any]:
        """Every span that arrived."""
        return [
            span
            for request in self.requests
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]


@contextmanager
def collector_server() -> Iterator[CollectorServer]:
    """Serve a collector on loopback while the block runs."""
    found: CollectorServer

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.path == "/v1/traces" and found.status == 200:
                found.requests.append(ExportTraceServiceRequest.FromString(body))
                found.headers.append({name.lower(): value for name, value in self.headers.items()})
            self.send_response(found.status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *_: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found = CollectorServer(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@dataclass
class Kept:
    """An exporter that keeps what it is given, or fails after so many traces."""

    name: str = "kept"
    fail_after: int | None = None
    traces: list[list[Span]] = field(default_factory=list)

    def export(self, traces: Iterable[list[Span]]) -> int:
        """Keep them."""
        spans = 0
        for number, trace in enumerate(traces):
            if self.fail_after is not None and number >= self.fail_after:
                raise ExportFailed("the test says so")
            self.traces.append(trace)
            spans += len(trace)
        return spans

    def roots(self) -> list[tuple[str, str, int]]:
        """(document, why, episode) of each root."""
        found = []
        for trace in self.traces:
            for span in trace:
                if span.parent_id is None:
                    record = str(span.attributes["tallybook.record_id"])
                    document = record.partition("shop/")[2].partition("@")[0]
                    found.append(
                        (
                            document,
                            str(span.attributes["tallybook.chosen"]),
                            int(span.attributes["tallybook.episode"]),
                        )
                    )
        return sorted(found)
