"""Delivering once more, for show: what was delivered is delivered by no second business write.

Belongs here: replaying the publication of every published record inside a transaction that is
rolled back. Does not belong here: publishing (`publish/publish_accepted.py`), whose own code does
the replay.

The replay puts published records back to `accepted`, as if the acknowledgement of their
publication had been lost, and publishes their batches again. A delivery key that is in the ledger
must stop each of them: no entry, no delivery, no change of the archive is made. Nothing of it is
kept, whatever comes out. While it runs it holds the archive's lock, for a batch at a time.
"""

from __future__ import annotations

import polars as pl
from sqlalchemy import Connection, func, select, text
from sqlalchemy.exc import SQLAlchemyError

from pipeline_assets.audit.look import Look
from pipeline_assets.publish.candidates import (
    AcceptanceUnproven,
    CorrectionDiffers,
    StagedValuesDiffer,
)
from pipeline_assets.publish.publish_accepted import Staged, publish_staged, staged_of
from pipeline_assets.publish.trial import transaction
from pipeline_assets.versions import OpenVersion
from resources.artifacts import ArtifactDamaged, ArtifactMissing
from resources.context import Context
from resources.contracts import STAGING, ContractRefused, read_frame
from resources.ledger.archive import lock_archive
from resources.ledger.archive_changes import open_change
from resources.ledger.judgements import accepted_of_batch, accepted_of_late
from resources.ledger.moves import MoveRefused
from resources.ledger.schema import archive_entries

REDELIVERY = "deliver.again"

_REFUSED = (
    AcceptanceUnproven,
    ArtifactDamaged,
    ArtifactMissing,
    ContractRefused,
    CorrectionDiffers,
    MoveRefused,
    StagedValuesDiffer,
    # Content that cannot be decoded, and rows that the database will not have twice.
    pl.exceptions.PolarsError,
)
# Records of a staging frame that are published and shown. What another version hides, or a
# correction that waits to be shown, would rightly be something to do.
_PUBLISHED = (
    "SELECT DISTINCT r.record_no FROM {members} "
    "JOIN record_state s ON s.record_no = k.record_no AND s.state = 'published' "
    "JOIN records r ON r.record_no = k.record_no "
    "JOIN archive_heads h ON h.document_no = r.document_no "
    "JOIN archive_entries e ON e.entry_no = h.entry_no AND e.record_no = r.record_no "
    "WHERE NOT EXISTS (SELECT 1 FROM reviews w WHERE w.record_no = r.record_no "
    "AND w.decision = 'correct' AND NOT EXISTS (SELECT 1 FROM deliveries y "
    "WHERE y.record_no = w.record_no AND y.accepted_digest = w.corrected_digest))"
)
_OF_BATCH = "(SELECT record_no FROM attempts WHERE attempt_no BETWEEN ? AND ?) k"
_OF_LATE = (
    "(SELECT l.record_no FROM late_answers w JOIN late_results l ON l.batch_no = w.batch_no "
    "AND l.used = 1 WHERE w.late_no = ?) k"
)
_BACK = text(
    "UPDATE record_state SET state = 'accepted' WHERE state = 'published' "
    "AND record_no IN (SELECT record_no FROM stage_replayed)"
)


def check_redelivery(look: Look, context: Context, version: OpenVersion) -> None:
    """Deliver what every complete batch of a version published once more, for show.

    Args:
        look: the evidence.
        context: the open resources, whose ledger can be written; nothing of it is kept.
        version: the version.
    """
    for staged in staged_of(look.context, version):
        subject = f"batch {staged.batch.batch_id}" + (
            "" if staged.late_no is None else f", late answers {staged.late_no}"
        )
        try:
            with transaction(context.ledger, trial=True) as connection:
                _replay(look, connection, context, version, staged, subject)
        except (*_REFUSED, SQLAlchemyError, context.ledger.dialect.driver_error) as error:
            look.findings.add(
                REDELIVERY,
                subject,
                f"{type(error).__name__}: what it published cannot be delivered again",
                "values that were accepted, as they were staged and judged",
            )


def _replay(
    look: Look,
    connection: Connection,
    context: Context,
    version: OpenVersion,
    staged: Staged,
    subject: str,
) -> None:
    ledger, batch = context.ledger, staged.batch
    shown = _shown(connection, context, staged)
    lock_archive(connection, ledger)
    ledger.dialect.stage(connection, "stage_replayed", pl.DataFrame({"record_no": shown}))
    connection.execute(_BACK)
    if staged.late_no is None:
        accepted = accepted_of_batch(connection, ledger, batch)
    else:
        frame = read_frame(STAGING, context.artifacts.require("frame", staged.artifact))
        accepted = accepted_of_late(connection, ledger, frame)
    members = shown.filter(shown.is_in(accepted["record_no"].implode()))
    look.findings.looked(REDELIVERY, members.len())
    if members.is_empty():
        return
    before = _newest_entry(connection)
    cause = context.cause("an audit delivers again, for show", "audit")
    with open_change(connection, "publish", version.version_no, cause) as change:
        report = publish_staged(connection, context, version, staged, change, cause, members)
        written = _newest_entry(connection) - before
    if written or report.published or report.restored:
        look.findings.add(
            REDELIVERY,
            subject,
            f"{written} entries written by delivering {members.len()} published records again",
            "none: their delivery keys are in the ledger",
        )
    if report.already != members.len():
        look.findings.add(
            REDELIVERY,
            subject,
            f"{report.already} of {members.len()} published records known by their delivery key",
            "all of them",
        )


def _shown(connection: Connection, context: Context, staged: Staged) -> pl.Series:
    batch = staged.batch
    late = staged.late_no is not None
    numbers = (staged.late_no,) if late else (batch.first_attempt_no, batch.last_attempt_no)
    return context.ledger.dialect.fetch(
        connection,
        _PUBLISHED.format(members=_OF_LATE if late else _OF_BATCH),
        {"record_no": pl.Int64},
        numbers,
    )["record_no"].sort()


def _newest_entry(connection: Connection) -> int:
    return connection.execute(select(func.max(archive_entries.c.entry_no))).scalar() or 0
