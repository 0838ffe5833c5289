"""The archive: published entries, the head of each document, search and deliveries.

Belongs here: the one transaction that publishes a shard, and what is visible. Does not belong
here: choosing what may be published (`publish`), and showing former entries again
(`archive_visibility.py`).

The archive is append-only: an entry is written once and ends once. Each names the change
(`archive_changes.py`) that made it visible and the one that ended it.
"""

from __future__ import annotations

import polars as pl
from sqlalchemy import Connection, text

from resources.ledger.allocate import next_number
from resources.ledger.engine import Ledger
from resources.ledger.schema import archive_entries, archive_heads, deliveries

OPERATION = "publish"

CANDIDATE_SCHEMA = {
    "record_no": pl.Int64,
    "document_no": pl.Int64,
    "request_digest": pl.String,
    "content": pl.String,
    "values_digest": pl.String,
    "thumbnail": pl.String,
    "title": pl.String,
    "identifiers": pl.String,
    "description": pl.String,
    "language": pl.String,
    "promotion": pl.Int64,
}
"""What may be published, one row a record and document; `promotion` counts from 1."""


def lock_archive(connection: Connection, ledger: Ledger) -> None:
    """Hold the right to publish to the end of the transaction: heads read after it stay true."""
    ledger.dialect.lock_chain(connection, "archive")


def delivered(connection: Connection, ledger: Ledger, candidates: pl.DataFrame) -> pl.DataFrame:
    """Candidates whose delivery key is in the ledger already: record_no, entry_no."""
    ledger.dialect.stage(
        connection,
        "stage_delivery",
        candidates.select("record_no", "request_digest", "values_digest"),
    )
    return ledger.dialect.fetch(
        connection,
        "SELECT d.record_no, d.entry_no FROM stage_delivery s "
        "JOIN deliveries d ON d.record_no = s.record_no AND d.operation = ? "
        "AND d.request_digest = s.request_digest AND d.accepted_digest = s.values_digest "
        "AND d.promotion = 1",
        {"record_no": pl.Int64, "entry_no": pl.Int64},
        (OPERATION,),
    )


def publish_entries(
    connection: Connection,
    ledger: Ledger,
    version_no: int,
    candidates: pl.DataFrame,
    at: str,
    change_no: int,
) -> int:
    """Publish candidates of one processing version that were never delivered.

    Args:
        connection: the write transaction that also moves the records.
        ledger: the ledger.
        version_no: their processing version.
        candidates: `CANDIDATE_SCHEMA`, at most one record a document.
        at: the time of publication.
        change_no: the change that it is part of.

    Returns:
        How many earlier entries were replaced; they stay, closed, and leave the search.
    """
    of_version = candidates.with_columns(version_no=pl.lit(version_no, dtype=pl.Int64))
    return show_entries(connection, ledger, of_version, at, change_no)


def show_entries(
    connection: Connection, ledger: Ledger, candidates: pl.DataFrame, at: str, change_no: int
) -> int:
    """Make new entries visible: entry, head, search and delivery together.

    Args:
        connection: the write transaction.
        ledger: the ledger.
        candidates: `CANDIDATE_SCHEMA` and version_no, at most one record a document.
        at: the time of publication.
        change_no: the change that it is part of.

    Returns:
        How many earlier entries were replaced; they stay, closed, and leave the search.
    """
    if candidates.is_empty():
        return 0
    dialect = ledger.dialect
    lock_archive(connection, ledger)
    heads = _heads(connection, ledger, candidates)
    first = next_number(connection, dialect, archive_entries.c.entry_no)
    entries = (
        candidates.join(heads, on="document_no", how="left", maintain_order="left")
        .with_row_index("index")
        .with_columns(
            entry_no=pl.col("index").cast(pl.Int64) + first,
            archive_version=pl.col("newest_version").fill_null(0) + 1,
        )
    )
    dialect.load(
        connection,
        archive_entries,
        entries.select(
            "entry_no",
            "document_no",
            "record_no",
            "archive_version",
            "content",
            "thumbnail",
            "version_no",
            "promotion",
            content_digest="values_digest",
            valid_from=pl.lit(at),
            change_no=pl.lit(change_no, dtype=pl.Int64),
        ),
    )
    replaced = _replace_heads(connection, ledger, entries, at, change_no)
    dialect.add_search(
        connection,
        entries.select("entry_no", "title", "identifiers", "description", "language"),
    )
    dialect.load(
        connection,
        deliveries,
        entries.select(
            "record_no",
            "request_digest",
            "entry_no",
            operation=pl.lit(OPERATION),
            accepted_digest="values_digest",
            promotion="promotion",
            disposition=pl.lit("published"),
            delivered_at=pl.lit(at),
        ),
    )
    return replaced


def end_entries(
    connection: Connection, ledger: Ledger, ended: pl.DataFrame, at: str, change_no: int
) -> None:
    """Take documents out of the archive: their visible entries end without a successor.

    Args:
        connection: the write transaction.
        ledger: the ledger.
        ended: document_no, entry_no of visible entries.
        at: when they end.
        change_no: the change that it is part of.
    """
    if ended.is_empty():
        return
    lock_archive(connection, ledger)
    ledger.dialect.stage(connection, "stage_replaced", ended.select("document_no", "entry_no"))
    connection.execute(
        text(
            "DELETE FROM archive_heads WHERE document_no IN "
            "(SELECT document_no FROM stage_replaced)"
        )
    )
    _close(connection, ledger, at, change_no)


def _heads(connection: Connection, ledger: Ledger, candidates: pl.DataFrame) -> pl.DataFrame:
    """What documents show and their newest archive version; none of those that have no entry.

    A document that left the archive has a newest version and shows nothing.
    """
    ledger.dialect.stage(connection, "stage_heads", candidates.select("document_no"))
    return ledger.dialect.fetch(
        connection,
        "SELECT e.document_no, h.entry_no, MAX(e.archive_version) FROM stage_heads s "
        "JOIN archive_entries e ON e.document_no = s.document_no "
        "LEFT JOIN archive_heads h ON h.document_no = s.document_no "
        "GROUP BY e.document_no, h.entry_no",
        {"document_no": pl.Int64, "head_entry": pl.Int64, "newest_version": pl.Int64},
    )


def _replace_heads(
    connection: Connection, ledger: Ledger, entries: pl.DataFrame, at: str, change_no: int
) -> int:
    """Point the heads at the new entries, close the old ones and take them out of the search."""
    fresh = entries.filter(pl.col("head_entry").is_null())
    ledger.dialect.load(connection, archive_heads, fresh.select("document_no", "entry_no"))
    older = entries.filter(pl.col("head_entry").is_not_null())
    if older.is_empty():
        return 0
    ledger.dialect.stage(
        connection,
        "stage_replaced",
        older.select("document_no", new_entry="entry_no", entry_no="head_entry"),
    )
    connection.execute(
        text(
            "UPDATE archive_heads SET entry_no = s.new_entry FROM stage_replaced s "
            "WHERE archive_heads.document_no = s.document_no"
        )
    )
    _close(connection, ledger, at, change_no)
    return older.height


def _close(connection: Connection, ledger: Ledger, at: str, change_no: int) -> None:
    """End the entries of `stage_replaced` and take them out of the search."""
    connection.execute(
        text(
            "UPDATE archive_entries SET valid_to = :at, closed_by = :change_no "
            "WHERE entry_no IN (SELECT entry_no FROM stage_replaced)"
        ),
        {"at": at, "change_no": change_no},
    )
    ledger.dialect.drop_search(connection, "stage_replaced")
