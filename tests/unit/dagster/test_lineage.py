"""Column lineage: it names columns that exist, and leads from every archive field to documents."""

from __future__ import annotations

import dagster as dg
import pytest

from pipeline_assets.definitions import ASSETS
from pipeline_assets.publish.asset import archive_columns, archive_lineage
from tests.support.made_up_workload import FIELDS

Column = tuple[str, str]


def columns() -> set[Column]:
    return {
        (spec.key.to_user_string(), column.name)
        for asset in ASSETS
        for spec in asset.specs
        for column in spec.metadata["dagster/column_schema"].columns
    }


def lineage() -> dict[Column, list[Column]]:
    return {
        (spec.key.to_user_string(), name): [
            (dep.asset_key.to_user_string(), dep.column_name) for dep in deps
        ]
        for asset in ASSETS
        for spec in asset.specs
        if isinstance(found := spec.metadata.get("dagster/column_lineage"), dg.TableColumnLineage)
        for name, deps in found.deps_by_column.items()
    }


def origins(column: Column, known: dict[Column, list[Column]]) -> set[Column]:
    """Where a column comes from in the end."""
    before = known.get(column, [])
    return {column} if not before else {end for dep in before for end in origins(dep, known)}


def test_lineage_names_columns_that_are_there() -> None:
    known = lineage()
    assert {*known, *(dep for deps in known.values() for dep in deps)} <= columns()


def test_lineage_follows_the_assets() -> None:
    order = [asset.key.to_user_string() for asset in ASSETS]
    for (asset, name), deps in lineage().items():
        for before, _ in deps:
            assert order.index(before) < order.index(asset), (asset, name)


@pytest.mark.parametrize("field", ["content", "thumbnail", "document_id"])
def test_every_archive_field_leads_to_the_documents(field: str) -> None:
    found = origins(("published_archive", field), lineage())
    assert {asset for asset, _ in found} == {"source_documents"}


def test_a_materialisation_shows_the_fields_of_its_workload() -> None:
    shown = {column.name: column for column in archive_columns(FIELDS).columns}
    assert list(shown)[-4:] == [
        "content.subject",
        "content.kind",
        "content.people",
        "content.tongue",
    ]
    assert [shown[f"content.{name}"].type for name in ("kind", "people")] == ["Struct", "List"]
    assert "Kind of note" in (shown["content.kind"].description or "")
    deps = archive_lineage(FIELDS).deps_by_column
    assert set(deps) <= set(shown)
    assert {(dep.asset_key.to_user_string(), dep.column_name) for dep in deps["content.kind"]} == {
        ("validated_staging", "content")
    }


def test_values_lead_through_every_stage() -> None:
    known = lineage()
    seen, open_columns = set(), [("published_archive", "content")]
    while open_columns:
        column = open_columns.pop()
        seen.add(column[0])
        open_columns += known.get(column, [])
    assert seen >= {
        "published_archive",
        "validated_staging",
        "provider_results",
        "provider_batches",
        "manifest",
        "parsed_documents",
        "source_documents",
    }
