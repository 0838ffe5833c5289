"""One registry: what Pandera checks and what Dagster shows are made of the same columns."""

from __future__ import annotations

import pandera.errors
import pandera.polars as pa
import polars as pl
import pytest
import yaml

from pipeline_assets.accept.asset import STAGING_COLUMNS, judged_columns
from pipeline_assets.workloads.column_registry import ColumnRule, pandera_column
from pipeline_assets.workloads.equipment_manuals.columns import VALUE_SCHEMA, value_columns
from pipeline_assets.workloads.equipment_manuals.rules.frame import make_schema
from pipeline_assets.workloads.equipment_manuals.workload import load

ACCEPTANCES = load().acceptances


@pytest.mark.parametrize("name", ACCEPTANCES)
def test_the_boundary_checks_the_columns_that_are_shown(name: str) -> None:
    acceptance = ACCEPTANCES[name]
    limits = yaml.safe_load(acceptance.thresholds)
    assert acceptance.columns == value_columns(limits)
    checked = dict(make_schema(limits).columns)
    del checked["unproven"]  # made for the boundary from values and evidence
    assert list(checked) == list(VALUE_SCHEMA) == [column.name for column in acceptance.columns]
    assert {name: column.nullable for name, column in checked.items()} == {
        column.name: column.nullable for column in acceptance.columns
    }
    shown = judged_columns(acceptance.columns).columns
    assert shown[: len(STAGING_COLUMNS.columns)] == STAGING_COLUMNS.columns
    values = {column.name: column for column in shown[len(STAGING_COLUMNS.columns) :]}
    assert list(values) == [f"content.{name}" for name in VALUE_SCHEMA]
    shortest, longest = limits["title"]["min_length"], limits["title"]["max_length"]
    assert values["content.title"].constraints.other == [
        f"{shortest} to {longest} characters",
        "has a letter or digit",
    ]
    assert all(column.description for column in values.values())


@pytest.mark.parametrize(
    ("column", "good", "bad"),
    [
        pytest.param(
            ColumnRule("x", pl.String, "", allowed=("a", "b")), "a", "c", id="closed-list"
        ),
        pytest.param(ColumnRule("x", pl.String, "", length=(2, 3)), "äöü", "äöüß", id="too-long"),
        pytest.param(ColumnRule("x", pl.String, "", length=(2, 3)), "äö", "ä", id="too-short"),
        pytest.param(ColumnRule("x", pl.String, "", needs_word=True), "-7", "--", id="no-word"),
        pytest.param(
            ColumnRule("x", pl.String, "", pattern=("^[a-z]{2}$", "code")),
            "en",
            "eng",
            id="pattern",
        ),
        pytest.param(ColumnRule("x", pl.String, ""), "", None, id="no-value"),
    ],
)
def test_a_limit_that_is_told_is_checked(column: ColumnRule, good: str, bad: str | None) -> None:
    schema = pa.DataFrameSchema({"x": pandera_column(column)})
    schema.validate(pl.DataFrame({"x": [good]}, schema={"x": pl.String}), lazy=True)
    with pytest.raises(pandera.errors.SchemaErrors):
        schema.validate(pl.DataFrame({"x": [bad]}, schema={"x": pl.String}), lazy=True)
    assert len(column.limits) == (0 if bad is None else 1)
