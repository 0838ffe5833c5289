"""Checking a frame of decoded values by a Pandera schema, without keeping what failed.

Belongs here: what the rule `frame` of any workload needs: running a schema in slices, findings from
its failure cases, and the checks over several columns. Does not belong here: the columns and their
limits (a workload's `columns.py`), and the rule itself.

The frame is eager: on a lazy one Pandera checks the columns' types and silently nothing else.
Failure cases carry the values they failed on, so only their row and check are kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandera.errors
import pandera.polars as pa
import polars as pl

from pipeline_assets.workloads.workload import Shard

SLICE = 100_000
"""Rows validated at a time: a million all-bad rows at once need 1.5 GB (LIBRARIES)."""
_FOUND_SCHEMA = {"row": pl.Int64, "field": pl.String, "note": pl.String}
VOUCHED_FOR = "found without evidence"
"""The note of a value without a quote; one that a reviewer gives needs none."""


class FrameBroken(Exception):
    """The frame itself is not of the schema, so no row of it can be judged."""


def validate(schema: pa.DataFrameSchema, frame: pl.DataFrame, rows: int = SLICE) -> pl.DataFrame:
    """The findings (row, field, note) of a schema on a frame that has a column `row`.

    A check that names itself `field: note` is about that field, any other about its column.

    Args:
        schema: an eager one.
        frame: what it checks.
        rows: so many at a time.

    Raises:
        FrameBroken: the columns are not those of the schema.
    """
    parts = [_validate(schema, part) for part in frame.iter_slices(rows)]
    return pl.concat([pl.DataFrame(schema=_FOUND_SCHEMA), *parts])


def _validate(schema: pa.DataFrameSchema, frame: pl.DataFrame) -> pl.DataFrame:
    try:
        schema.validate(frame, lazy=True)
    except pandera.errors.SchemaErrors as error:
        return _findings(frame, error.failure_cases)
    return pl.DataFrame(schema=_FOUND_SCHEMA)


def _findings(frame: pl.DataFrame, cases: pl.DataFrame) -> pl.DataFrame:
    broken = cases.filter(pl.col("index").is_null())
    if broken.height:
        names = sorted({str(name) for name in broken["check"]})
        raise FrameBroken(
            f"the values' frame does not fit the acceptance schema ({', '.join(names)}); expected "
            "the workload's own columns of values. No record was judged: this is a fault of the "
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


def with_unproven(
    shard: Shard, single: Sequence[str], list_field: str | None = None
) -> pl.DataFrame:
    """The values with a list `unproven` of fields that are `found` and have no quote.

    Args:
        shard: what is judged.
        single: its fields that are no list.
        list_field: the field whose members are `Shard.items`.
    """
    parts = [
        shard.values.filter(pl.col(f"{name}_status") == "found").select(
            "row", field=pl.lit(name), item=pl.lit(0, dtype=pl.Int64)
        )
        for name in single
    ]
    if list_field is not None:
        parts.append(
            shard.items.filter(pl.col("status") == "found").select(
                "row", field=pl.lit(list_field), item="item"
            )
        )
    unproven = (
        pl.concat(parts)
        .join(shard.evidence, on=["row", "field", "item"], how="anti")
        .group_by("row")
        .agg(unproven=pl.col("field").unique())
    )
    return shard.values.join(unproven, on="row", how="left", maintain_order="left").with_columns(
        pl.col("unproven").fill_null(pl.lit([], dtype=pl.List(pl.String)))
    )


def proven(name: str) -> pa.Check:
    """A check of `with_unproven`'s column: has a field that is found a quote?"""
    return row_check(~pl.col("unproven").list.contains(name), f"{name}: {VOUCHED_FOR}")


def present_unless_absent(name: str) -> pa.Check:
    """A check: has a field a value where it is found, and none where it is absent?"""
    value, status = pl.col(name), pl.col(f"{name}_status")
    fits = (
        pl.when(status == "found")
        .then(value.is_not_null())
        .when(status == "absent")
        .then(value.is_null())
        .otherwise(pl.lit(value=True))
    )
    return row_check(fits, f"{name}: value and status disagree")


def row_check(expression: pl.Expr, name: str) -> pa.Check:
    """A check over several columns of a row."""
    return pa.Check(lambda data: data.lazyframe.select(expression), name=name)


def quotes_out_of_bounds(
    evidence: pl.DataFrame, lengths: tuple[int, int], most: Mapping[str, int]
) -> pl.DataFrame:
    """A quote of one letter proves nothing, a quote of a whole page or of every line neither.

    Args:
        evidence: row, field, item, page, quote.
        lengths: the shortest and the longest quote in code points.
        most: field → how many quotes one value may have; any number where it is not named.
    """
    odd = evidence.filter(~pl.col("quote").str.len_chars().is_between(*lengths))
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
