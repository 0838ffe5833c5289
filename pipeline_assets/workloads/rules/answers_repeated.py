"""Rule `answers_repeated`: one answer given for many documents that have nothing in common.

Copies and revisions of one document rightly have one description; see `likeness.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from pipeline_assets.workloads.rules.likeness import folded, shared_by_strangers
from pipeline_assets.workloads.workload import BatchFindings, BatchRule, BatchView

_NOTE = "the description is that of {} different documents of the batch"


def make_rule(thresholds: Mapping[str, Any]) -> BatchRule:
    """The rule for the workload's thresholds.

    Args:
        thresholds: `answers_repeated`: `least` documents that share a description; `share` of a
            batch from which on an operator is told of the batch as a whole.
    """
    limits = thresholds["answers_repeated"]

    def check(batch: BatchView) -> BatchFindings:
        repeated = shared_by_strangers(batch, folded(pl.col("description")), limits["least"])
        found = repeated.select(
            "row", field=pl.lit("description"), note=pl.format(_NOTE, pl.col("shared"))
        )
        total = batch.answers.height
        if repeated.height < max(limits["least"], limits["share"] * total):
            return BatchFindings(found)
        return BatchFindings(
            found,
            f"{repeated.height:,} of {total:,} answers repeat a description that other, "
            "different documents were given too",
        )

    return BatchRule(id="answers_repeated", version=1, severity="review", check=check)
