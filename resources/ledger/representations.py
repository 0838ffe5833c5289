"""Whether head, entry and search entry of the archive agree, read back set by set.

Belongs here: what is missing or stray between the three. Does not belong here: thumbnails, which
are files (`publish/completeness.py`), and mending (`pipeline_assets/account`).
"""

from __future__ import annotations

import polars as pl
from sqlalchemy import Connection

from resources.ledger.engine import Ledger

NAMED_SCHEMA = {"document_id": pl.String, "entry_no": pl.Int64}


def visible_entries(connection: Connection, ledger: Ledger) -> pl.DataFrame:
    """entry_no of every entry that people see: what the heads point at."""
    return ledger.dialect.fetch(
        connection, "SELECT entry_no FROM archive_heads", {"entry_no": pl.Int64}
    )


def headless_entries(connection: Connection, ledger: Ledger) -> pl.DataFrame:
    """Entries (`NAMED_SCHEMA`) that are open and not the head, or closed and still the head."""
    return ledger.dialect.fetch(
        connection,
        "SELECT d.document_id, e.entry_no FROM archive_entries e "
        "JOIN documents d ON d.document_no = e.document_no "
        "LEFT JOIN archive_heads h ON h.document_no = e.document_no "
        "WHERE (e.valid_to IS NULL AND (h.entry_no IS NULL OR h.entry_no <> e.entry_no)) "
        "OR (e.valid_to IS NOT NULL AND h.entry_no = e.entry_no)",
        NAMED_SCHEMA,
    ).sort("document_id", "entry_no")


def unsearchable_entries(connection: Connection, ledger: Ledger) -> pl.DataFrame:
    """entry_no of visible entries that search cannot find."""
    searchable = ledger.dialect.search_entries(connection)
    return (
        visible_entries(connection, ledger)
        .join(searchable, on="entry_no", how="anti")
        .sort("entry_no")
    )


def stray_search_entries(connection: Connection, ledger: Ledger) -> pl.DataFrame:
    """entry_no of search entries that show something which is not visible."""
    visible = visible_entries(connection, ledger)
    return (
        ledger.dialect.search_entries(connection)
        .join(visible, on="entry_no", how="anti")
        .sort("entry_no")
    )


def name_entries(connection: Connection, ledger: Ledger, numbers: pl.DataFrame) -> pl.DataFrame:
    """The documents (`NAMED_SCHEMA`) of a frame of visible entry numbers; few, or all are read."""
    if numbers.is_empty():
        return pl.DataFrame(schema=NAMED_SCHEMA)
    named = ledger.dialect.fetch(
        connection,
        "SELECT d.document_id, h.entry_no FROM archive_heads h "
        "JOIN documents d ON d.document_no = h.document_no",
        NAMED_SCHEMA,
    )
    return named.join(numbers, on="entry_no", how="semi").sort("document_id", "entry_no")
