"""Corrections of what is published already: the reviewer's values take the place of the model's.

Belongs here: finding decisions that the archive does not show yet, and delivering them. Does not
belong here: deciding (`pipeline_assets/review`), and records that were corrected before they were
published (`candidates.py`).

A correction is shown where its record is the visible one. A record that another version or an
earlier one hides keeps its correction waiting until it is shown again.
"""

from __future__ import annotations

import polars as pl
from sqlalchemy import Connection

from pipeline_assets.publish.candidates import require_corrections
from pipeline_assets.versions import OpenVersion
from pipeline_assets.workloads.fields import searched
from resources.context import Context
from resources.ledger.archive import lock_archive, show_entries
from resources.ledger.archive_changes import OpenChange
from resources.ledger.archive_content import search_entries_of
from resources.ledger.archive_visibility import SHARD
from resources.ledger.engine import Ledger

_WAITING_SCHEMA = {
    "review_no": pl.Int64,
    "record_no": pl.Int64,
    "decided_at": pl.String,
    "corrected_digest": pl.String,
    "shown_digest": pl.String,
    "shown_from": pl.String,
    "delivered": pl.Int64,
}
_VALUES_SCHEMA = {
    "record_no": pl.Int64,
    "document_no": pl.Int64,
    "version_no": pl.Int64,
    "request_digest": pl.String,
    "values_digest": pl.String,
    "content": pl.String,
    "thumbnail": pl.String,
    "promotion": pl.Int64,
}


def waiting_corrections(connection: Connection, ledger: Ledger, version_no: int) -> pl.DataFrame:
    """Decided corrections of visible records that the archive does not show: review_no, record_no.

    A correction that was shown once is shown again only if it was decided after what is visible
    now: a rollback that took it away stays.
    """
    found = ledger.dialect.fetch(
        connection,
        "SELECT w.review_no, w.record_no, w.decided_at, w.corrected_digest, e.content_digest, "
        "e.valid_from, CASE WHEN d.record_no IS NULL THEN 0 ELSE 1 END FROM reviews w "
        "JOIN record_state s ON s.record_no = w.record_no AND s.state = 'published' "
        "JOIN attempts a ON a.attempt_no = w.attempt_no "
        "JOIN records r ON r.record_no = w.record_no "
        "JOIN archive_heads h ON h.document_no = r.document_no "
        "JOIN archive_entries e ON e.entry_no = h.entry_no AND e.record_no = w.record_no "
        "LEFT JOIN deliveries d ON d.record_no = w.record_no AND d.operation = 'publish' "
        "AND d.request_digest = a.request_digest AND d.accepted_digest = w.corrected_digest "
        "AND d.promotion = 1 "
        "WHERE w.version_no = ? AND w.decision = 'correct' AND NOT EXISTS "
        "(SELECT 1 FROM attempts n JOIN judgements k ON k.attempt_no = n.attempt_no "
        "WHERE n.record_no = a.record_no AND n.attempt_no > a.attempt_no)",
        _WAITING_SCHEMA,
        (version_no,),
    )
    newest = found.sort("decided_at", "review_no").unique(
        "record_no", keep="last", maintain_order=True
    )
    return newest.filter(
        (pl.col("corrected_digest") != pl.col("shown_digest"))
        & ((pl.col("delivered") == 0) | (pl.col("shown_from") < pl.col("decided_at")))
    ).select("review_no", "record_no")


def show_corrections(
    connection: Connection,
    context: Context,
    version: OpenVersion,
    change: OpenChange,
    only: pl.Series | None = None,
) -> int:
    """Deliver the corrections that wait, each as a new entry of its document.

    Args:
        connection: the write transaction.
        context: the open resources.
        version: of the corrected records.
        change: the change that they are part of.
        only: record_no of the records that are meant; all by default.

    Returns:
        How many documents show a corrected value now.

    Raises:
        CorrectionDiffers: a correction and its decision disagree.
    """
    ledger = context.ledger
    lock_archive(connection, ledger)
    waiting = waiting_corrections(connection, ledger, version.version_no)
    if only is not None:
        waiting = waiting.filter(pl.col("record_no").is_in(only.implode()))
    for part in waiting.iter_slices(SHARD):
        values = _values(connection, ledger, part)
        require_corrections(
            values.select(corrected_digest="values_digest", corrected_content="content")
        )
        candidates = search_entries_of(values, searched(version.workload.fields))
        replaced = show_entries(connection, ledger, candidates, change.at, change.number)
        change.count(candidates.height, replaced)
    return waiting.height


def _values(connection: Connection, ledger: Ledger, waiting: pl.DataFrame) -> pl.DataFrame:
    """The corrected values with what their delivery is named by; the thumbnail is the visible one.

    Values that were delivered before have the next number of their record.
    """
    ledger.dialect.stage(connection, "stage_correction", waiting.select("review_no"))
    return ledger.dialect.fetch(
        connection,
        "SELECT w.record_no, r.document_no, r.version_no, a.request_digest, w.corrected_digest, "
        "w.corrected_content, e.thumbnail, CASE WHEN EXISTS (SELECT 1 FROM deliveries d "
        "WHERE d.record_no = w.record_no AND d.operation = 'publish' "
        "AND d.request_digest = a.request_digest AND d.accepted_digest = w.corrected_digest) "
        "THEN (SELECT MAX(n.promotion) FROM deliveries n WHERE n.record_no = w.record_no "
        "AND n.operation = 'publish') + 1 ELSE 1 END "
        "FROM stage_correction s JOIN reviews w ON w.review_no = s.review_no "
        "JOIN attempts a ON a.attempt_no = w.attempt_no "
        "JOIN records r ON r.record_no = w.record_no "
        "JOIN archive_heads h ON h.document_no = r.document_no "
        "JOIN archive_entries e ON e.entry_no = h.entry_no",
        _VALUES_SCHEMA,
    ).sort("record_no")
