"""Delivering once more, for show: what was delivered is delivered by no second business write.

Belongs here: asking the publishing code what it would do about records that are published, if they
were accepted again. Does not belong here: publishing (`publish/publish_accepted.py`), whose own
plan is asked for.

A published record is planned as if the acknowledgement of its publication had been lost: proven to
be accepted, its values put together, its delivery key looked up. The key must be in the ledger, and
the plan must have no entry to write. Only temporary tables are written, in a transaction that is
rolled back and that no writer waits for, however many records there are.
"""

from __future__ import annotations

import polars as pl
from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from pipeline_assets.audit.look import Look
from pipeline_assets.publish.candidates import (
    AcceptanceUnproven,
    CorrectionDiffers,
    StagedValuesDiffer,
)
from pipeline_assets.publish.publish_accepted import (
    Staged,
    entries_again,
    plan_delivery,
    staged_of,
)
from pipeline_assets.versions import OpenVersion
from resources.artifacts import ArtifactDamaged, ArtifactMissing
from resources.context import Context
from resources.contracts import ContractRefused

REDELIVERY = "deliver.again"

_REFUSED = (
    AcceptanceUnproven,
    ArtifactDamaged,
    ArtifactMissing,
    ContractRefused,
    CorrectionDiffers,
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


def check_redelivery(look: Look, context: Context, version: OpenVersion) -> None:
    """Deliver what every complete batch of a version published once more, for show.

    Args:
        look: the evidence.
        context: the open resources, whose ledger is asked in transactions of their own.
        version: the version.
    """
    for staged in staged_of(look.context, version):
        subject = f"batch {staged.batch.batch_id}" + (
            "" if staged.late_no is None else f", late answers {staged.late_no}"
        )
        try:
            with context.ledger.plan() as connection:
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
    shown = _shown(connection, context, staged)
    if shown.is_empty():
        return
    plan = plan_delivery(connection, context, version, staged, shown, "published")
    # An earlier attempt's batch has the record too; it is delivered from the newest one.
    planned = plan.fresh.height + plan.done.height + plan.older.len()
    look.findings.looked(REDELIVERY, planned)
    written = plan.fresh.height + entries_again(connection, context, plan).len()
    if written:
        look.findings.add(
            REDELIVERY,
            subject,
            f"{written} entries written by delivering {planned} published records again",
            "none: their delivery keys are in the ledger",
        )
    if plan.done.height != planned:
        look.findings.add(
            REDELIVERY,
            subject,
            f"{plan.done.height} of {planned} published records known by their delivery key",
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
