"""When somebody has to be told about dead letters."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_assets.recovery.dead_letter_alerts import (
    AGING,
    MANY,
    AlertWish,
    Standing,
    decide_dead_letter_alerts,
)

NONE = Standing(0, 0)


@pytest.mark.parametrize(
    ("now", "told", "wishes"),
    [
        pytest.param(NONE, NONE, (), id="nothing"),
        pytest.param(Standing(3, 0), NONE, (AlertWish(MANY, "raise"),), id="first"),
        pytest.param(Standing(3, 0), Standing(3, 0), (), id="told-already"),
        pytest.param(Standing(4, 0), Standing(3, 0), (AlertWish(MANY, "raise"),), id="more"),
        pytest.param(Standing(2, 0), Standing(3, 0), (AlertWish(MANY, "restate"),), id="fewer"),
        pytest.param(NONE, Standing(3, 0), (AlertWish(MANY, "clear"),), id="none-left"),
        pytest.param(Standing(3, 1), Standing(3, 0), (AlertWish(AGING, "raise"),), id="one-is-old"),
        pytest.param(
            Standing(3, 0),
            Standing(3, 2),
            (AlertWish(AGING, "clear"),),
            id="the-old-ones-are-gone",
        ),
        pytest.param(
            NONE,
            Standing(3, 2),
            (AlertWish(MANY, "clear"), AlertWish(AGING, "clear")),
            id="everything-is-gone",
        ),
        pytest.param(
            Standing(5, 1),
            Standing(3, 2),
            (AlertWish(MANY, "raise"), AlertWish(AGING, "restate")),
            id="more-and-fewer",
        ),
    ],
)
def test_what_has_to_happen(now: Standing, told: Standing, wishes: tuple[AlertWish, ...]) -> None:
    assert decide_dead_letter_alerts(now, told) == wishes


@given(st.lists(st.integers(0, 4), max_size=30))
def test_every_growth_is_told_and_nothing_else(counts: list[int]) -> None:
    known, raised = 0, 0
    for count in counts:
        wishes = decide_dead_letter_alerts(Standing(count, 0), Standing(known, 0))
        changes = [wish.change for wish in wishes]
        raised += changes.count("raise")
        assert bool(changes) == (count != known)
        known = count
    grown = sum(after > before for before, after in zip([0, *counts], counts, strict=False))
    assert raised == grown
