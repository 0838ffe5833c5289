"""Exported rows as tables: Parquet with nested fields, and flat CSV that is safe to open.

Belongs here: the two forms, which are contracts with readers (docs: outlets). Does not belong
here: which rows there are (`export.py`) and where they go (`cli/export.py`).
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq

from resources.contracts import METADATA_KEY

CONTRACT = "export/1"
"""Grows when a column changes its name, type or meaning."""
ROWS_A_GROUP = 10_000
SEPARATOR = " | "
"""Between product identifiers in a CSV cell; a bar or backslash inside one has a backslash."""

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
PARQUET_SCHEMA = pa.schema(
    [
        pa.field("document_id", pa.string(), nullable=False),
        pa.field("archive_version", pa.int32(), nullable=False),
        pa.field("record_id", pa.string(), nullable=False),
        pa.field("title", _FIELD),
        pa.field("product_identifiers", pa.list_(_FIELD)),
        pa.field("language", _FIELD),
        pa.field("description", _FIELD),
        pa.field("thumbnail", pa.string()),
        pa.field("provenance", pa.struct([pa.field(name, pa.string()) for name in _PROVENANCE])),
        pa.field("published_at", pa.string(), nullable=False),
    ],
    metadata=cast(Any, {METADATA_KEY: CONTRACT}),
)
"""One row a document, named and nested as a line of the JSON export."""

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
# What makes a spreadsheet take a cell for a formula, with the full-width forms that some accept.
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def write_parquet(rows: Iterable[dict[str, Any]], file: Path) -> int:
    """Write exported rows to a Parquet file, a row group at a time; how many there were."""
    written = 0
    pending = iter(rows)
    with pq.ParquetWriter(file, PARQUET_SCHEMA, compression="zstd") as writer:
        while group := list(islice(pending, ROWS_A_GROUP)):
            writer.write_table(pa.Table.from_pylist(group, schema=PARQUET_SCHEMA))
            written += len(group)
    return written


def csv_lines(rows: Iterable[dict[str, Any]], *, raw: bool = False) -> Iterator[str]:
    """The lines of the CSV form (RFC 4180), the first of them with the names of the columns.

    Args:
        rows: exported rows.
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

    yield line(CSV_COLUMNS)
    for row in rows:
        cells = _cells(row)
        yield line(cells if raw else map(_harmless, cells))


def _cells(row: dict[str, Any]) -> list[object]:
    provenance = row["provenance"]
    identifiers = row["product_identifiers"]
    return [
        row["document_id"],
        row["archive_version"],
        row["title"]["value"],
        row["title"]["status"],
        SEPARATOR.join(_escaped(item["value"]) for item in identifiers if item["value"]),
        _status_of_all([item["status"] for item in identifiers]),
        row["language"]["value"],
        row["language"]["status"],
        row["description"]["value"],
        row["description"]["status"],
        row["record_id"],
        provenance["processing_version"],
        provenance["source_checksum"],
        provenance["model"],
        row["thumbnail"],
        row["published_at"],
    ]


def _escaped(identifier: str) -> str:
    return identifier.replace("\\", "\\\\").replace("|", "\\|")


def _status_of_all(statuses: list[str]) -> str:
    """Of a list: absent where it is empty, else the least certain of its items."""
    return "uncertain" if "uncertain" in statuses else "found" if "found" in statuses else "absent"


def _harmless(cell: object) -> object:
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA) else cell
