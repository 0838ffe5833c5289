"""Showing again what was published before: a document that went back to earlier bytes.

Belongs here: finding such documents and promoting their earlier record again. Does not belong
here: records that were never published (`publish_accepted.py`).

The record of the earlier bytes is published already and its delivery key is used up; without
this the archive would go on showing the values of bytes that the source no longer holds. A
promotion with the next number in its key is a new delivery with one effect of its own.
"""

from __future__ import annotations

import polars as pl
from sqlalchemy import Connection

from pipeline_assets.versions import OpenVersion
from resources.context import Context
from resources.ledger.archive import CANDIDATE_SCHEMA, lock_archive, publish_entries
from resources.ledger.archive_content import search_entries_of
from resources.ledger.leases import fenced, held

_FORMER_SCHEMA = {
    "record_no": pl.Int64,
    "document_no": pl.Int64,
    "request_digest": pl.String,
    "content": pl.String,
    "values_digest": pl.String,
    "thumbnail": pl.String,
    "promotion": pl.Int64,
}


def restore_current(context: Context, version: OpenVersion) -> int:
    """Promote again every published record whose bytes are present and not shown.

    Returns:
        How many documents show their earlier values again.

    Raises:
        LeaseHeld: another worker is doing the same.
    """
    with context.ledger.read() as connection:
        if _former(connection, context, version.version_no).is_empty():
            return 0
    with (
        held(context.ledger, f"restore:{version.key}", context.worker) as lease,
        fenced(context.ledger, lease) as connection,
    ):
        lock_archive(connection, context.ledger)
        former = search_entries_of(
            _former(connection, context, version.version_no).with_columns(
                kept_content=pl.col("content")
            )
        ).rename({"kept_content": "content"})
        publish_entries(
            connection,
            context.ledger,
            version.version_no,
            former.with_columns(pl.col("promotion") + 1).select(list(CANDIDATE_SCHEMA)),
            context.ledger.now(),
        )
        return former.height


def _former(connection: Connection, context: Context, version_no: int) -> pl.DataFrame:
    """The newest entry and delivery of each record that is current, published and not shown."""
    found = context.ledger.dialect.fetch(
        connection,
        "SELECT r.record_no, r.document_no, d.request_digest, e.content, e.content_digest, "
        "e.thumbnail, d.promotion FROM source_entries s "
        "JOIN records r ON r.source_version_no = s.source_version_no AND r.version_no = ? "
        "JOIN record_state st ON st.record_no = r.record_no AND st.state = 'published' "
        "JOIN archive_heads h ON h.document_no = r.document_no "
        "JOIN archive_entries shown ON shown.entry_no = h.entry_no "
        "AND shown.version_no = r.version_no AND shown.record_no <> r.record_no "
        "JOIN deliveries d ON d.record_no = r.record_no AND d.operation = 'publish' "
        "JOIN archive_entries e ON e.entry_no = d.entry_no WHERE s.to_snapshot IS NULL",
        _FORMER_SCHEMA,
        (version_no,),
    )
    return found.sort("record_no", "promotion").unique(
        "record_no", keep="last", maintain_order=True
    )
