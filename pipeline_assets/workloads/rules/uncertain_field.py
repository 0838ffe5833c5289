"""Rule `uncertain_field`: what the answer itself is not sure of goes to a person."""

from __future__ import annotations

import polars as pl

from pipeline_assets.workloads.workload import Rule, Shard


def check(shard: Shard) -> pl.DataFrame:
    """A finding for every field that the answer calls uncertain."""
    return shard.uncertain.unique(maintain_order=True).select(
        "row", "field", note=pl.lit("the answer calls this field uncertain")
    )


RULE = Rule(id="uncertain_field", version=1, severity="review", check=check)
