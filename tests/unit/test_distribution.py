"""Quantiles, histograms and totals of weighted durations."""

from __future__ import annotations

import math

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_assets.distribution import EDGES, LABELS, Distribution, distribution


def of(*seconds: float, weights: list[int] | None = None) -> Distribution:
    return distribution(
        pl.Series(list(seconds), dtype=pl.Float64),
        None if weights is None else pl.Series(weights, dtype=pl.Int64),
    )


@pytest.mark.parametrize(
    ("seconds", "weights", "p50", "p90", "top"),
    [
        pytest.param([5.0], None, 5, 5, 5, id="one"),
        pytest.param([1.0, 2.0], None, 1, 2, 2, id="two"),
        pytest.param([float(n) for n in range(1, 11)], None, 5, 9, 10, id="ten"),
        pytest.param([float(n) for n in range(1, 12)], None, 6, 10, 11, id="eleven"),
        pytest.param([3.0, 1.0, 2.0], [1, 8, 1], 1, 2, 3, id="weights, not in order"),
        pytest.param([1.0, 100.0], [9, 1], 1, 1, 100, id="nine tenths"),
        pytest.param([1.0, 100.0], [9, 2], 1, 100, 100, id="a little less"),
        pytest.param([-4.0], None, 0, 0, 0, id="a clock that was set back"),
        pytest.param([7.0, 9.0], [1, 0], 7, 7, 7, id="a weight of none"),
    ],
)
def test_quantiles_are_values_that_occur(
    seconds: list[float], weights: list[int] | None, p50: float, p90: float, top: float
) -> None:
    found = of(*seconds, weights=weights)
    assert (found.p50, found.p90, found.max) == (p50, p90, top)


def test_nothing_has_no_quantiles() -> None:
    assert of() == Distribution(0, 0.0, None, None, None, (0,) * len(LABELS))


@pytest.mark.parametrize(("edge", "place"), [(edge, n) for n, edge in enumerate(EDGES)])
def test_an_edge_is_in_the_bin_below(edge: float, place: int) -> None:
    below, above = of(edge).histogram, of(edge + 0.001).histogram
    assert (below.index(1), above.index(1)) == (place, place + 1)


def test_there_is_a_label_for_every_bin() -> None:
    assert len(LABELS) == len(EDGES) + 1


@pytest.mark.parametrize(
    ("seconds", "weights"),
    [([None], [1]), ([math.nan], [1]), ([1.0], [None]), ([1.0], [-1]), ([1.0, 2.0], [1])],
    ids=["no duration", "not a number", "no weight", "negative weight", "lengths"],
)
def test_what_is_no_distribution_is_refused(seconds: list, weights: list) -> None:
    with pytest.raises((ValueError, pl.exceptions.ShapeError)):
        distribution(pl.Series(seconds, dtype=pl.Float64), pl.Series(weights, dtype=pl.Int64))


@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(1, 5)), min_size=1, max_size=40))
def test_weights_say_the_same_as_repeated_values(pairs: list[tuple[int, int]]) -> None:
    repeated = [float(value) for value, times in pairs for _ in range(times)]
    together = of(*(float(value) for value, _ in pairs), weights=[times for _, times in pairs])
    assert together == of(*repeated)
    assert together.count == sum(together.histogram) == len(repeated)
    assert together.total == sum(repeated)
