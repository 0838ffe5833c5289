"""The waterfall's lines."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_assets.tracing.spans import Span, spans_of
from pipeline_assets.tracing.waterfall import Line, said, waterfall
from tests.unit.tracing.test_spans import RETRIED, lives

S = 1_000_000


@pytest.mark.parametrize(
    ("microseconds", "expected"),
    [
        (0, "0 ms"),
        (999, "0 ms"),
        (340_500, "340 ms"),
        (1_550_000, "1.5 s"),
        (59_999_999, "59.9 s"),
        (60 * S, "1 min"),
        (723 * S, "12 min 3 s"),
        (3600 * S, "1 h"),
        (3603 * S, "1 h"),
        (187_200 * S, "2 d 4 h"),
    ],
)
def test_durations_are_said(microseconds: int, expected: str) -> None:
    assert said(microseconds) == expected


def span(name: str, start: int, end: int, parent: str | None) -> Span:
    return Span("t", name, parent, name, start * S, end * S)


def test_bars_stand_under_their_time() -> None:
    lines = waterfall(
        [span("record", 0, 100, None), span("a", 0, 50, "record"), span("b", 100, 100, "record")],
        80,
    )
    assert {len(line.bar) for line in lines} == {45}
    whole, first, last = (line.bar for line in lines)
    assert whole == "█" * 45
    assert first == "█" * 23 + "·" * 22
    assert last == "·" * 44 + "▌"
    assert [line.name.rstrip() for line in lines] == ["record", "  a", "  b"]


@given(lives().map(lambda life: spans_of(life, until=10**15)), st.integers(20, 200))
def test_lines_fit_their_width(spans: list[Span], width: int) -> None:
    for line in waterfall(spans, width):
        assert len(f"{line.name} {line.bar} {line.took}") <= max(width, 60)
        assert line.bar.strip("·"), "nothing is invisible"


def test_attempts_say_what_they_came_to() -> None:
    attempts = [line for line in waterfall(spans_of(RETRIED), 80) if "attempt" in line.name]
    assert [(line.detail, line.error) for line in attempts] == [
        ("1: first, retryable_failure, overloaded, b1", "overloaded"),
        ("2: first, succeeded, b2", None),
    ]


def test_nothing_makes_no_lines() -> None:
    assert waterfall([], 80) == list[Line]()
