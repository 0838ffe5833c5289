"""Ages and durations as distributions: how many, p50, p90, max, and a histogram.

Belongs here: the one way in which this project sums up many durations, so that `status`, metrics
and reports agree. Does not belong here: where the durations come from.

Records move by sets, so thousands of them share one duration: values come with how often each
occurs, and memory depends on the different ones alone.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass

import polars as pl

EDGES: tuple[float, ...] = (60, 300, 900, 3600, 4 * 3600, 24 * 3600, 3 * 86400, 7 * 86400)
"""Upper edges of the histogram's bins in seconds: a minute, five, fifteen, an hour, four, a day,
three days, a week. A value on an edge is in the bin below it; the last bin has no upper edge."""
LABELS: tuple[str, ...] = (
    "≤ 1 min",
    "≤ 5 min",
    "≤ 15 min",
    "≤ 1 h",
    "≤ 4 h",
    "≤ 1 day",
    "≤ 3 days",
    "≤ 7 days",
    "> 7 days",
)


@dataclass(frozen=True)
class Distribution:
    """How long things take, or how old they are, in seconds.

    Attributes:
        count: how many things.
        total: their seconds together.
        p50: half of them are at most so old; None where there is nothing.
        p90: nine tenths of them are.
        max: the oldest.
        histogram: how many are in each bin of `EDGES`, one more than there are edges.
    """

    count: int
    total: float
    p50: float | None
    p90: float | None
    max: float | None
    histogram: tuple[int, ...]


def distribution(seconds: pl.Series, weights: pl.Series | None = None) -> Distribution:
    """Sum up durations.

    A quantile is the smallest value that at least such a share of the things does not exceed (the
    nearest rank), so it is always one that occurs.

    Args:
        seconds: the durations. Negative ones (a clock that was set back) count as 0.
        weights: how many things have each of them; one each by default.

    Raises:
        ValueError: the lengths differ, a value is null or no number, or a weight is negative.
    """
    counts = pl.Series([1] * seconds.len(), dtype=pl.Int64) if weights is None else weights
    frame = pl.DataFrame({"seconds": seconds.cast(pl.Float64), "things": counts.cast(pl.Int64)})
    if frame.null_count().sum_horizontal().item() or frame["seconds"].is_nan().any():
        raise ValueError("found durations or weights that are no numbers; drop them before")
    if (frame["things"] < 0).any():
        raise ValueError("found a negative weight; expected how many things have a duration")
    kept = (
        frame.filter(pl.col("things") > 0)
        .with_columns(pl.col("seconds").clip(lower_bound=0))
        .sort("seconds")
        .with_columns(pl.col("things").cum_sum().alias("up_to"))
    )
    if kept.is_empty():
        return Distribution(0, 0.0, None, None, None, (0,) * len(LABELS))
    count = int(kept["things"].sum())
    return Distribution(
        count=count,
        total=float((kept["seconds"] * kept["things"]).sum()),
        p50=_quantile(kept, count, 50),
        p90=_quantile(kept, count, 90),
        max=float(kept["seconds"].item(-1)),
        histogram=_histogram(kept),
    )


def _quantile(sorted_values: pl.DataFrame, count: int, percent: int) -> float:
    rank = -(-count * percent // 100)  # rounded up, in whole numbers
    found = sorted_values.filter(pl.col("up_to") >= rank)
    return float(found["seconds"].item(0))


def _histogram(sorted_values: pl.DataFrame) -> tuple[int, ...]:
    # bisect_left: how many edges are below a value.
    counts = [0] * len(LABELS)
    for seconds, things in sorted_values.select("seconds", "things").iter_rows():
        counts[bisect_left(EDGES, seconds)] += things
    return tuple(counts)
