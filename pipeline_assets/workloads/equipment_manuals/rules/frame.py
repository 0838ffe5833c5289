"""Rule `frame`: types, enumerations, lengths and cross-field rules, as a Pandera schema.

What one column may hold stands in the registry (`columns.value_columns`), which Dagster's column
schema is made of too; here are the rules over several columns.

The frame is eager: on a lazy one Pandera checks the columns' types and silently nothing else.
Failure cases carry the values they failed on, so only their row and check are kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandera.errors
import pandera.polars as pa
import polars as pl

from pipeline_assets.workloads.column_registry import pandera_column
from pipeline_assets.workloads.equipment_manuals.columns import value_columns
from pipeline_assets.workloads.workload import Rule, Shard

SLICE = 100_000
"""Rows validated at a time: a million all-bad rows at once need 1.5 GB (LIBRARIES)."""


class FrameBroken(Exception):
    """The frame itself is not of the schema, so no row of it can be judged."""


def make_schema(thresholds: Mapping[str, Any]) -> pa.DataFrameSchema:
    """The acceptance schema for the workload's thresholds."""
    limit = thresholds["product_identifiers"]["max_count"]
    columns = {column.name: pandera_column(column) for column in value_columns(thresholds)}
    columns["unproven"] = pa.Column(pl.List(pl.String))
    checks = [
        *(_present_unless_absent(name) for name in ("title", "language", "description")),
        _row_check(pl.col("identifiers").list.len() <= limit, "product_identifiers: too many"),
        _row_check(
            ~pl.col("identifiers").list.eval(pl.element().is_null()).list.any(),
            "product_identifiers: no value",
        ),
        _row_check(
            pl.col("identifiers").list.n_unique() == pl.col("identifiers").list.len(),
            "product_identifiers: repeated",
        ),
        *(
            _row_check(~pl.col("unproven").list.contains(name), f"{name}: found without evidence")
            for name in ("title", "language", "description", "product_identifiers")
        ),
    ]
    return pa.DataFrameSchema(columns, checks=checks, strict=True)


def make_rule(thresholds: Mapping[str, Any]) -> Rule:
    """The rule for the workload's thresholds."""
    schema = make_schema(thresholds)

    def check(shard: Shard) -> pl.DataFrame:
        frame = with_unproven(shard)
        parts = [_validate(schema, part) for part in frame.iter_slices(SLICE)]
        return pl.concat([*parts, _out_of_bounds(shard.evidence, thresholds)])

    return Rule(id="frame", version=1, severity="review", check=check)


def with_unproven(shard: Shard) -> pl.DataFrame:
    """The values with a list of fields that are `found` and have no quote."""
    found = pl.concat(
        [
            *(
                shard.values.filter(pl.col(f"{name}_status") == "found").select(
                    "row", field=pl.lit(name), item=pl.lit(0, dtype=pl.Int64)
                )
                for name in ("title", "language", "description")
            ),
            shard.items.filter(pl.col("status") == "found").select(
                "row", field=pl.lit("product_identifiers"), item="item"
            ),
        ]
    )
    unproven = (
        found.join(shard.evidence, on=["row", "field", "item"], how="anti")
        .group_by("row")
        .agg(unproven=pl.col("field").unique())
    )
    return shard.values.join(unproven, on="row", how="left", maintain_order="left").with_columns(
        pl.col("unproven").fill_null(pl.lit([], dtype=pl.List(pl.String)))
    )


def _out_of_bounds(evidence: pl.DataFrame, thresholds: Mapping[str, Any]) -> pl.DataFrame:
    """A quote of one letter proves nothing, a quote of a whole page or of every line neither."""
    limits = thresholds["evidence"]
    most = {
        name: part["max_evidence"] for name, part in thresholds.items() if "max_evidence" in part
    }
    length = pl.col("quote").str.len_chars()
    odd = evidence.filter(
        ~length.is_between(limits["min_quote_length"], limits["max_quote_length"])
    )
    crowded = (
        evidence.group_by("row", "field", "item")
        .len()
        .filter(pl.col("len") > pl.col("field").replace_strict(most, default=None))
    )
    return (
        pl.concat(
            [
                odd.select("row", "field", note=pl.lit("a quote is too short or too long")),
                crowded.select("row", "field", note=pl.lit("too many quotes")),
            ]
        )
        .unique()
        .sort("row", "field", "note")
    )


def _validate(schema: pa.DataFrameSchema, frame: pl.DataFrame) -> pl.DataFrame:
    try:
        schema.validate(frame, lazy=True)
    except pandera.errors.SchemaErrors as error:
        return _findings(frame, error.failure_cases)
    return pl.DataFrame(schema={"row": pl.Int64, "field": pl.String, "note": pl.String})


def _findings(frame: pl.DataFrame, cases: pl.DataFrame) -> pl.DataFrame:
    broken = cases.filter(pl.col("index").is_null())
    if broken.height:
        names = sorted({str(name) for name in broken["check"]})
        raise FrameBroken(
            f"the values' frame does not fit the acceptance schema ({', '.join(names)}); expected "
            "the columns of `columns.VALUE_SCHEMA`. No record was judged: this is a fault of the "
            "workload's code, not of a record."
        )
    named = cases.select(
        index=pl.col("index").cast(pl.Int64), column="column", check=pl.col("check").cast(pl.String)
    ).with_columns(
        field=pl.when(pl.col("check").str.contains(": ", literal=True))
        .then(pl.col("check").str.split(": ").list.first())
        .otherwise(pl.col("column").str.strip_suffix("_status")),
        note=pl.col("check").str.split(": ").list.last(),
    )
    rows = frame.select("row").with_row_index("index").with_columns(pl.col("index").cast(pl.Int64))
    return (
        named.join(rows, on="index")
        .select("row", "field", "note")
        .unique()
        .sort("row", "field", "note")
    )


def _present_unless_absent(name: str) -> pa.Check:
    value, status = pl.col(name), pl.col(f"{name}_status")
    fits = (
        pl.when(status == "found")
        .then(value.is_not_null())
        .when(status == "absent")
        .then(value.is_null())
        .otherwise(pl.lit(value=True))
    )
    return _row_check(fits, f"{name}: value and status disagree")


def _row_check(expression: pl.Expr, name: str) -> pa.Check:
    return pa.Check(lambda data: data.lazyframe.select(expression), name=name)
