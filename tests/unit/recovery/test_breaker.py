"""When the circuit breaker trips, and how long a version pauses after it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_assets.recovery.breaker import (
    LONGEST_PAUSE,
    BreakerPolicy,
    Window,
    decide_breaker,
    pause_after,
    trips_in_a_row,
)
from pipeline_assets.recovery.holds import Hold, Release

NOW = datetime(2030, 1, 2, tzinfo=UTC)
HOUR = timedelta(hours=1)
POLICY = BreakerPolicy(window=200, least=20, floor=Decimal("0.5"), pause=HOUR)
PAUSES = st.timedeltas(timedelta(minutes=1), timedelta(days=7))


@pytest.mark.parametrize(
    ("results", "usable", "policy", "trips"),
    [
        pytest.param(19, 0, POLICY, False, id="too-few"),
        pytest.param(20, 0, POLICY, True, id="just-enough"),
        pytest.param(20, 10, POLICY, False, id="at-the-floor"),
        pytest.param(20, 9, POLICY, True, id="below-the-floor"),
        pytest.param(200, 99, POLICY, True, id="a-full-window"),
        pytest.param(200, 200, POLICY, False, id="all-usable"),
        pytest.param(0, 0, replace(POLICY, least=1), False, id="nothing-yet"),
        pytest.param(200, 0, replace(POLICY, window=None), False, id="switched-off"),
        pytest.param(9, 0, replace(POLICY, window=10), False, id="window-below-the-least"),
        pytest.param(10, 0, replace(POLICY, window=10), True, id="window-below-the-least-and-full"),
        pytest.param(100, 99, replace(POLICY, floor=Decimal(1)), True, id="nothing-is-forgiven"),
        pytest.param(100, 29, replace(POLICY, floor=Decimal("0.29")), False, id="no-rounding"),
    ],
)
def test_when_it_trips(results: int, usable: int, policy: BreakerPolicy, trips: bool) -> None:
    window = Window(results, usable, {"refused": results - usable})
    assert (decide_breaker(window, policy, NOW) is not None) is trips


def test_a_trip_says_what_came_back_and_when_it_ends() -> None:
    window = Window(20, 4, {"refused": 3, "truncated": 10, "expired": 3})
    trip = decide_breaker(window, POLICY, NOW)
    assert trip is not None
    assert trip.reason == (
        "only 4 of the last 20 results are usable, the floor is 50% "
        "(10 truncated, 3 expired, 3 refused)"
    )
    assert trip.until == NOW + HOUR
    third = decide_breaker(window, POLICY, NOW, trips=2)
    assert third is not None
    assert third.until == NOW + 4 * HOUR
    by_command = decide_breaker(window, replace(POLICY, pause=None), NOW, trips=2)
    assert by_command is not None
    assert by_command.until is None


@given(results=st.integers(0, 300), usable=st.integers(0, 300), floor=st.integers(1, 100))
def test_more_usable_results_never_trip_it(results: int, usable: int, floor: int) -> None:
    policy = replace(POLICY, floor=Decimal(floor) / 100)
    usable = min(usable, results)
    if decide_breaker(Window(results, usable), policy, NOW) is None:
        better = Window(results, min(results, usable + 1))
        assert decide_breaker(better, policy, NOW) is None


@given(pause=PAUSES, trips=st.integers(1, 400))
def test_each_trip_in_a_row_doubles_the_pause_up_to_a_day(pause: timedelta, trips: int) -> None:
    first, this, following = (pause_after(pause, count) for count in (1, trips, trips + 1))
    assert first == pause
    assert this is not None
    assert pause <= this <= max(pause, LONGEST_PAUSE)
    assert following == min(2 * this, max(pause, LONGEST_PAUSE))


@given(trips=st.integers(1, 400))
def test_by_command_only_stays_so(trips: int) -> None:
    assert pause_after(None, trips) is None


def test_no_trip_has_no_pause() -> None:
    with pytest.raises(ValueError, match="at least one"):
        pause_after(HOUR, 0)


def events(told: str) -> list[Hold | Release]:
    """`T` is a trip, `r` a release by itself, `c` one by command; numbered from 1."""
    return [
        Hold("breaker", "", "", number, "")
        if kind == "T"
        else Release("breaker", kind == "c", "", number)
        for number, kind in enumerate(told, start=1)
    ]


@pytest.mark.parametrize(
    ("told", "passed", "trips"),
    [
        pytest.param("", (), 0, id="never"),
        pytest.param("T", (), 1, id="first"),
        pytest.param("Tr", (), 1, id="on-probation"),
        pytest.param("Tr", (2,), 0, id="probation-passed"),
        pytest.param("TrT", (), 2, id="tripped-on-probation"),
        pytest.param("TrT", (2,), 1, id="tripped-after-a-passed-one"),
        pytest.param("TrTrTrT", (), 4, id="again-and-again"),
        pytest.param("TrTrTrT", (4,), 2, id="passed-in-the-middle"),
        pytest.param("Tc", (), 0, id="released-by-command"),
        pytest.param("TrTcT", (), 1, id="a-command-starts-anew"),
        pytest.param("Tr" * 50 + "T", (), 13, id="no-more-than-matter"),
    ],
)
def test_trips_in_a_row(told: str, passed: tuple[int, ...], trips: int) -> None:
    asked: list[tuple[int, int]] = []

    def look(release: Release, until: int) -> bool:
        asked.append((release.move_no, until))
        return release.move_no in passed

    assert trips_in_a_row(events(told), look) == trips
    assert all(until > number for number, until in asked)
    assert all(until == number + 1 for number, until in asked if number < len(told))
