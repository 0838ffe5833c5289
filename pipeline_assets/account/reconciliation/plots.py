"""The plots of a report as SVG that stands in a page: the same numbers give the same bytes.

Belongs here: drawing. Does not belong here: the numbers, and the tables that say the same beside
each plot (`page.py`).

Colours are names that the page's style fills in, so that a plot fits a dark page and a printed one.
"""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_BARS = 24
"""Bars of a plot; where there are more, the table beside it has the rest."""
_WIDTH = 4.0
"""Inches: small enough that letters stay readable on a phone."""
_BAR_INCHES = 0.36
# Matplotlib takes colours only; the page's style says what these stand for.
_TEXT, _FAINT = "#010101", "#020202"
_SERIES = ("#030303", "#040404", "#050505", "#060606", "#070707", "#080808")
_STYLED = {
    _TEXT: "currentColor",
    _FAINT: "var(--faint)",
    **{colour: f"var(--series-{number})" for number, colour in enumerate(_SERIES, 1)},
}
_RC: dict[str, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "tallybook",
    "font.family": ["sans-serif"],
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 8.5,
    "text.color": _TEXT,
    "text.parse_math": False,
    "hatch.linewidth": 0.6,
}
# Lines only: a hatch of dots is a drawing of a thousand circles.
_HATCHES = (None, "////", "xxxx", "----", "\\\\\\\\", "||||")


@dataclass(frozen=True)
class Bar:
    """A labelled bar of one or several parts; `note` stands at its end."""

    label: str
    parts: tuple[float, ...]
    note: str


@dataclass(frozen=True)
class Interval:
    """A labelled rate with its interval, all from 0 to 1."""

    label: str
    rate: float
    low: float
    high: float
    note: str


def bars(name: str, described: str, rows: Sequence[Bar], series: Sequence[str] = ()) -> str:
    """Horizontal bars under each other; empty where there is nothing to draw.

    Args:
        name: unique in the page; ids in the drawing begin with it.
        described: what a reader who cannot see it is told.
        rows: from top to bottom, at most `MOST_BARS` are drawn.
        series: what the parts are; needed where there are several.
    """
    shown = [row for row in rows[:MOST_BARS] if sum(row.parts) >= 0]
    longest = max((sum(row.parts) for row in shown), default=0)
    if not shown or not longest:
        return ""

    def draw(axes: Axes) -> None:
        for place, row in enumerate(shown):
            start = 0.0
            for number, part in enumerate(row.parts):
                if part:
                    axes.barh(
                        place + 0.2,
                        part,
                        0.36,
                        left=start,
                        color=_SERIES[number],
                        edgecolor=_FAINT,
                        linewidth=0.4,
                        hatch=_HATCHES[number],
                    )
                start += part
            axes.text(0, place - 0.08, row.label, ha="left", va="bottom")
            axes.text(longest, place - 0.08, row.note, ha="right", va="bottom", color=_TEXT)
        axes.set_xlim(0, longest * 1.002)
        if len(series) > 1:
            _legend(axes, series)

    return _figure(name, described, len(shown), draw, legend=-(-len(series) // 2))


def intervals(name: str, described: str, rows: Sequence[Interval]) -> str:
    """Rates with their intervals under each other, on a scale that begins at 0."""
    shown = rows[:MOST_BARS]
    if not shown:
        return ""
    end = max(0.05, *(row.high for row in shown))

    def draw(axes: Axes) -> None:
        for place, row in enumerate(shown):
            axes.plot([0, end], [place + 0.2] * 2, color=_FAINT, linewidth=0.5)
            axes.plot([row.low, row.high], [place + 0.2] * 2, color=_SERIES[0], linewidth=3)
            axes.plot([row.rate], [place + 0.2], "o", color=_TEXT, markersize=4.5)
            axes.text(0, place - 0.08, row.label, ha="left", va="bottom")
            axes.text(end, place - 0.08, row.note, ha="right", va="bottom")
        axes.set_xlim(-end * 0.01, end * 1.01)

    return _figure(name, described, len(shown), draw)


def _legend(axes: Axes, series: Sequence[str]) -> None:
    from matplotlib.patches import Patch

    axes.legend(
        handles=[
            Patch(facecolor=_SERIES[number], edgecolor=_FAINT, hatch=_HATCHES[number], label=label)
            for number, label in enumerate(series)
        ],
        loc="upper left",
        bbox_to_anchor=(0, -0.01),
        bbox_transform=axes.transAxes,
        ncols=2,
        frameon=False,
        borderaxespad=0.2,
        fontsize=8,
    )


def _figure(name: str, described: str, rows: int, draw: Any, *, legend: int = 0) -> str:
    import matplotlib as mpl
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    below = 0.02 + 0.19 * legend
    height = rows * _BAR_INCHES + 0.16 + below
    with mpl.rc_context(cast(Any, _RC)):
        figure = Figure(figsize=(_WIDTH, height))
        figure.patch.set_visible(False)
        canvas = FigureCanvasSVG(figure)
        axes = figure.add_axes((0.005, below / height, 0.99, 1 - (below + 0.02) / height))
        axes.set_axis_off()
        draw(axes)
        axes.set_ylim(rows - 0.45, -0.5)
        out = io.StringIO()
        no_dates = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        canvas.print_svg(out, metadata=no_dates)
    return _for_page(name, described, out.getvalue())


def _for_page(name: str, described: str, drawn: str) -> str:
    """The drawing as an element of a page: no header, ids of its own, the page's colours."""
    svg = drawn[drawn.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>\s*", "", svg, flags=re.DOTALL)
    # Its one rule is for every element of the page.
    svg = re.sub(r"<style.*?</style>\s*", "", svg, flags=re.DOTALL)
    svg = re.sub(r'\bid="([^"]+)"', rf'id="{name}-\1"', svg)
    svg = re.sub(r'href="#([^"]+)"', rf'href="#{name}-\1"', svg)
    svg = re.sub(r"url\(#([^)]+)\)", rf"url(#{name}-\1)", svg)
    for colour, styled in _STYLED.items():
        svg = svg.replace(colour, styled)
    head = re.match(r"<svg[^>]*>", svg)
    box = re.search(r'viewBox="([^"]+)"', svg)
    assert head is not None and box is not None  # noqa: S101 - that is how matplotlib writes them
    start = (
        f'<svg role="img" aria-label="{escape(described)}" viewBox="{box[1]}" '
        'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink">'
    )
    return start + svg[head.end() :].strip()
