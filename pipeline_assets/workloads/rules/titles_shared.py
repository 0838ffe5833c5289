"""Rule `titles_shared`: a title that many documents with nothing in common share is boilerplate.

Copies and revisions of one document rightly have one title; see `likeness.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from pipeline_assets.workloads.rules.likeness import folded, shared_by_strangers
from pipeline_assets.workloads.workload import BatchFindings, BatchRule, BatchView

_NOTE = "the {} is that of {{}} different documents of the batch"


def make_rule(thresholds: Mapping[str, Any], field: str = "title") -> BatchRule:
    """The rule for the workload's thresholds.

    Args:
        thresholds: `titles_shared`: `least` documents that share a title.
        field: the workload's field of the search role `title`.
    """
    least = thresholds["titles_shared"]["least"]

    def check(batch: BatchView) -> BatchFindings:
        shared = shared_by_strangers(batch, folded(pl.col("title")), least)
        return BatchFindings(
            shared.select(
                "row",
                field=pl.lit(field),
                note=pl.format(_NOTE.format(field), pl.col("shared")),
            )
        )

    return BatchRule(id="titles_shared", version=1, severity="review", check=check)
