"""Exported rows as tables: Parquet with nested fields, and flat CSV that is safe to open.

A table has the columns of one workload's fields, so its rows are of that workload alone.

Belongs here: the two forms, which are contracts with readers (docs: outlets). Does not belong
here: which rows there are (`export.py`) and where they go (`cli/export.py`).
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline_assets.workloads.fields import STATUS, status_of, values_of
from pipeline_assets.workloads.workload import PublishedField
from resources.contracts import METADATA_KEY

CONTRACT = "export/1"
"""Grows when a column changes its name, type or meaning."""
ROWS_A_GROUP = 10_000
SEPARATOR = " | "
"""Between the values of a list in a CSV cell; a bar or backslash inside one has a backslash."""

_FIELD = pa.struct(
    [
        pa.field("value", pa.string()),
        pa.field("status", pa.string()),
        pa.field(
            "evidence",
            pa.list_(pa.struct([pa.field("page", pa.int32()), pa.field("quote", pa.string())])),
        ),
    ]
)
_PROVENANCE = (
    "processing_version",
    "digest",
    "workload",
    "source_checksum",
    "parser",
    "provider",
    "model",
    "model_revision",
    "manifest_id",
    "manifest_digest",
    "request_digest",
    "accepted_digest",
)
# What makes a spreadsheet take a cell for a formula, with the full-width forms that some accept.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def parquet_schema(fields: Sequence[PublishedField]) -> pa.Schema:
    """One row a document, named and nested as a line of the JSON export (without `workload`)."""
    return pa.schema(
        [
            pa.field("document_id", pa.string(), nullable=False),
            pa.field("archive_version", pa.int32(), nullable=False),
            pa.field("record_id", pa.string(), nullable=False),
            *(pa.field(field.name, pa.list_(_FIELD) if field.many else _FIELD) for field in fields),
            pa.field("thumbnail", pa.string()),
            pa.field(
                "provenance", pa.struct([pa.field(name, pa.string()) for name in _PROVENANCE])
            ),
            pa.field("published_at", pa.string(), nullable=False),
        ],
        metadata=cast(Any, {METADATA_KEY: CONTRACT}),
    )


def csv_columns(fields: Sequence[PublishedField]) -> tuple[str, ...]:
    """The columns of the CSV form: each field has its value, and its status behind it."""
    return (
        "document_id",
        "archive_version",
        *(name for field in fields for name in (field.name, f"{field.name}{STATUS}")),
        "record_id",
        "processing_version",
        "source_checksum",
        "model",
        "thumbnail",
        "published_at",
    )


def write_parquet(
    rows: Iterable[dict[str, Any]], file: Path, fields: Sequence[PublishedField]
) -> int:
    """Write exported rows to a Parquet file, a row group at a time; how many there were."""
    written = 0
    pending = iter(rows)
    schema = parquet_schema(fields)
    with pq.ParquetWriter(file, schema, compression="zstd") as writer:
        while group := list(islice(pending, ROWS_A_GROUP)):
            writer.write_table(pa.Table.from_pylist(group, schema=schema))
            written += len(group)
    return written


def csv_lines(
    rows: Iterable[dict[str, Any]], fields: Sequence[PublishedField], *, raw: bool = False
) -> Iterator[str]:
    """The lines of the CSV form (RFC 4180), the first of them with the names of the columns.

    Args:
        rows: exported rows.
        fields: of the workload that all of them are of.
        raw: values as they are. Otherwise one that a spreadsheet would take for a formula gets an
            apostrophe before it.
    """
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\r\n")

    def line(cells: Iterable[object]) -> str:
        buffer.seek(0)
        buffer.truncate()
        writer.writerow(cells)
        return buffer.getvalue()

    yield line(csv_columns(fields))
    for row in rows:
        cells = _cells(row, fields)
        yield line(cells if raw else map(_harmless, cells))


def _cells(row: dict[str, Any], fields: Sequence[PublishedField]) -> list[object]:
    provenance = row["provenance"]
    return [
        row["document_id"],
        row["archive_version"],
        *(cell for field in fields for cell in (_cell(row, field), status_of(row, field))),
        row["record_id"],
        provenance["processing_version"],
        provenance["source_checksum"],
        provenance["model"],
        row["thumbnail"],
        row["published_at"],
    ]


def _cell(row: dict[str, Any], field: PublishedField) -> str | None:
    values = values_of(row, field)
    if field.many:
        return SEPARATOR.join(_escaped(value) for value in values if value)
    return values[0] if values else None


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("|", "\\|")


def _harmless(cell: object) -> object:
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA) else cell
