"""Invariant 8 read back: a published document has metadata, search entry and thumbnail.

Belongs here: finding what is missing. Does not belong here: repairing it
(`pipeline_assets/account`) and publishing.
"""

from __future__ import annotations

import polars as pl
from sqlalchemy import Connection, select

from resources.context import Context
from resources.ledger.engine import Ledger
from resources.ledger.representations import (
    NAMED_SCHEMA,
    headless_entries,
    name_entries,
    stray_search_entries,
    unsearchable_entries,
)
from resources.ledger.schema import archive_entries

INCOMPLETE_SCHEMA = {
    "document_id": pl.String,
    "entry_no": pl.Int64,
    "missing": pl.String,
}
"""`missing`: metadata (a published record, a head or a search entry without its visible entry),
head (an entry that no head points at), search, or thumbnail (its file)."""

ROWS_A_FETCH = 10_000


def incomplete_entries(context: Context) -> pl.DataFrame:
    """Every published document that lacks one of its representations.

    Returns:
        `INCOMPLETE_SCHEMA`, one row a missing thing, sorted; document_id is null for a search
        entry that belongs to nothing.
    """
    ledger = context.ledger
    with ledger.read() as connection:
        stray = stray_search_entries(connection, ledger)
        unsearchable = unsearchable_entries(connection, ledger)
        parts = [
            _missing(_unbacked(connection, ledger), "metadata"),
            _missing(stray.with_columns(document_id=pl.lit(None, dtype=pl.String)), "metadata"),
            _missing(headless_entries(connection, ledger), "head"),
            _missing(name_entries(connection, ledger, unsearchable), "search"),
            _missing(_without_thumbnail(connection, context), "thumbnail"),
        ]
    return pl.concat(parts).unique().sort("document_id", "entry_no", "missing")


def _unbacked(connection: Connection, ledger: Ledger) -> pl.DataFrame:
    """Heads and published records without a visible, or any, entry."""
    return ledger.dialect.fetch(
        connection,
        "SELECT d.document_id, h.entry_no FROM archive_heads h "
        "JOIN documents d ON d.document_no = h.document_no "
        "LEFT JOIN archive_entries e ON e.entry_no = h.entry_no AND e.valid_to IS NULL "
        "WHERE e.entry_no IS NULL "
        "UNION ALL "
        "SELECT d.document_id, NULL FROM records r "
        "JOIN record_state s ON s.record_no = r.record_no "
        "JOIN documents d ON d.document_no = r.document_no "
        "WHERE s.state = 'published' AND r.record_no NOT IN "
        "(SELECT record_no FROM archive_entries)",
        NAMED_SCHEMA,
    )


def _lost_thumbnails(connection: Connection, context: Context) -> list[str]:
    """Digests that visible entries name and the store does not have."""
    named = (
        select(archive_entries.c.thumbnail)
        .where(archive_entries.c.valid_to.is_(None))
        .distinct()
        .execution_options(yield_per=ROWS_A_FETCH)
    )
    return [
        digest
        for digest in connection.execute(named).scalars()
        if not context.artifacts.has("thumbnail", digest)
    ]


def _without_thumbnail(connection: Connection, context: Context) -> pl.DataFrame:
    """Visible entries whose thumbnail's file is gone; names are read only where one is."""
    gone = _lost_thumbnails(connection, context)
    if not gone:
        return pl.DataFrame(schema=NAMED_SCHEMA)
    entries = context.ledger.dialect.fetch(
        connection,
        "SELECT entry_no, thumbnail FROM archive_entries WHERE valid_to IS NULL",
        {"entry_no": pl.Int64, "thumbnail": pl.String},
    ).filter(pl.col("thumbnail").is_in(gone))
    return name_entries(connection, context.ledger, entries)


def _missing(rows: pl.DataFrame, what: str) -> pl.DataFrame:
    return rows.select("document_id", "entry_no", missing=pl.lit(what))
