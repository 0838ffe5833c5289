"""Spans to a collector, by OTLP over HTTP, as the standard variables of OpenTelemetry say.

Belongs here: handing spans to the library's own exporter. Does not belong here: any setting of
ours: place, headers, certificates and timeout are `OTEL_EXPORTER_OTLP_*`.

The library takes a quarter of a second to import, so it is imported where it is needed.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain, islice
from typing import TYPE_CHECKING

from pipeline_assets.tracing.exporter import ExportFailed
from pipeline_assets.tracing.otlp_json import SCOPE
from pipeline_assets.tracing.spans import Event, Span, Value

if TYPE_CHECKING:
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import Event as SdkEvent
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.trace import SpanContext

SPANS_A_REQUEST = 512
"""The library's own default for a batch; a request is some hundred kilobytes."""
_PROTOCOLS = (
    "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL",
    "OTEL_EXPORTER_OTLP_PROTOCOL",
)
_SPOKEN = "http/protobuf"


class Collector:
    """An exporter to whatever listens at the standard place."""

    name = "otlp"

    def __init__(self, resource: Mapping[str, Value]) -> None:
        self._resource = resource

    def export(self, traces: Iterable[list[Span]]) -> int:
        """Send the spans, some hundred a request, and stop at the first that is not taken.

        Raises:
            ExportFailed: a request was not taken, or the variables cannot be followed. What was
                sent before is sent again next time, with the same ids.
        """
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace.export import SpanExportResult

        _require_protocol()
        resource = Resource(self._resource)
        sent = 0
        with _quiet():
            try:
                exporter = OTLPSpanExporter()
            except (ValueError, OSError) as error:
                raise ExportFailed(
                    "the variables OTEL_EXPORTER_OTLP_* cannot be followed "
                    f"({type(error).__name__}); correct them"
                ) from error
            try:
                spans = chain.from_iterable(traces)
                while part := list(islice(spans, SPANS_A_REQUEST)):
                    taken = exporter.export([_readable(span, resource) for span in part])
                    if taken is not SpanExportResult.SUCCESS:
                        raise ExportFailed(
                            "the collector did not take the spans; look whether it runs where "
                            "OTEL_EXPORTER_OTLP_ENDPOINT points, and at its headers"
                        )
                    sent += len(part)
            finally:
                exporter.shutdown()
        return sent


def _require_protocol() -> None:
    wanted = next((os.environ[name] for name in _PROTOCOLS if os.environ.get(name)), _SPOKEN)
    if wanted != _SPOKEN:
        raise ExportFailed(
            f"OTEL_EXPORTER_OTLP_PROTOCOL asks for another protocol; only {_SPOKEN} is spoken here"
        )


@contextmanager
def _quiet() -> Iterator[None]:
    """Nothing of the library's own log, which quotes addresses, answers and headers it cannot read.

    Its modules log under many names; they meet in one, and there they stop.
    """
    library = logging.getLogger("opentelemetry")
    silent = logging.NullHandler()
    before = library.propagate
    library.addHandler(silent)
    library.propagate = False
    try:
        yield
    finally:
        library.propagate = before
        library.removeHandler(silent)


def _readable(span: Span, resource: Resource) -> ReadableSpan:
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope
    from opentelemetry.trace import SpanKind, Status, StatusCode

    status = Status() if span.error is None else Status(StatusCode.ERROR, span.error)
    return ReadableSpan(
        name=span.name,
        context=_context(span.trace_id, span.span_id),
        parent=None if span.parent_id is None else _context(span.trace_id, span.parent_id),
        resource=resource,
        attributes=dict(span.attributes),
        events=[_event(event) for event in span.events],
        kind=SpanKind.INTERNAL,
        status=status,
        start_time=span.start * 1000,
        end_time=span.end * 1000,
        instrumentation_scope=InstrumentationScope(SCOPE),
    )


def _context(trace_id: str, span_id: str) -> SpanContext:
    from opentelemetry.trace import SpanContext, TraceFlags

    return SpanContext(
        trace_id=int(trace_id, 16),
        span_id=int(span_id, 16),
        is_remote=False,
        trace_flags=TraceFlags(TraceFlags.SAMPLED),
    )


def _event(event: Event) -> SdkEvent:
    from opentelemetry.sdk.trace import Event as SdkEvent

    return SdkEvent(event.name, dict(event.attributes), event.at * 1000)
