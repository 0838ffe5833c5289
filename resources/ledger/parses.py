"""The parse cache: what (checksum, parser key) gave.

Belongs here: storing and finding parses. Does not belong here: parsing (`ingest/parsing`).
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl
from sqlalchemy import Connection, text

from resources.ledger.engine import Ledger
from resources.ledger.schema import parses

PARSE_SCHEMA = {
    "checksum": pl.String,
    "parser_key": pl.String,
    "excluded": pl.String,
    "detail": pl.String,
    "media_type": pl.String,
    "page_count": pl.Int64,
    "language": pl.String,
    "languages": pl.String,
    "partial": pl.Int64,
    "notes": pl.String,
    "text_pack": pl.String,
    "thumbnail": pl.String,
    "wall_ms": pl.Int64,
    "cpu_ms": pl.Int64,
    "peak_rss_bytes": pl.Int64,
    "cacheable": pl.Int64,
    "parsed_at": pl.String,
}


def missing_parses(ledger: Ledger, parser_key: str) -> pl.DataFrame:
    """Checksums of present documents that were not parsed under `parser_key`.

    Returns:
        checksum, document_id (the first by id that has these bytes), bytes; sorted by id.
    """
    with ledger.read() as connection:
        return ledger.dialect.fetch(
            connection,
            "SELECT v.checksum, MIN(d.document_id), MAX(v.bytes) FROM source_entries e "
            "JOIN documents d ON d.document_no = e.document_no "
            "JOIN source_versions v ON v.source_version_no = e.source_version_no "
            "LEFT JOIN parses p ON p.checksum = v.checksum AND p.parser_key = ? "
            "AND NOT (p.cacheable = 0 AND p.excluded IS NOT NULL) "
            "WHERE e.to_snapshot IS NULL AND p.checksum IS NULL GROUP BY v.checksum",
            {"checksum": pl.String, "document_id": pl.String, "bytes": pl.Int64},
            (parser_key,),
        ).sort("document_id")


def store_parses(connection: Connection, ledger: Ledger, rows: pl.DataFrame) -> None:
    """Add parses (`PARSE_SCHEMA`); one that is there stays, unless it was to be tried again."""
    ledger.dialect.stage(connection, "stage_parses", rows.select(list(PARSE_SCHEMA)))
    connection.execute(
        text(
            "DELETE FROM parses WHERE cacheable = 0 AND excluded IS NOT NULL AND EXISTS "
            "(SELECT 1 FROM stage_parses s WHERE s.checksum = parses.checksum "
            "AND s.parser_key = parses.parser_key)"
        )
    )
    names = ", ".join(PARSE_SCHEMA)
    connection.execute(
        text(
            f"INSERT INTO {parses.name} ({names}) SELECT {names} FROM stage_parses WHERE true "  # noqa: S608
            "ON CONFLICT (checksum, parser_key) DO NOTHING"
        )
    )


def load_parses(ledger: Ledger, parser_key: str, columns: Sequence[str]) -> pl.DataFrame:
    """These columns of every parse under `parser_key` of a document that is present."""
    names = ", ".join(f"p.{name}" for name in columns)
    with ledger.read() as connection:
        return ledger.dialect.fetch(
            connection,
            f"SELECT {names} FROM parses p WHERE p.parser_key = ? AND p.checksum IN "  # noqa: S608
            "(SELECT v.checksum FROM source_entries e JOIN source_versions v "
            "ON v.source_version_no = e.source_version_no WHERE e.to_snapshot IS NULL)",
            {name: PARSE_SCHEMA[name] for name in columns},
            (parser_key,),
        )
