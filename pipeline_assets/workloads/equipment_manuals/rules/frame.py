"""Rule `frame`: types, enumerations, lengths and cross-field rules, as a Pandera schema.

What one column may hold stands in the registry (`columns.value_columns`), which Dagster's column
schema is made of too; here are the rules over several columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandera.polars as pa
import polars as pl

from pipeline_assets.workloads import frame_checks
from pipeline_assets.workloads.column_registry import pandera_column
from pipeline_assets.workloads.equipment_manuals.columns import value_columns
from pipeline_assets.workloads.frame_checks import FrameBroken, present_unless_absent, row_check
from pipeline_assets.workloads.workload import Rule, Shard

__all__ = ["SLICE", "FrameBroken", "make_rule", "make_schema", "with_unproven"]

SLICE = frame_checks.SLICE
_SINGLE = ("title", "language", "description")
_LIST = "product_identifiers"


def make_schema(thresholds: Mapping[str, Any]) -> pa.DataFrameSchema:
    """The acceptance schema for the workload's thresholds."""
    limit = thresholds[_LIST]["max_count"]
    columns = {column.name: pandera_column(column) for column in value_columns(thresholds)}
    columns["unproven"] = pa.Column(pl.List(pl.String))
    checks = [
        *(present_unless_absent(name) for name in _SINGLE),
        row_check(pl.col("identifiers").list.len() <= limit, f"{_LIST}: too many"),
        row_check(
            ~pl.col("identifiers").list.eval(pl.element().is_null()).list.any(),
            f"{_LIST}: no value",
        ),
        row_check(
            pl.col("identifiers").list.n_unique() == pl.col("identifiers").list.len(),
            f"{_LIST}: repeated",
        ),
        *(frame_checks.proven(name) for name in (*_SINGLE, _LIST)),
    ]
    return pa.DataFrameSchema(columns, checks=checks, strict=True)


def make_rule(thresholds: Mapping[str, Any]) -> Rule:
    """The rule for the workload's thresholds."""
    schema = make_schema(thresholds)
    bounds = thresholds["evidence"]
    lengths = (bounds["min_quote_length"], bounds["max_quote_length"])
    most = {
        name: part["max_evidence"] for name, part in thresholds.items() if "max_evidence" in part
    }

    def check(shard: Shard) -> pl.DataFrame:
        return pl.concat(
            [
                frame_checks.validate(schema, with_unproven(shard), SLICE),
                frame_checks.quotes_out_of_bounds(shard.evidence, lengths, most),
            ]
        )

    return Rule(id="frame", version=1, severity="review", check=check)


def with_unproven(shard: Shard) -> pl.DataFrame:
    """The values with a list of fields that are `found` and have no quote."""
    return frame_checks.with_unproven(shard, _SINGLE, _LIST)
