"""Where spans can go: the shape of an exporter.

Belongs here: the protocol and the one error. Does not belong here: an exporter.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from pipeline_assets.tracing.spans import Span, Value


class ExportFailed(Exception):
    """Spans could not be handed over. The message is of closed wording: no address, no key."""


class Exporter(Protocol):
    """Takes the spans of many traces, all or none as far as its place allows."""

    name: str

    def export(self, traces: Iterable[list[Span]]) -> int:
        """Hand the spans of each trace over; how many spans there were.

        Raises:
            ExportFailed: not all of them arrived.
        """
        ...


def resource_of(version: str) -> dict[str, Value]:
    """What every span is of: this program, as the standard variables of OpenTelemetry name it.

    `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES` win over the name of the program.
    """
    from opentelemetry.sdk.resources import Resource

    found: Mapping[str, object] = Resource.create().attributes
    kept: dict[str, Value] = {
        name: value for name, value in found.items() if isinstance(value, str | int | bool)
    }
    if str(kept.get("service.name", "unknown_service")).startswith("unknown_service"):
        kept["service.name"] = "tallybook"
    return kept | {"service.version": version}
