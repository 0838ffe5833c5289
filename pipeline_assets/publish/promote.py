"""Promotion by command: a version's accepted values become what people see, in one transaction.

Belongs here: what a promotion shows. Does not belong here: what the next run publishes by itself
(`publish_accepted.py`), and taking a version back (`rollback.py`).

Everything is read under the archive's lock in the transaction that writes it, so no lease is
needed: a worker whose view is old has nothing to commit. Documents and batches are read and
written in shards, so that memory does not grow with the archive.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl
from sqlalchemy import Connection

from pipeline_assets.publish.corrections import show_corrections
from pipeline_assets.publish.publish_accepted import (
    PublishReport,
    has_accepted,
    is_manual,
    publish_staged,
    staged_of,
)
from pipeline_assets.publish.trial import transaction
from pipeline_assets.versions import OpenVersion
from pipeline_assets.workloads.fields import searched_of
from resources.context import Context
from resources.garbage import without_garbage_collector
from resources.ledger.archive import lock_archive
from resources.ledger.archive_changes import OpenChange, is_accepted_value, open_change
from resources.ledger.archive_visibility import SHARD, show_again
from resources.ledger.engine import Ledger

_VALUES_SCHEMA = {
    "document_no": pl.Int64,
    "record_no": pl.Int64,
    "entry_no": pl.Int64,
    "digest": pl.String,
    "current": pl.Int64,
    "shown_record_no": pl.Int64,
    "shown_digest": pl.String,
    "shown_current": pl.Int64,
}


@dataclass(frozen=True)
class PromoteReport:
    """What a promotion changed.

    Attributes:
        published: accepted records that were published for the first time.
        shown_again: documents that show values of this version again.
        corrected: documents that show a reviewer's correction now.
        replaced: earlier entries that gave way.
        already: accepted records that had been delivered before.
        superseded: accepted records whose document has a newer published record.
        older: documents that keep what they show, which is of newer bytes than this version's.
        manual: the version publishes by command only.
    """

    published: int
    shown_again: int
    corrected: int
    replaced: int
    already: int
    superseded: int
    older: int
    manual: bool

    @property
    def changed(self) -> int:
        """Records and documents that anything was done about; 0 where there was nothing to do."""
        return self.published + self.shown_again + self.corrected + self.already + self.superseded


def promote(
    context: Context,
    version: OpenVersion,
    reason: str,
    documents: pl.Series | None = None,
    *,
    trial: bool = False,
) -> PromoteReport:
    """Publish what is accepted, and show again what is published and not visible.

    Of a document with several published records of the version, the one of its present bytes is
    shown, else the newest; of a record, the values that were accepted last.

    Args:
        context: the open resources.
        version: whose values.
        reason: why, for the record.
        documents: document_no of the documents that are meant; all by default.
        trial: tell what would happen, and change nothing.

    Raises:
        AcceptanceUnproven: a state says accepted and nothing else does.
        StagedValuesDiffer: staging and judgement disagree.
        CorrectionDiffers: a correction and its decision disagree.
        ArtifactDamaged: a staging file's bytes are not those that were judged.
        ArtifactMissing: a staging file or thumbnail is not in the store.
    """
    ledger, number = context.ledger, version.version_no
    cause = context.cause(reason, "promote")
    frames = staged_of(context, version)
    done = PublishReport(0, 0, 0)
    with (
        transaction(ledger, trial=trial) as connection,
        open_change(connection, "promote", number, cause) as change,
    ):
        lock_archive(connection, ledger)
        chosen = _documents(connection, ledger, number, documents)
        only = None if documents is None else _records(connection, ledger, number, chosen)
        for staged in frames:
            if has_accepted(connection, staged):
                with without_garbage_collector():
                    done = done.plus(
                        publish_staged(connection, context, version, staged, change, cause, only)
                    )
        again, older = _show_hidden(connection, context, number, chosen, change)
        corrected = show_corrections(connection, context, version, change, only)
        return PromoteReport(
            published=done.published,
            shown_again=again + done.restored,
            corrected=corrected,
            replaced=change.hidden,
            already=done.already,
            superseded=done.superseded,
            older=older,
            manual=is_manual(connection, number),
        )


def _documents(
    connection: Connection, ledger: Ledger, version_no: int, documents: pl.Series | None
) -> pl.Series:
    """Documents that have a record of the version, sorted; of those that are meant."""
    found = ledger.dialect.fetch(
        connection,
        "SELECT DISTINCT document_no FROM records WHERE version_no = ?",
        {"document_no": pl.Int64},
        (version_no,),
    )["document_no"].sort()
    return found if documents is None else found.filter(found.is_in(documents.implode()))


def _records(
    connection: Connection, ledger: Ledger, version_no: int, documents: pl.Series
) -> pl.Series:
    """record_no of the version's records of these documents."""
    ledger.dialect.stage(connection, "stage_promoted", pl.DataFrame({"document_no": documents}))
    return ledger.dialect.fetch(
        connection,
        "SELECT r.record_no FROM stage_promoted p "
        "JOIN records r ON r.document_no = p.document_no AND r.version_no = ?",
        {"record_no": pl.Int64},
        (version_no,),
    )["record_no"]


