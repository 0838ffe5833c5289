"""Rule `document_reference`: the answer echoes the reference of its own document.

An id join alone cannot tell an answer that the provider put under another record's id.
"""

from __future__ import annotations

import polars as pl

from pipeline_assets.workloads.workload import Rule, Shard


def check(shard: Shard) -> pl.DataFrame:
    """A finding for every record whose answer names another document."""
    return (
        shard.values.join(shard.records.select("row", "reference"), on="row")
        .filter(pl.col("document") != pl.col("reference"))
        .select(
            "row",
            field=pl.lit("document"),
            note=pl.lit("the answer echoes the reference of another document"),
        )
    )


RULE = Rule(id="document_reference", version=1, severity="review", check=check, family="reference")
