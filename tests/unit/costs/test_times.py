"""What the time of a record went to."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from pipeline_assets.costs.times import PARTS, Move, Part, parts_of_way

START = datetime(2026, 11, 2, 8, tzinfo=UTC)


def at(minutes: float) -> datetime:
    return START + timedelta(minutes=minutes)


def way(*moves: tuple[str, float], chain: str = "batch:1") -> list[Move]:
    return [Move(chain, state, at(minutes)) for state, minutes in moves]


def minutes(parts: dict[Part, float] | None) -> dict[str, float]:
    assert parts is not None
    return {name: seconds / 60 for name, seconds in parts.items() if seconds}


STRAIGHT = way(
    ("queued", 0),
    ("prepared", 1),
    ("submitted", 5),
    ("collected", 40),
    ("accepted", 42),
    ("published", 90),
)
SEEN = {"batch:1": [("running", at(10)), ("results_available", at(30)), ("reconciling", at(35))]}


def test_a_straight_way() -> None:
    """Waiting until 5 and in the provider's queue until 10, there until 30, ours until 42."""
    found = parts_of_way(STRAIGHT, SEEN)
    assert minutes(found) == {"local": 1 + 10 + 2, "queue": 4 + 5, "provider": 20}


def test_a_job_that_nobody_saw_running() -> None:
    seen = {"batch:1": [("results_available", at(30))]}
    assert minutes(parts_of_way(STRAIGHT, seen)) == {"local": 1 + 10 + 2, "queue": 4 + 25}


def test_a_job_of_which_nothing_was_seen() -> None:
    assert minutes(parts_of_way(STRAIGHT, {})) == {"local": 1 + 2, "queue": 4 + 35}


def test_retry_and_review() -> None:
    moves = [
        *way(("queued", 0), ("prepared", 0), ("submitted", 0), ("retry_wait", 10)),
        *way(("prepared", 70), ("submitted", 70), ("collected", 80), chain="batch:2"),
        *way(("awaiting_review", 80), ("accepted", 200)),
    ]
    seen = {
        "batch:1": [("running", at(0)), ("results_available", at(10))],
        "batch:2": [("running", at(70)), ("results_available", at(80))],
    }
    assert minutes(parts_of_way(moves, seen)) == {"provider": 20, "retry": 60, "review": 120}


@pytest.mark.parametrize(
    "moves",
    [
        pytest.param(way(("queued", 0), ("prepared", 1)), id="still-open"),
        pytest.param(way(("queued", 0), ("accepted", 1), ("rejected", 2)), id="taken-back"),
        pytest.param([], id="no-moves"),
    ],
)
def test_what_is_no_accepted_item(moves: list[Move]) -> None:
    assert parts_of_way(moves, {}) is None


@pytest.mark.parametrize("later", ["published", "withdrawn", "prepared", "superseded"])
def test_the_clock_stops_at_the_first_acceptance(later: str) -> None:
    moves = way(("queued", 0), ("collected", 3), ("accepted", 5), (later, 500))
    assert minutes(parts_of_way(moves, {})) == {"local": 5}


def test_the_parts_are_the_whole() -> None:
    found = parts_of_way(STRAIGHT, SEEN)
    assert found is not None
    assert tuple(found) == PARTS
    assert sum(found.values()) == 42 * 60


def test_a_clock_that_was_set_back_takes_no_time() -> None:
    moves = way(("queued", 10), ("collected", 5), ("accepted", 6))
    assert minutes(parts_of_way(moves, {})) == {"local": 1}
