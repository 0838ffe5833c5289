"""The three things that a published document has, all or none: metadata, search entry, thumbnail.

Belongs here: finding what is incomplete, and making search entries again from the metadata. Does
not belong here: publishing (`publish`), which writes the three together.
"""

from __future__ import annotations

import polars as pl
from sqlalchemy import Connection

from pipeline_assets.account.shards import MAX_SHARD, is_one_of
from resources.ledger.archive import lock_archive
from resources.ledger.archive_content import search_entries_of
from resources.ledger.engine import Ledger


def headless_documents(connection: Connection, ledger: Ledger) -> pl.DataFrame:
    """document_id of documents whose open archive entry no head points at, or the other way."""
    return ledger.dialect.fetch(
        connection,
        "SELECT d.document_id FROM archive_entries e "
        "JOIN documents d ON d.document_no = e.document_no "
        "LEFT JOIN archive_heads h ON h.document_no = e.document_no "
        "WHERE (e.valid_to IS NULL AND (h.entry_no IS NULL OR h.entry_no <> e.entry_no)) "
        "OR (e.valid_to IS NOT NULL AND h.entry_no = e.entry_no) ORDER BY d.document_id",
        {"document_id": pl.String},
    ).unique(maintain_order=True)


def without_thumbnail(connection: Connection, ledger: Ledger) -> pl.DataFrame:
    """document_id of visible entries that name no thumbnail."""
    return ledger.dialect.fetch(
        connection,
        "SELECT d.document_id FROM archive_heads h "
        "JOIN archive_entries e ON e.entry_no = h.entry_no "
        "JOIN documents d ON d.document_no = h.document_no WHERE e.thumbnail = ''",
        {"document_id": pl.String},
    ).sort("document_id")


def unsearchable_entries(connection: Connection, ledger: Ledger) -> pl.DataFrame:
    """entry_no, document_id of visible entries that search cannot find."""
    heads = ledger.dialect.fetch(
        connection,
        "SELECT h.entry_no, d.document_id FROM archive_heads h "
        "JOIN documents d ON d.document_no = h.document_no",
        {"entry_no": pl.Int64, "document_id": pl.String},
    )
    indexed = ledger.dialect.search_entries(connection)
    return heads.join(indexed, on="entry_no", how="anti").sort("document_id")


def stray_search_entries(connection: Connection, ledger: Ledger) -> pl.DataFrame:
    """entry_no of search entries that show something which is not visible."""
    heads = ledger.dialect.fetch(
        connection, "SELECT entry_no FROM archive_heads", {"entry_no": pl.Int64}
    )
    indexed = ledger.dialect.search_entries(connection)
    return indexed.join(heads, on="entry_no", how="anti").sort("entry_no")


def rebuild_search_entries(ledger: Ledger) -> int:
    """Make missing search entries again and drop stray ones; returns how many of both."""
    with ledger.write() as connection:
        # Whoever publishes waits: nothing that is read here is out of date when it is written.
        lock_archive(connection, ledger)
        stray = stray_search_entries(connection, ledger)
        if not stray.is_empty():
            ledger.dialect.stage(connection, "stage_stray", stray)
            ledger.dialect.drop_search(connection, "stage_stray")
        missing = unsearchable_entries(connection, ledger)
        for part in missing.iter_slices(MAX_SHARD):
            ledger.dialect.add_search(connection, _entries(connection, ledger, part["entry_no"]))
    return stray.height + missing.height


def _entries(connection: Connection, ledger: Ledger, numbers: pl.Series) -> pl.DataFrame:
    stored = ledger.dialect.fetch(
        connection,
        "SELECT entry_no, content FROM archive_entries "  # noqa: S608 - integers only
        f"WHERE {is_one_of('entry_no', numbers)}",
        {"entry_no": pl.Int64, "content": pl.String},
    )
    return search_entries_of(stored)
