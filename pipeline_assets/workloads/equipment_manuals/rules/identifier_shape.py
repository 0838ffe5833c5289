"""Rule `identifier_shape`: an identifier looks like one, and stands in its own quote."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from pipeline_assets.workloads.text_folding import fold
from pipeline_assets.workloads.workload import Rule, Shard

_FIELD = "product_identifiers"


def make_rule(thresholds: Mapping[str, Any]) -> Rule:
    """The rule for the workload's thresholds."""
    limits = thresholds[_FIELD]

    def check(shard: Shard) -> pl.DataFrame:
        items = shard.items.filter(pl.col("value").is_not_null())
        return pl.concat([_misshapen(items, limits), _not_quoted(items, shard.evidence)])

    return Rule(id="identifier_shape", version=1, severity="review", check=check)


def _misshapen(items: pl.DataFrame, limits: Mapping[str, Any]) -> pl.DataFrame:
    length = pl.col("value").str.len_chars()
    fits = length.is_between(limits["min_length"], limits["max_length"]) & pl.col(
        "value"
    ).str.contains(limits["pattern"])
    if limits["needs_digit"]:
        fits &= pl.col("value").str.contains(r"\p{N}")
    return (
        items.filter(~fits)
        .select("row", field=pl.lit(_FIELD), note=pl.lit("not the shape of an identifier"))
        .unique()
    )


def _not_quoted(items: pl.DataFrame, evidence: pl.DataFrame) -> pl.DataFrame:
    """Exact first, for the whole shard; folded only where that fails."""
    quotes = evidence.filter(pl.col("field") == _FIELD).select("row", "item", "quote")
    pairs = items.join(quotes, on=["row", "item"])
    exact = pairs.with_columns(stands=pl.col("quote").str.contains(pl.col("value"), literal=True))
    doubtful = (
        exact.group_by("row", "item")
        .agg(pl.col("stands").any(), pl.col("value").first(), pl.col("quote"))
        .filter(~pl.col("stands"))
    )
    wrong = [
        row
        for row, value, cited in doubtful.select("row", "value", "quote").iter_rows()
        if not any(fold(value) in fold(quote) for quote in cited)
    ]
    return pl.DataFrame(
        {
            "row": pl.Series(sorted(set(wrong)), dtype=pl.Int64),
        }
    ).select("row", field=pl.lit(_FIELD), note=pl.lit("does not stand in its own quote"))
