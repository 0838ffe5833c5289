"""Mending what a published document lacks: search entries made again from its metadata.

Belongs here: that, and documents that name no thumbnail. Does not belong here: finding what
disagrees (`resources/ledger/representations.py`) and publishing, which writes all of it together.
"""

from __future__ import annotations

import polars as pl
from sqlalchemy import Connection

from pipeline_assets.workloads.fields import searched_of
from resources.context import Context
from resources.ledger.archive import lock_archive
from resources.ledger.archive_content import search_entries_by_workload
from resources.ledger.engine import Ledger
from resources.ledger.numbers import MOST_NUMBERS, is_one_of
from resources.ledger.representations import stray_search_entries, unsearchable_entries


def without_thumbnail(connection: Connection, ledger: Ledger) -> pl.DataFrame:
    """document_id of visible entries that name no thumbnail."""
    return ledger.dialect.fetch(
        connection,
        "SELECT d.document_id FROM archive_heads h "
        "JOIN archive_entries e ON e.entry_no = h.entry_no "
        "JOIN documents d ON d.document_no = h.document_no WHERE e.thumbnail = ''",
        {"document_id": pl.String},
    ).sort("document_id")


def rebuild_search_entries(context: Context) -> int:
    """Make missing search entries again and drop stray ones; returns how many of both.

    Raises:
        UnknownWorkload: an entry's workload is not installed; nothing was changed.
    """
    ledger = context.ledger
    with ledger.write() as connection:
        # Whoever publishes waits: nothing that is read here is out of date when it is written.
        lock_archive(connection, ledger)
        stray = stray_search_entries(connection, ledger)
        if not stray.is_empty():
            ledger.dialect.stage(connection, "stage_stray", stray)
            ledger.dialect.drop_search(connection, "stage_stray")
        missing = unsearchable_entries(connection, ledger)
        for part in missing.iter_slices(MOST_NUMBERS):
            ledger.dialect.add_search(connection, _entries(connection, context, part["entry_no"]))
    return stray.height + missing.height


def _entries(connection: Connection, context: Context, numbers: pl.Series) -> pl.DataFrame:
    stored = context.ledger.dialect.fetch(
        connection,
        "SELECT e.entry_no, v.workload, e.content FROM archive_entries e "  # noqa: S608
        "JOIN processing_versions v ON v.version_no = e.version_no "
        f"WHERE {is_one_of('e.entry_no', numbers)}",
        {"entry_no": pl.Int64, "workload": pl.String, "content": pl.String},
    )
    return search_entries_by_workload(stored, searched_of(context.settings))
