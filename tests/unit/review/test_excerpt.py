"""The lines of a page that a reviewer is shown."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_assets.review.desk import Mark
from pipeline_assets.review.excerpt import LINE_LENGTH, MOST_LINES, excerpt

TEXT = "\n".join(f"line {number:02}" for number in range(20))
AT = TEXT.index("line 10")


def _told(text: str, marks: list[Mark], around: int = 1) -> list[str]:
    shown = excerpt(text, marks, around)
    return [
        "…"
        if line is None
        else "".join(f"[{piece.text}]" if piece.field else piece.text for piece in line)
        for line in shown
    ]


@pytest.mark.parametrize(
    ("marks", "told"),
    [
        pytest.param(
            [Mark(AT, AT + 4, "title", 0)],
            ["…", "line 09", "[line] 10", "line 11", "…"],
            id="around-one-mark",
        ),
        pytest.param(
            [Mark(AT, AT + 15, "title", 0)],
            ["…", "line 09", "[line 10]", "[line 11]", "line 12", "…"],
            id="over-two-lines",
        ),
        pytest.param(
            [Mark(0, 4, "title", 0), Mark(len(TEXT) - 2, len(TEXT), "language", 0)],
            ["[line] 00", "line 01", "…", "line 18", "line [19]"],
            id="first-and-last-line",
        ),
        pytest.param(
            [Mark(AT, AT + 7, "title", 0), Mark(AT + 5, AT + 7, "language", 0)],
            ["…", "line 09", "[line ][10]", "line 11", "…"],
            id="overlapping",
        ),
        pytest.param(
            [Mark(AT, AT + 4, "title", 0), Mark(AT + 24, AT + 28, "title", 0)],
            ["…", "line 09", "[line] 10", "line 11", "line 12", "[line] 13", "line 14", "…"],
            id="close-marks-are-one-window",
        ),
    ],
)
def test_the_window_around_evidence(marks: list[Mark], told: list[str]) -> None:
    assert _told(TEXT, marks) == told


def test_a_page_without_evidence_is_shown_from_its_beginning() -> None:
    assert _told(TEXT, []) == TEXT.split("\n")
    long = "\n".join("x" for _ in range(MOST_LINES + 5))
    assert _told(long, []) == ["x"] * MOST_LINES + ["…"]


@pytest.mark.parametrize("text", ["", "\n", "a\n\n", "x" * (2 * LINE_LENGTH + 1)])
def test_odd_pages(text: str) -> None:
    shown = excerpt(text, [])
    assert "".join(piece.text for line in shown if line for piece in line) == text.replace("\n", "")


@given(
    text=st.text(alphabet="ab \n", max_size=400),
    places=st.lists(st.tuples(st.integers(0, 400), st.integers(1, 30)), max_size=4),
)
def test_every_marked_character_is_shown_and_marked(
    text: str, places: list[tuple[int, int]]
) -> None:
    marks = sorted(
        (
            Mark(start, min(start + length, len(text)), f"f{at}", 0)
            for at, (start, length) in enumerate(places)
            if start < len(text)
        ),
        key=lambda mark: (mark.start, mark.end),
    )
    shown = excerpt(text, marks, most=1000)
    marked = "".join(piece.text for line in shown if line for piece in line if piece.field)
    covered = {at for mark in marks for at in range(mark.start, mark.end)}
    assert marked == "".join(text[at] for at in sorted(covered) if text[at] != "\n")


@pytest.mark.parametrize("marks", [[], [Mark(AT, AT + 4, "title", 0)]], ids=["none", "one"])
def test_a_whole_page_costs_no_more_than_it_has_lines(marks: list[Mark]) -> None:
    tracemalloc.start()
    try:
        shown = excerpt(TEXT, marks, around=100_000, most=100_000)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(shown) == 20
    assert peak < 500_000
