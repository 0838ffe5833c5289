"""Rule `identifier_shape`: an identifier looks like one, and stands in its own quote."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import polars as pl

from pipeline_assets.workloads.text_folding import fold
from pipeline_assets.workloads.workload import Rule, Shard

_FIELD = "product_identifiers"
# A letter or digit of a script with spaces between words.
_JOINS = re.compile(r"(?![\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af])[^\W_]")


def make_rule(thresholds: Mapping[str, Any]) -> Rule:
    """The rule for the workload's thresholds."""
    limits = thresholds[_FIELD]

    def check(shard: Shard) -> pl.DataFrame:
        items = shard.items.filter(pl.col("value").is_not_null())
        return pl.concat([_misshapen(items, limits), _not_quoted(items, shard.evidence)])

    return Rule(
        id="identifier_shape", version=1, severity="review", check=check, family="identifiers"
    )


def stands_alone(value: str, quote: str) -> bool:
    """Does the quote have the value as a whole, not as a part of a longer number or word?

    Chinese, Japanese and Korean are set without spaces, so their signs end a number too.
    """
    wanted, text = fold(value), fold(quote)
    at = text.find(wanted)
    while wanted and at >= 0:
        end = at + len(wanted)
        if not (_JOINS.match(text[at - 1 : at]) or _JOINS.match(text[end : end + 1])):
            return True
        at = text.find(wanted, at + 1)
    return False


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
    exact = pairs.with_columns(
        stands=pl.format(" {} ", "quote").str.contains(pl.format(" {} ", "value"), literal=True)
    )
    doubtful = (
        exact.group_by("row", "item")
        .agg(pl.col("stands").any(), pl.col("value").first(), pl.col("quote"))
        .filter(~pl.col("stands"))
    )
    wrong = [
        row
        for row, value, cited in doubtful.select("row", "value", "quote").iter_rows()
        if not any(stands_alone(value, quote) for quote in cited)
    ]
    return pl.DataFrame(
        {
            "row": pl.Series(sorted(set(wrong)), dtype=pl.Int64),
        }
    ).select("row", field=pl.lit(_FIELD), note=pl.lit("does not stand in its own quote"))
