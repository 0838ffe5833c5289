"""Intervals against published figures, and how often they hold what they promise."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_assets.quality.interval import Estimate, Stratum, estimate, estimate_all, wilson

HUGE = 10**9
"""A slice so large that its sample is as good as none of it."""


@pytest.mark.parametrize(
    ("errors", "size", "low", "high"),
    [
        # Newcombe, Statistics in Medicine 17 (1998), 857-872, table I, method 3.
        pytest.param(81, 263, 0.2553, 0.3662, id="81-of-263"),
        pytest.param(15, 148, 0.0624, 0.1605, id="15-of-148"),
        pytest.param(0, 20, 0.0, 0.1611, id="none-of-20"),
        pytest.param(1, 29, 0.0061, 0.1718, id="1-of-29"),
    ],
)
def test_published_figures(errors: int, size: int, low: float, high: float) -> None:
    found = wilson(errors / size, size)
    assert (round(found.low, 4), round(found.high, 4)) == (low, high)
    alone = estimate(Stratum(HUGE, size, errors))
    assert alone is not None
    assert (round(alone.low, 4), round(alone.high, 4)) == (low, high)
    together = estimate_all([Stratum(HUGE, size, errors)])
    assert together is not None
    assert (round(together.low, 4), round(together.high, 4)) == (low, high)


def test_what_was_seen_whole_is_known() -> None:
    assert estimate(Stratum(5, 5, 1)) == Estimate(0.2, 0.2, 0.2)
    assert estimate_all([Stratum(5, 5, 1), Stratum(5, 5, 0)]) == Estimate(0.1, 0.1, 0.1)


def test_a_sample_of_nearly_everything_says_more_than_one_of_little() -> None:
    nearly, little = estimate(Stratum(21, 20, 0)), estimate(Stratum(HUGE, 20, 0))
    assert nearly is not None
    assert little is not None
    assert nearly.high < little.high / 5


@pytest.mark.parametrize("strata", [[], [Stratum(100, 0, 0)]], ids=["no-slice", "none-decided"])
def test_nothing_looked_at_is_no_rate(strata: list[Stratum]) -> None:
    assert estimate_all(strata) is None
    assert [estimate(stratum) for stratum in strata] == [None] * len(strata)


@pytest.mark.parametrize(
    ("rate", "size"), [(0.5, 0.0), (0.5, -1.0), (1.1, 10.0), (-0.1, 10.0), (math.nan, 10.0)]
)
def test_no_interval_of_nonsense(rate: float, size: float) -> None:
    with pytest.raises(ValueError, match="expected 0 to 1"):
        wilson(rate, size)


def test_slices_weigh_as_many_records_as_they_have() -> None:
    """Both slices are sampled alike; the large one, which is right, decides."""
    found = estimate_all([Stratum(9_900, 50, 0), Stratum(100, 50, 25)])
    assert found is not None
    assert found.rate == pytest.approx(0.005)
    assert found.low < 0.005 < found.high < 0.1


def test_a_slice_that_nobody_looked_at_may_be_all_right_or_all_wrong() -> None:
    seen = [Stratum(900, 40, 4)]
    alone, beside = estimate_all(seen), estimate_all([*seen, Stratum(100, 0, 0)])
    assert alone is not None
    assert beside is not None
    assert beside.rate == alone.rate
    assert beside.low == pytest.approx(alone.low * 0.9)
    assert beside.high == pytest.approx(alone.high * 0.9 + 0.1)
    assert estimate_all([Stratum(2, 2, 1), Stratum(6, 0, 0)]) == Estimate(0.5, 0.125, 0.875)


STRATA = st.lists(
    st.integers(1, 5_000).flatmap(
        lambda population: st.integers(0, min(population, 200)).flatmap(
            lambda decided: st.integers(0, decided).map(
                lambda errors: Stratum(population, decided, errors)
            )
        )
    ),
    max_size=8,
)


@given(STRATA)
def test_a_rate_lies_in_its_interval_and_that_between_nothing_and_all(
    strata: list[Stratum],
) -> None:
    found = [estimate_all(strata), *(estimate(stratum) for stratum in strata)]
    for entry in found:
        if entry is not None:
            assert 0 <= entry.low <= entry.rate + 1e-9
            assert entry.rate - 1e-9 <= entry.high <= 1


@given(STRATA)
def test_errors_in_no_slice_are_errors_nowhere(strata: list[Stratum]) -> None:
    right = [Stratum(stratum.population, stratum.decided, 0) for stratum in strata]
    found = estimate_all(right)
    assert found is None or (found.rate, found.low) == (0, 0)


@pytest.mark.parametrize(
    "slices",
    [
        # population, drawn, true error rate
        pytest.param([(5_000, 100, 0.02), (300, 30, 0.1), (40, 20, 0.3)], id="usual"),
        pytest.param([(2_000, 40, 0.05)] * 5, id="alike"),
        pytest.param([(9_000, 180, 0.01), (200, 5, 0.5), (200, 5, 0.0)], id="small-and-bad"),
        pytest.param([(30, 15, 0.2), (30, 15, 0.1)], id="half-of-it-seen"),
    ],
)
def test_the_truth_lies_in_the_interval_as_often_as_promised(
    slices: list[tuple[int, int, float]],
) -> None:
    """95 % is an average over true rates: Wilson's interval may hold a little less at one."""
    rng = random.Random(7)
    archives = [
        [1] * round(size * rate) + [0] * round(size * (1 - rate)) for size, _, rate in slices
    ]
    truth = sum(map(sum, archives)) / sum(map(len, archives))
    rounds, held = 800, 0
    for _ in range(rounds):
        strata = [
            Stratum(len(archive), drawn, sum(rng.sample(archive, drawn)))
            for archive, (_, drawn, _) in zip(archives, slices, strict=True)
        ]
        found = estimate_all(strata)
        assert found is not None
        held += found.low <= truth <= found.high
    assert held / rounds >= 0.93