def _show_hidden(
    connection: Connection,
    context: Context,
    version_no: int,
    documents: pl.Series,
    change: OpenChange,
) -> tuple[int, int]:
    """Show published values that are not visible; returns how many, and how many are too old."""
    shown = older = 0
    ledger, searched = context.ledger, searched_of(context.settings)
    for part in pl.DataFrame({"document_no": documents}).iter_slices(SHARD):
        entries, kept = choose_hidden(_values(connection, ledger, version_no, part))
        shown += show_again(connection, ledger, entries, change, searched)
        older += kept
    return shown, older


def _values(
    connection: Connection, ledger: Ledger, version_no: int, documents: pl.DataFrame
) -> pl.DataFrame:
    """Every value that was ever accepted of the version's published records, and what is shown."""
    ledger.dialect.stage(connection, "stage_promoted", documents)
    return ledger.dialect.fetch(
        connection,
        "SELECT r.document_no, r.record_no, d.entry_no, d.accepted_digest, "  # noqa: S608
        "CASE WHEN n.entry_no IS NULL THEN 0 ELSE 1 END, e.record_no, e.content_digest, "
        "CASE WHEN o.entry_no IS NULL THEN 0 ELSE 1 END FROM stage_promoted p "
        "JOIN records r ON r.document_no = p.document_no AND r.version_no = ? "
        "JOIN record_state t ON t.record_no = r.record_no AND t.state = 'published' "
        "JOIN deliveries d ON d.record_no = r.record_no AND d.operation = 'publish' "
        "JOIN archive_entries g ON g.entry_no = d.entry_no "
        "LEFT JOIN archive_changes c ON c.change_no = g.change_no "
        "LEFT JOIN source_entries n ON n.document_no = r.document_no "
        "AND n.source_version_no = r.source_version_no AND n.to_snapshot IS NULL "
        "LEFT JOIN archive_heads h ON h.document_no = r.document_no "
        "LEFT JOIN archive_entries e ON e.entry_no = h.entry_no "
        "LEFT JOIN records q ON q.record_no = e.record_no "
        "LEFT JOIN source_entries o ON o.document_no = q.document_no "
        "AND o.source_version_no = q.source_version_no AND o.to_snapshot IS NULL "
        f"WHERE {is_accepted_value('d', 'c')}",
        _VALUES_SCHEMA,
        (version_no,),
    )


def choose_hidden(values: pl.DataFrame) -> tuple[pl.Series, int]:
    """Which published values to show again.

    Args:
        values: one row a value that was ever accepted of a document (document_no, record_no,
            entry_no, digest, current), with what the document shows (shown_record_no and
            shown_digest, null where nothing; shown_current).

    Returns:
        entry_no of the entries to show again, and how many documents show values of newer bytes,
        which they keep.
    """
    newest = values.sort("document_no", "current", "record_no", "entry_no").unique(
        "document_no", keep="last", maintain_order=True
    )
    hidden = newest.filter(
        (pl.col("record_no").ne_missing(pl.col("shown_record_no")))
        | (pl.col("digest").ne_missing(pl.col("shown_digest")))
    )
    older = (pl.col("current") == 0) & (pl.col("shown_current") == 1)
    wanted = hidden.filter(~older)
    return wanted["entry_no"], hidden.height - wanted.height
