"""Invariant 8 read back: a published document has metadata, search entry and thumbnail.

Belongs here: finding what is missing. Does not belong here: repairing it
(`pipeline_assets/account`) and publishing.
"""

from __future__ import annotations

import polars as pl
from sqlalchemy import Connection, select

from resources.context import Context
from resources.ledger.engine import Ledger
from resources.ledger.schema import archive_entries

INCOMPLETE_SCHEMA = {
    "document_id": pl.String,
    "entry_no": pl.Int64,
    "missing": pl.String,
}
"""`missing`: metadata (a published record, a head or a search entry without its visible entry),
head (an entry that no head points at), search, or thumbnail (its file)."""

ROWS_A_FETCH = 10_000
_NAMED = {"document_id": pl.String, "entry_no": pl.Int64}


def incomplete_entries(context: Context) -> pl.DataFrame:
    """Every published document that lacks one of its representations.

    Returns:
        `INCOMPLETE_SCHEMA`, one row a missing thing, sorted; document_id is null for a search
        entry that belongs to nothing.
    """
    ledger = context.ledger
    with ledger.read() as connection:
        visible = ledger.dialect.fetch(
            connection,
            "SELECT entry_no FROM archive_entries WHERE valid_to IS NULL",
            {"entry_no": pl.Int64},
        )
        searchable = ledger.dialect.search_entries(connection)
        unsearchable = visible.join(searchable, on="entry_no", how="anti")
        stray = searchable.join(visible, on="entry_no", how="anti")
        gone = _lost_thumbnails(connection, context)
        parts = [
            _missing(_unbacked(connection, ledger), "metadata"),
            _missing(stray.with_columns(document_id=pl.lit(None, dtype=pl.String)), "metadata"),
            _missing(_headless(connection, ledger), "head"),
        ]
        # Names and digests of everything are fetched only where something is missing.
        if gone or not unsearchable.is_empty():
            named = _named(connection, ledger)
            parts += [
                _missing(named.join(unsearchable, on="entry_no", how="semi"), "search"),
                _missing(named.filter(pl.col("thumbnail").is_in(gone)), "thumbnail"),
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
        _NAMED,
    )


def _headless(connection: Connection, ledger: Ledger) -> pl.DataFrame:
    """Visible entries that no head points at."""
    return ledger.dialect.fetch(
        connection,
        "SELECT d.document_id, e.entry_no FROM archive_entries e "
        "JOIN documents d ON d.document_no = e.document_no "
        "LEFT JOIN archive_heads h ON h.document_no = e.document_no "
        "WHERE e.valid_to IS NULL AND (h.entry_no IS NULL OR h.entry_no <> e.entry_no)",
        _NAMED,
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


def _named(connection: Connection, ledger: Ledger) -> pl.DataFrame:
    return ledger.dialect.fetch(
        connection,
        "SELECT d.document_id, e.entry_no, e.thumbnail FROM archive_entries e "
        "JOIN documents d ON d.document_no = e.document_no WHERE e.valid_to IS NULL",
        {**_NAMED, "thumbnail": pl.String},
    )


def _missing(rows: pl.DataFrame, what: str) -> pl.DataFrame:
    return rows.select("document_id", "entry_no", missing=pl.lit(what))
