"""Showing again what was published before: a document that went back to earlier bytes.

Belongs here: finding such documents and promoting their earlier record again. Does not belong
here: records that were never published (`publish_accepted.py`), and going back by command
(`rollback.py`).

The record of the earlier bytes is published already and its delivery key is used up; without
this the archive would go on showing the values of bytes that the source no longer holds. A
promotion with the next number in its key is a new delivery with one effect of its own.
"""

from __future__ import annotations

import polars as pl
from sqlalchemy import Connection

from pipeline_assets.versions import OpenVersion
from pipeline_assets.workloads.fields import searched_of
from resources.context import Context
from resources.ledger.archive import lock_archive
from resources.ledger.archive_changes import PUTS_BACK, is_accepted_value, open_change
from resources.ledger.archive_visibility import show_again
from resources.ledger.leases import fenced, held

_FORMER_SCHEMA = {
    "record_no": pl.Int64,
    "entry_no": pl.Int64,
    "accepted": pl.Int64,
    "ended_by": pl.String,
}


def restore_current(context: Context, version: OpenVersion) -> int:
    """Promote again every published record whose bytes are present and not shown.

    What a rollback took away stays away: only a promotion by command shows it again.

    Returns:
        How many documents show their earlier values again.

    Raises:
        LeaseHeld: another worker is doing the same.
    """
    ledger, number = context.ledger, version.version_no
    with ledger.read() as connection:
        if _former(connection, context, number).is_empty():
            return 0
    cause = context.cause("its bytes are the document's again", "publish")
    with (
        held(ledger, f"restore:{version.key}", context.worker) as lease,
        fenced(ledger, lease) as connection,
        open_change(connection, "restore", number, cause) as change,
    ):
        lock_archive(connection, ledger)
        former = _former(connection, context, number)
        return show_again(connection, ledger, former, change, searched_of(context.settings))


def _former(connection: Connection, context: Context, version_no: int) -> pl.Series:
    """The entry to show again of each record that is current, published and not shown."""
    found = context.ledger.dialect.fetch(
        connection,
        f"SELECT r.record_no, d.entry_no, CASE WHEN {is_accepted_value('d', 'o')} "  # noqa: S608
        "THEN 1 ELSE 0 END, c.kind FROM source_entries s "
        "JOIN records r ON r.source_version_no = s.source_version_no AND r.version_no = ? "
        "JOIN record_state st ON st.record_no = r.record_no AND st.state = 'published' "
        "JOIN archive_heads h ON h.document_no = r.document_no "
        "JOIN archive_entries shown ON shown.entry_no = h.entry_no "
        "AND shown.version_no = r.version_no AND shown.record_no <> r.record_no "
        "JOIN deliveries d ON d.record_no = r.record_no AND d.operation = 'publish' "
        "JOIN archive_entries e ON e.entry_no = d.entry_no "
        "LEFT JOIN archive_changes o ON o.change_no = e.change_no "
        "LEFT JOIN archive_changes c ON c.change_no = e.closed_by WHERE s.to_snapshot IS NULL",
        _FORMER_SCHEMA,
        (version_no,),
    ).sort("record_no", "entry_no")
    last = found.unique("record_no", keep="last", maintain_order=True)
    # Without `is_in`'s null for entries that ended before changes were kept.
    undone = last.filter(pl.col("ended_by").is_in(PUTS_BACK))["record_no"]
    # The newest values that were accepted: what was put back repeats some that were.
    return found.filter(
        (pl.col("accepted") == 1) & ~pl.col("record_no").is_in(undone.implode())
    ).unique("record_no", keep="last", maintain_order=True)["entry_no"]
