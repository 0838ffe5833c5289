"""Rule `title_present`: a title is printed, and made of the words of its own quotes.

A record without one is not published unseen.
"""

from __future__ import annotations

import polars as pl

from pipeline_assets.workloads.text_folding import fold
from pipeline_assets.workloads.workload import Rule, Shard


def check(shard: Shard) -> pl.DataFrame:
    """A finding for an absent title, and for one with words that its quotes do not hold."""
    absent = shard.values.filter(pl.col("title_status") == "absent").select(
        "row", note=pl.lit("no title is printed")
    )
    quotes = (
        shard.evidence.filter(pl.col("field") == "title")
        .group_by("row", maintain_order=True)
        .agg(quotes=pl.col("quote").str.join(" "))
    )
    titled = shard.values.filter(
        (pl.col("title_status") == "found") & pl.col("title").is_not_null()
    ).join(quotes, on="row", how="inner")
    # A title that is its one quote, letter by letter, needs no folding.
    doubtful = titled.filter(pl.col("title") != pl.col("quotes"))
    foreign = [
        row
        for row, title, cited in doubtful.select("row", "title", "quotes").iter_rows()
        if not set(fold(title).split()) <= set(fold(cited).split())
    ]
    invented = pl.DataFrame({"row": pl.Series(foreign, dtype=pl.Int64)}).select(
        "row", note=pl.lit("has words that its quotes do not hold")
    )
    return pl.concat([absent, invented]).select("row", field=pl.lit("title"), note="note")


RULE = Rule(id="title_present", version=1, severity="review", check=check, family="title")
