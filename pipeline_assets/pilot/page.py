"""A pilot's report as one page of HTML: self-contained, readable on a phone and in print.

Belongs here: the template's figures as text. Does not belong here: any counting (`report.py`).
The page loads nothing and runs nothing; whatever stands in it is escaped.
"""

from __future__ import annotations

from pathlib import Path

from pipeline_assets.pilot.projection import Range
from pipeline_assets.pilot.report import PilotReport

TEMPLATE = "page.html.jinja"
UNKNOWN = "not known"


def page_of(report: PilotReport, made_at: str) -> str:
    """The page.

    Args:
        report: the report.
        made_at: when it was put together, as it is shown.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        share=share, number=number, size=size, usd=usd, hours=hours, seconds=seconds, rate=rate
    )
    return environment.get_template(TEMPLATE).render(report=report, made_at=made_at)


def share(found: Range | None) -> str:
    """`76.0 % (64.1 to 85.2 %)`."""
    if found is None:
        return UNKNOWN
    if found.low == found.high:
        return f"{found.value:.1%}"
    return f"{found.value:.1%} ({found.low * 100:.1f} to {found.high:.1%})"


def number(found: Range | None) -> str:
    """`1,234 (1,100 to 1,400)`."""
    if found is None:
        return UNKNOWN
    if round(found.low) == round(found.high):
        return f"{found.value:,.0f}"
    return f"{found.value:,.0f} ({found.low:,.0f} to {found.high:,.0f})"


def hours(found: Range | None) -> str:
    """`1.2 h (1.0 to 1.4 h)`; short times in seconds."""
    if found is None:
        return UNKNOWN
    unit, factor, digits = ("s", 3600.0, 1) if found.high < 0.1 else ("h", 1.0, 2)
    value, low, high = (
        f"{part * factor:,.{digits}f}" for part in (found.value, found.low, found.high)
    )
    return f"{value} {unit}" if low == high else f"{value} {unit} ({low} to {high} {unit})"


def usd(found: object) -> str:
    """`$0.0123`, or a range of it."""
    if found is None:
        return UNKNOWN
    if isinstance(found, Range):
        if found.low == found.high:
            return _dollars(found.value)
        return f"{_dollars(found.value)} ({_dollars(found.low)} to {_dollars(found.high)})"
    return _dollars(float(str(found)))


def _dollars(amount: float) -> str:
    return f"${amount:,.2f}" if amount >= 100 or amount == 0 else f"${amount:,.6g}"


def size(found: object) -> str:
    """`12.3 MiB`, or a range of it."""
    if found is None:
        return UNKNOWN
    if isinstance(found, Range):
        if round(found.low) == round(found.high):
            return _bytes(found.value)
        return f"{_bytes(found.value)} ({_bytes(found.low)} to {_bytes(found.high)})"
    return _bytes(float(str(found)))


def _bytes(count: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"


def seconds(found: float | None) -> str:
    """`12.3 s`."""
    return UNKNOWN if found is None else f"{found:,.2f} s"


def rate(found: float | None) -> str:
    """`1,234`."""
    return UNKNOWN if found is None else f"{found:,.0f}"
