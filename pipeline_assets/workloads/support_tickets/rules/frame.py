"""Rule `frame`: types, closed lists, lengths and cross-field rules, as a Pandera schema.

What one column may hold stands in `columns.value_columns`; here are the rules over several columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandera.polars as pa
import polars as pl

from pipeline_assets.workloads import frame_checks
from pipeline_assets.workloads.column_registry import pandera_column
from pipeline_assets.workloads.workload import Rule, Shard

from ..columns import FIELDS, value_columns


def make_schema(thresholds: Mapping[str, Any]) -> pa.DataFrameSchema:
    """The acceptance schema for the workload's thresholds."""
    columns = {column.name: pandera_column(column) for column in value_columns(thresholds)}
    columns["unproven"] = pa.Column(pl.List(pl.String))
    checks = [
        *(frame_checks.present_unless_absent(name) for name in FIELDS),
        *(frame_checks.proven(name) for name in FIELDS),
    ]
    return pa.DataFrameSchema(columns, checks=checks, strict=True)


def make_rule(thresholds: Mapping[str, Any]) -> Rule:
    """The rule for the workload's thresholds."""
    schema = make_schema(thresholds)
    bounds = thresholds["evidence"]
    lengths = (bounds["min_quote_length"], bounds["max_quote_length"])
    most = {name: thresholds[name]["max_evidence"] for name in FIELDS if name != "language"}

    def check(shard: Shard) -> pl.DataFrame:
        return pl.concat(
            [
                frame_checks.validate(schema, frame_checks.with_unproven(shard, FIELDS)),
                frame_checks.quotes_out_of_bounds(shard.evidence, lengths, most),
            ]
        )

    return Rule(id="frame", version=1, severity="review", check=check)
