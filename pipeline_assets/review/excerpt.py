"""The part of a page that a reviewer has to read: lines around the evidence, marked.

Belongs here: cutting and marking, on offsets. Does not belong here: colours, and the text's
safety for a terminal (`plain_text.py`), which changes offsets and so comes last.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from pipeline_assets.review.desk import Mark

LINE_LENGTH = 160
"""Code points; text without line ends, as web pages have it, is cut into lines of this length."""
AROUND = 3
MOST_LINES = 60


@dataclass(frozen=True)
class Piece:
    """A stretch of a line; `field` is the one whose evidence it is, if it is any."""

    text: str
    field: str | None


Line = tuple[Piece, ...]


def excerpt(
    text: str, marks: Sequence[Mark], around: int = AROUND, most: int = MOST_LINES
) -> list[Line | None]:
    """The lines around the marks, or the first ones of a page without marks.

    Args:
        text: a page.
        marks: where evidence stands, sorted.
        around: so many lines before and after each mark.
        most: never more lines than that.

    Returns:
        Lines in order; None where some were left out.
    """
    places = list(_lines(text))
    near = {
        number
        for at, (start, end) in enumerate(places)
        if any(mark.start < max(end, start + 1) and mark.end > start for mark in marks)
        for number in range(max(0, at - around), min(len(places), at + around + 1))
    } or range(len(places))
    chosen = sorted(near)[:most]
    shown: list[Line | None] = []
    expected = 0
    for number in chosen:
        if number != expected:
            shown.append(None)
        shown.append(_marked(text, *places[number], marks))
        expected = number + 1
    if expected < len(places):
        shown.append(None)
    return shown


def _lines(text: str) -> Iterator[tuple[int, int]]:
    """Start and end of each line, in code points."""
    at = 0
    for line in text.split("\n"):
        for start in range(at, max(at + len(line), at + 1), LINE_LENGTH):
            yield start, min(start + LINE_LENGTH, at + len(line))
        at += len(line) + 1


def _marked(text: str, start: int, end: int, marks: Sequence[Mark]) -> Line:
    """A line cut where marks begin and end; of marks that overlap the first one counts."""
    inside = [mark for mark in marks if mark.start < end and mark.end > start]
    cuts = {start, end}
    for mark in inside:
        cuts |= {max(mark.start, start), min(mark.end, end)}
    ordered = sorted(cuts)
    return tuple(Piece(text[one:other], _field_at(inside, one)) for one, other in pairwise(ordered))


def _field_at(marks: Sequence[Mark], place: int) -> str | None:
    return next((mark.field for mark in marks if mark.start <= place < mark.end), None)
