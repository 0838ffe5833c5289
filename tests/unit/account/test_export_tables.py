"""The archive as Parquet and CSV, and writing a file whole or not at all."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_assets.account.export import export_entries
from pipeline_assets.account.export_tables import (
    CONTRACT,
    csv_columns,
    csv_lines,
    parquet_schema,
    write_parquet,
)
from pipeline_assets.account.whole_file import FileExists, NoSuchFolder, NotAFile, whole_file
from pipeline_assets.workloads.equipment_manuals.workload import FIELDS
from resources.contracts import METADATA_KEY
from tests.support.archive_shelf import content
from tests.support.small_archive import Archive

PROVENANCE = dict.fromkeys(
    field.name for field in parquet_schema(FIELDS).field("provenance").type
) | {"processing_version": "v-1"}
CSV_COLUMNS = (
    "document_id",
    "archive_version",
    "title",
    "title_status",
    "product_identifiers",
    "product_identifiers_status",
    "language",
    "language_status",
    "description",
    "description_status",
    "record_id",
    "processing_version",
    "source_checksum",
    "model",
    "thumbnail",
    "published_at",
)
"""What spreadsheets of manuals were made for."""


def row(title: str | None, identifiers: tuple[str, ...] = (), **more: Any) -> dict[str, Any]:
    return {
        "document_id": "d",
        "archive_version": 1,
        "record_id": "r",
        **content(title, identifiers),
        "thumbnail": "t",
        "provenance": PROVENANCE,
        "published_at": "2030-01-02T03:04:05.000000Z",
        **more,
    }


def read(lines: list[str]) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO("".join(lines), newline="")))


def test_parquet_holds_what_the_json_lines_hold(read_archive: Archive, tmp_path: Path) -> None:
    rows = list(export_entries(read_archive.context))
    assert write_parquet(iter(rows), tmp_path / "x.parquet", FIELDS) == len(rows) == 2
    table = pq.read_table(tmp_path / "x.parquet")
    assert {row.pop("workload") for row in rows} == {"equipment_manuals"}
    assert table.to_pylist() == rows
    assert list(rows[0]) == table.column_names
    assert list(rows[0]["provenance"]) == list(PROVENANCE)
    assert pl.read_parquet_metadata(tmp_path / "x.parquet")[METADATA_KEY] == CONTRACT
    titles = pl.scan_parquet(tmp_path / "x.parquet").select(pl.col("title").struct.field("value"))
    assert titles.collect()["value"].to_list() == [row["title"]["value"] for row in rows]


def test_parquet_is_written_in_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline_assets.account.export_tables.ROWS_A_GROUP", 2)
    write_parquet((row(f"t{number}") for number in range(5)), tmp_path / "x.parquet", FIELDS)
    with pq.ParquetFile(tmp_path / "x.parquet") as file:
        assert [file.metadata.row_group(i).num_rows for i in range(3)] == [2, 2, 1]


def test_an_empty_archive_has_columns(tmp_path: Path) -> None:
    assert write_parquet([], tmp_path / "x.parquet", FIELDS) == 0
    assert pq.read_table(tmp_path / "x.parquet").column_names == parquet_schema(FIELDS).names
    assert csv_columns(FIELDS) == CSV_COLUMNS
    assert list(csv_lines([], FIELDS)) == [",".join(CSV_COLUMNS) + "\r\n"]


def test_csv_is_flat() -> None:
    (found,) = read(list(csv_lines([row('T, "quoted"', ("X-1", "A|B", "C\\D"))], FIELDS)))
    assert tuple(found) == CSV_COLUMNS
    assert found["title"] == 'T, "quoted"'
    assert found["product_identifiers"] == "X-1 | A\\|B | C\\\\D"
    assert found["product_identifiers_status"] == "found"
    assert found["processing_version"] == "v-1"
    (absent,) = read(list(csv_lines([row(None)], FIELDS)))
    assert (absent["title"], absent["title_status"]) == ("", "absent")
    assert absent["product_identifiers_status"] == "absent"


def test_a_field_that_an_older_content_lacks_is_absent(tmp_path: Path) -> None:
    older = row("T")
    del older["description"]
    (found,) = read(list(csv_lines([older], FIELDS)))
    assert (found["description"], found["description_status"]) == ("", "absent")
    write_parquet([older], tmp_path / "x.parquet", FIELDS)
    assert pq.read_table(tmp_path / "x.parquet").to_pylist()[0]["description"] is None


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r", "\n", "\uff1d"])
def test_a_formula_is_made_harmless(start: str) -> None:
    value = f'{start}HYPERLINK("http://x")'
    (safe,) = read(list(csv_lines([row(value, (value,), document_id=value)], FIELDS)))
    assert safe["title"] == safe["document_id"] == f"'{value}"
    assert safe["product_identifiers"].startswith("'")
    (raw,) = read(list(csv_lines([row(value)], FIELDS, raw=True)))
    assert raw["title"] == value


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=30), max_size=5))
def test_csv_survives_any_text(titles: list[str]) -> None:
    found = read(list(csv_lines((row(title) for title in titles), FIELDS, raw=True)))
    assert [entry["title"] for entry in found] == titles


def test_a_file_is_whole_or_not_there(tmp_path: Path) -> None:
    file = tmp_path / "x"
    with pytest.raises(ZeroDivisionError), whole_file(file) as fresh:
        fresh.write_text("half")
        raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == []
    with whole_file(file) as fresh:
        fresh.write_text("whole")
        assert not file.exists()
    assert file.read_text() == "whole"
    assert list(tmp_path.iterdir()) == [file]


def test_a_file_is_replaced_only_by_force(tmp_path: Path) -> None:
    file = tmp_path / "x"
    file.write_text("mine")
    with pytest.raises(FileExists, match="--force"), whole_file(file):
        raise AssertionError("nothing is begun")
    with whole_file(file, force=True) as fresh:
        fresh.write_text("yours")
    assert file.read_text() == "yours"


def test_a_file_that_appears_meanwhile_is_kept(tmp_path: Path) -> None:
    file = tmp_path / "x"
    with pytest.raises(FileExists), whole_file(file) as fresh:
        fresh.write_text("mine")
        file.write_text("theirs")
    assert file.read_text() == "theirs"
    assert list(tmp_path.iterdir()) == [file]


def test_a_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "file")
    with whole_file(tmp_path / "link") as fresh:
        fresh.write_text("there")
    assert (tmp_path / "file").read_text() == "there"
    assert (tmp_path / "link").is_symlink()


@pytest.mark.parametrize("place", ["/dev/null", "."])
def test_only_a_regular_file_is_replaced(place: str) -> None:
    with pytest.raises(NotAFile), whole_file(Path(place), force=True):
        raise AssertionError("nothing is begun")


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    """Not the fresh file, whose name nobody gave."""
    with (
        pytest.raises(NoSuchFolder, match=r"no folder .*/nowhere[.]"),
        whole_file(tmp_path / "nowhere" / "archive.csv"),
    ):
        raise AssertionError
