"""The window: grows by one, halves once a round trip, keeps within its bounds."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_assets.online_calls.window import (
    LONGEST_BLOCK_SECONDS,
    OPENING_SIZE,
    Window,
    open_window,
)

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("limit", "size"), [(1, 1), (3, 3), (OPENING_SIZE, OPENING_SIZE), (256, OPENING_SIZE)]
)
def test_opening(limit: int, size: int) -> None:
    assert open_window(limit) == Window(size=size, limit=limit)


@pytest.mark.parametrize(("size", "limit"), [(0, 4), (5, 4), (-1, 1), (1, 0)])
def test_refuses_a_size_outside_its_limit(size: int, limit: int) -> None:
    with pytest.raises(ValueError, match="expected at least one call"):
        Window(size=size, limit=limit)


def test_refuses_a_limit_of_none() -> None:
    with pytest.raises(ValueError, match="limit of 0"):
        open_window(0)


def test_grows_by_one_after_a_window_full_of_answers() -> None:
    window = Window(size=3, limit=8)
    sizes = []
    for _ in range(3 + 4 + 5):
        window = window.after_success(window.round)
        sizes.append(window.size)
    assert sizes == [3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 5, 6]


def test_stops_growing_at_the_limit() -> None:
    window = Window(size=2, limit=3)
    for _ in range(50):
        window = window.after_success(window.round)
    assert window == Window(size=3, limit=3)


@pytest.mark.parametrize(("size", "halved"), [(1, 1), (2, 1), (3, 1), (4, 2), (9, 4)])
def test_halves(size: int, halved: int) -> None:
    window = Window(size=size, limit=16, credit=1).after_pushback(0, None, NOW)
    assert window == Window(size=halved, limit=16, round=1)


def test_all_pushbacks_of_one_round_halve_once() -> None:
    window = Window(size=8, limit=8)
    for _ in range(8):
        window = window.after_pushback(0, None, NOW)
    assert (window.size, window.round) == (4, 1)
    assert window.after_pushback(1, None, NOW).size == 2


def test_answers_to_calls_before_a_cut_do_not_grow_it_again() -> None:
    window = Window(size=2, limit=8, credit=1).after_pushback(0, None, NOW)
    assert window.after_success(0) is window
    assert window.after_success(1).size == 2


@pytest.mark.parametrize(
    ("first", "second", "until"),
    [
        pytest.param(30.0, None, 30.0, id="one wish"),
        pytest.param(30.0, 10.0, 30.0, id="the longer one stays"),
        pytest.param(10.0, 30.0, 30.0, id="the longer one wins"),
        pytest.param(None, 5.0, 5.0, id="late wish"),
        pytest.param(None, None, None, id="no wish"),
        pytest.param(0.0, -3.0, None, id="no time"),
        pytest.param(math.nan, None, None, id="not a number"),
        pytest.param(math.inf, None, LONGEST_BLOCK_SECONDS, id="for ever"),
    ],
)
def test_blocked_until(first: float | None, second: float | None, until: float | None) -> None:
    window = Window(size=8, limit=8).after_pushback(0, first, NOW).after_pushback(0, second, NOW)
    assert window.blocked_until == (None if until is None else at(until))
    assert window.size == 4


def test_a_block_ends_by_itself() -> None:
    window = Window(size=2, limit=2).blocked(10, NOW)
    assert [window.is_blocked(at(second)) for second in (0, 9.9, 10, 11)] == [
        True,
        True,
        False,
        False,
    ]
    assert (window.size, window.round) == (2, 0)
    assert not Window(size=2, limit=2).is_blocked(NOW)


@pytest.mark.parametrize(("limit", "size"), [(2, 2), (5, 5), (9, 6)])
def test_another_limit(limit: int, size: int) -> None:
    assert Window(size=6, limit=8, credit=3).with_limit(limit) == Window(size=size, limit=limit)


EVENT = st.tuples(
    st.booleans(),  # success, or push-back
    st.integers(0, 2),  # rounds that the call is older than the window
    st.none() | st.floats(allow_nan=True, allow_infinity=True),
    st.floats(0, 100),  # seconds since the event before
)


@given(limit=st.integers(1, 64), events=st.lists(EVENT, max_size=120))
def test_keeps_its_promises(
    limit: int, events: list[tuple[bool, int, float | None, float]]
) -> None:
    window, clock, seconds = open_window(limit), NOW, 0.0
    for success, age, retry_after, passed in events:
        seconds += passed
        clock = at(seconds)
        sent_in = max(0, window.round - age)
        after = (
            window.after_success(sent_in)
            if success
            else window.after_pushback(sent_in, retry_after, clock)
        )
        assert 1 <= after.size <= limit
        assert after.size - window.size <= 1
        stale = sent_in != window.round
        assert after.size >= window.size // 2
        assert after.round == window.round + (not success and not stale)
        if stale:
            assert after.size == window.size
        if window.blocked_until is not None:
            assert after.blocked_until is not None
            assert after.blocked_until >= window.blocked_until
        if not success and retry_after is not None and 0 < retry_after <= LONGEST_BLOCK_SECONDS:
            assert not after.is_blocked(clock + timedelta(days=365))
            assert after.blocked_until is not None
            assert after.blocked_until >= clock + timedelta(seconds=retry_after)
        window = after


@given(limit=st.integers(1, 64), size=st.integers(1, 64))
def test_comes_back_to_the_limit(limit: int, size: int) -> None:
    window = Window(size=min(size, limit), limit=limit).after_pushback(0, None, NOW)
    for _ in range(limit * limit):
        window = window.after_success(window.round)
    assert window.size == limit
