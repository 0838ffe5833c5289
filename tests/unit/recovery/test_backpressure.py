"""When later stages are too far behind, and when they have caught up."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_assets.recovery.backpressure import (
    QUEUES,
    Backlog,
    Limits,
    decide_backpressure,
    queues_in,
)

FREE = Limits(None, None, None)
LIMITS = Limits(staging=100, review=10, publication=1)
SOME_LIMIT = st.none() | st.integers(1, 60)
LIMITS_AT_RANDOM = st.builds(Limits, SOME_LIMIT, SOME_LIMIT, SOME_LIMIT)
WAITING = st.integers(0, 80)
BACKLOGS = st.builds(Backlog, WAITING, WAITING, WAITING)


@pytest.mark.parametrize(
    ("backlog", "limits", "held_for", "behind"),
    [
        pytest.param(Backlog(10**9, 10**9, 10**9), FREE, None, None, id="no-limits"),
        pytest.param(Backlog(99, 9, 0), LIMITS, None, None, id="below-all"),
        pytest.param(Backlog(100, 9, 0), LIMITS, None, {"staging"}, id="staging-full"),
        pytest.param(Backlog(0, 10, 0), LIMITS, None, {"review"}, id="review-full"),
        pytest.param(Backlog(0, 0, 1), LIMITS, None, {"publication"}, id="publication-full"),
        pytest.param(
            Backlog(500, 10, 1), LIMITS, None, {"staging", "review", "publication"}, id="all-full"
        ),
        pytest.param(Backlog(81, 0, 0), LIMITS, {"staging"}, {"staging"}, id="not-low-yet"),
        pytest.param(Backlog(80, 0, 0), LIMITS, {"staging"}, None, id="low-again"),
        pytest.param(Backlog(0, 9, 0), LIMITS, {"staging"}, None, id="another-queue-below-its-own"),
        pytest.param(Backlog(0, 10, 0), LIMITS, {"staging"}, {"review"}, id="another-queue-full"),
        pytest.param(Backlog(0, 0, 0), LIMITS, {"publication"}, None, id="a-limit-of-one-is-empty"),
    ],
)
def test_who_is_behind(
    backlog: Backlog, limits: Limits, held_for: set[str] | None, behind: set[str] | None
) -> None:
    reason = decide_backpressure(backlog, limits, held_for)
    assert (None if reason is None else queues_in(reason)) == behind


def test_the_reason_has_the_figures() -> None:
    reason = decide_backpressure(Backlog(120, 3, 1), LIMITS)
    assert reason == (
        "behind their limits: staging (120 records, limit 100, goes on at 80), "
        "publication (1 records, limit 1, goes on at 0)"
    )


def test_a_reason_in_other_words_stands_for_every_queue() -> None:
    assert queues_in("told by an older release") == frozenset(QUEUES)


@given(limits=LIMITS_AT_RANDOM, steps=st.lists(BACKLOGS, max_size=30))
def test_hysteresis(limits: Limits, steps: list[Backlog]) -> None:
    """Held only at a limit, released only when all that it was held for is at 80 % of its own."""
    held_for: frozenset[str] | None = None
    for backlog in steps:
        reason = decide_backpressure(backlog, limits, held_for)
        shares = {
            name: getattr(backlog, name) / limit
            for name in QUEUES
            if (limit := getattr(limits, name)) is not None
        }
        if held_for is None:
            assert (reason is not None) is any(share >= 1 for share in shares.values())
            held_for = None if reason is None else queues_in(reason)
        elif reason is None:
            assert all(shares.get(name, 0) <= 0.8 for name in held_for)
            assert all(share < 1 for share in shares.values())
            held_for = None
        else:
            assert any(
                share >= 1 or (name in held_for and share > 0.8) for name, share in shares.items()
            )


@given(limits=LIMITS_AT_RANDOM, backlog=BACKLOGS)
def test_a_backlog_that_stands_still_never_flaps(limits: Limits, backlog: Backlog) -> None:
    reason = decide_backpressure(backlog, limits)
    if reason is not None:
        assert decide_backpressure(backlog, limits, queues_in(reason)) == reason
