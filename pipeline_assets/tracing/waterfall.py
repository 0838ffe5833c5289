"""A trace as a waterfall: one line a span, its bar under the time that it took.

Belongs here: where the bars are, how times are said, and how a trace is laid out in a width. Does
not belong here: colours and printing (`cli/trace.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pipeline_assets.tracing.spans import ATTEMPT, ROOT, Span

NARROWEST = 60
_NAME_WIDTH, _TIME_WIDTH = 22, 9
_FULL, _HALF, _REST = "█", "▌", "·"
_PREFIX = "tallybook."
_TOLD = {
    ROOT: ("state",),
    ATTEMPT: (
        "attempt.ordinal",
        "attempt.path",
        "attempt.disposition",
        "attempt.failure_class",
        "batch",
    ),
    "review": ("review.decision",),
}


@dataclass(frozen=True)
class Line:
    """One span on a line of fixed width.

    Attributes:
        name: indented by its depth.
        bar: as wide as the time allows.
        took: how long it took, such as `1 h 2 min`.
        detail: categories and ids; may be cut by whoever prints it.
        error: the category of what went wrong.
    """

    name: str
    bar: str
    took: str
    detail: str
    error: str | None


def waterfall(spans: Sequence[Span], width: int) -> list[Line]:
    """The lines of a trace, in the order of its spans.

    Args:
        spans: of one trace, each after its parent.
        width: cells of a line; bars take what names and times leave, without the details.
    """
    if not spans:
        return []
    start = min(span.start for span in spans)
    whole = max(span.end for span in spans) - start
    cells = max(10, max(width, NARROWEST) - _NAME_WIDTH - _TIME_WIDTH - 4)
    depths = _depths(spans)
    return [
        Line(
            name=f"{'  ' * depths[span.span_id]}{span.name}"[:_NAME_WIDTH].ljust(_NAME_WIDTH),
            bar=_bar(span.start - start, span.end - start, whole, cells),
            took=said(span.end - span.start).rjust(_TIME_WIDTH),
            detail=_detail(span),
            error=span.error,
        )
        for span in spans
    ]


def said(microseconds: int) -> str:
    """A duration in its two largest units: `340 ms`, `1.5 s`, `12 min 3 s`, `2 d 4 h`."""
    if microseconds < 1_000_000:
        return f"{microseconds // 1000} ms"
    seconds = microseconds // 1_000_000
    if seconds < 60:
        return f"{microseconds // 100_000 / 10:.1f} s"
    parts = (("d", seconds // 86400), ("h", seconds // 3600 % 24), ("min", seconds // 60 % 60))
    named = [(count, unit) for unit, count in (*parts, ("s", seconds % 60))]
    first = next(index for index, (count, _) in enumerate(named) if count)
    return " ".join(f"{count} {unit}" for count, unit in named[first : first + 2] if count)


def _depths(spans: Sequence[Span]) -> dict[str, int]:
    depths: dict[str, int] = {}
    for span in spans:
        depths[span.span_id] = 0 if span.parent_id is None else depths.get(span.parent_id, 0) + 1
    return depths


def _bar(start: int, end: int, whole: int, cells: int) -> str:
    """At least half a cell, so that what took no time is seen where it was."""
    if whole == 0:
        return _HALF + _REST * (cells - 1)
    first = min(cells - 1, start * cells // whole)
    full = min(cells, -(-end * cells // whole)) - first
    bar = _FULL * full if end > start else _HALF
    return (_REST * first + bar).ljust(cells, _REST)


def _detail(span: Span) -> str:
    told = [
        str(span.attributes[_PREFIX + name])
        for name in _TOLD.get(span.name, ())
        if _PREFIX + name in span.attributes
    ]
    if span.name == ATTEMPT and told:
        return f"{told[0]}: {', '.join(told[1:])}"
    return ", ".join(told)
