"""Spans in the JSON form of the OpenTelemetry protocol (OTLP), one trace a line.

Belongs here: writing and reading that form. Does not belong here: files (`trace_file.py`).

As the protocol has it: ids in hexadecimal, 64-bit numbers as decimal text, times in nanoseconds
since 1970 (opentelemetry.io/docs/specs/otlp, "JSON Protobuf Encoding").
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from pipeline_assets.tracing.spans import Event, Span, Value

SCOPE = "tallybook"
_INTERNAL, _ERROR = 1, 2


class LineUnreadable(ValueError):
    """A line that this program did not write."""

    def __init__(self) -> None:
        super().__init__("found a line that is no trace in the JSON form of OTLP")


def encode_line(spans: Sequence[Span], resource: Mapping[str, Value]) -> bytes:
    """The spans as one object, no newline."""
    return msgspec.json.encode(
        {
            "resourceSpans": [
                {
                    "resource": {"attributes": _attributes(resource)},
                    "scopeSpans": [
                        {"scope": {"name": SCOPE}, "spans": [_encoded(span) for span in spans]}
                    ],
                }
            ]
        }
    )


def decode_line(line: bytes) -> list[Span]:
    """The spans of a line.

    Raises:
        LineUnreadable: it is no such line.
    """
    try:
        content = msgspec.json.decode(line)
        return [
            _decoded(span)
            for resource in content["resourceSpans"]
            for scope in resource["scopeSpans"]
            for span in scope["spans"]
        ]
    except (msgspec.DecodeError, AttributeError, KeyError, TypeError, ValueError) as error:
        raise LineUnreadable from error


def _encoded(span: Span) -> dict[str, Any]:
    encoded: dict[str, Any] = {
        "traceId": span.trace_id,
        "spanId": span.span_id,
        "name": span.name,
        "kind": _INTERNAL,
        "startTimeUnixNano": _nanoseconds(span.start),
        "endTimeUnixNano": _nanoseconds(span.end),
        "attributes": _attributes(span.attributes),
    }
    if span.parent_id is not None:
        encoded["parentSpanId"] = span.parent_id
    if span.error is not None:
        encoded["status"] = {"code": _ERROR, "message": span.error}
    if span.events:
        encoded["events"] = [
            {
                "name": event.name,
                "timeUnixNano": _nanoseconds(event.at),
                "attributes": _attributes(event.attributes),
            }
            for event in span.events
        ]
    return encoded


def _attributes(values: Mapping[str, Value]) -> list[dict[str, Any]]:
    return [{"key": name, "value": _value(value)} for name, value in values.items()]


def _value(value: Value) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    return {"stringValue": value}


def _nanoseconds(microseconds: int) -> str:
    return str(microseconds * 1000)


def _decoded(span: Mapping[str, Any]) -> Span:
    return Span(
        trace_id=span["traceId"],
        span_id=span["spanId"],
        parent_id=span.get("parentSpanId"),
        name=span["name"],
        start=_microseconds(span["startTimeUnixNano"]),
        end=_microseconds(span["endTimeUnixNano"]),
        attributes=_values(span["attributes"]),
        error=span.get("status", {}).get("message"),
        events=tuple(
            Event(event["name"], _microseconds(event["timeUnixNano"]), _values(event["attributes"]))
            for event in span.get("events", [])
        ),
    )


def _values(attributes: Iterable[Mapping[str, Any]]) -> dict[str, Value]:
    found: dict[str, Value] = {}
    for attribute in attributes:
        ((kind, value),) = attribute["value"].items()
        found[attribute["key"]] = int(value) if kind == "intValue" else value
    return found


def _microseconds(nanoseconds: str) -> int:
    return int(nanoseconds) // 1000
