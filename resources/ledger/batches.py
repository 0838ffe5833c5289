"""Batches: finding those that a step can work on, and their steps' writes.

Belongs here: queries and updates of the `batches` row besides its state (`moves.py`). Does not
belong here: records, attempts and results of a batch (modules of their own).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl
from sqlalchemy import Connection, select, update

from resources.ledger.engine import Ledger
from resources.ledger.leases import Lease
from resources.ledger.schema import batch_parents, batches, manifests

COMPLETE = ("completed", "completed_with_errors", "retry_required")
"""States in which every record of a batch has a disposition."""


@dataclass(frozen=True)
class Batch:
    """A batch as the steps need it."""

    batch_no: int
    batch_id: str
    batch_key: str
    manifest_no: int
    manifest_id: str
    manifest_digest: str
    manifest_artifact: str
    ordinal: int
    version_no: int
    state: str
    provider: str
    mode: str
    model: str
    request_artifact: str
    expected_records: int
    first_attempt_no: int
    last_attempt_no: int
    collected_artifact: str | None
    staging_artifact: str | None
    provider_outcome: str | None
    error_class: str | None
    error_code: str | None

    @property
    def lease_name(self) -> str:
        """The lease that every step on this batch commits under."""
        return f"batch:{self.batch_id}"


def find_batches(ledger: Ledger, version_no: int, states: Sequence[str]) -> list[Batch]:
    """The batches of a version that are in one of the states, oldest first."""
    with ledger.read() as connection:
        rows = connection.execute(
            select(
                batches, manifests.c.manifest_id, manifests.c.artifact.label("manifest_artifact")
            )
            .join(manifests, manifests.c.manifest_no == batches.c.manifest_no)
            .where(batches.c.version_no == version_no, batches.c.state.in_(states))
            .order_by(batches.c.batch_no)
        )
        return [_batch(row) for row in rows]


def reload_batch(connection: Connection, batch_no: int) -> Batch:
    """The batch as it is now, inside a transaction."""
    row = connection.execute(
        select(batches, manifests.c.manifest_id, manifests.c.artifact.label("manifest_artifact"))
        .join(manifests, manifests.c.manifest_no == batches.c.manifest_no)
        .where(batches.c.batch_no == batch_no)
    ).one()
    return _batch(row)


def update_batch(connection: Connection, lease: Lease, batch_no: int, **values: object) -> None:
    """Write columns of a batch's row, with the lease that they are written under."""
    connection.execute(
        update(batches)
        .where(batches.c.batch_no == batch_no)
        .values(**values, lease_owner=lease.owner, fencing_token=lease.token)
    )


def records_of(connection: Connection, ledger: Ledger, batch: Batch) -> pl.Series:
    """The record numbers of a batch, by attempt."""
    return ledger.dialect.fetch(
        connection,
        "SELECT record_no FROM attempts WHERE attempt_no BETWEEN ? AND ? ORDER BY attempt_no",
        {"record_no": pl.Int64},
        (batch.first_attempt_no, batch.last_attempt_no),
    )["record_no"]


def attempts_of(connection: Connection, ledger: Ledger, batch: Batch) -> pl.DataFrame:
    """The attempts of a batch by number, with their record's id.

    Returns:
        attempt_no, record_no, record_id, request_digest, offset, length.
    """
    return ledger.dialect.fetch(
        connection,
        "SELECT a.attempt_no, a.record_no, r.record_id, a.request_digest, a.request_offset, "
        "a.request_length FROM attempts a JOIN records r ON r.record_no = a.record_no "
        "WHERE a.attempt_no BETWEEN ? AND ? ORDER BY a.attempt_no",
        {
            "attempt_no": pl.Int64,
            "record_no": pl.Int64,
            "record_id": pl.String,
            "request_digest": pl.String,
            "offset": pl.Int64,
            "length": pl.Int64,
        },
        (batch.first_attempt_no, batch.last_attempt_no),
    )


def _batch(row: object) -> Batch:
    batch_id = str(getattr(row, "batch_id"))  # noqa: B009 - a row has no declared attributes
    ordinal = int(batch_id.rsplit("-b", 1)[1]) - 1
    fields = {name: getattr(row, name) for name in Batch.__dataclass_fields__ if name != "ordinal"}
    return Batch(**fields, ordinal=ordinal)


def earlier_attempts(connection: Connection, ledger: Ledger, batch: Batch) -> pl.DataFrame:
    """Earlier attempts, in other batches, at the records of a batch.

    Returns:
        attempt_no, record_no, record_id, batch_key, first_attempt_no (of their batch).
    """
    return ledger.dialect.fetch(
        connection,
        "SELECT e.attempt_no, e.record_no, r.record_id, b.batch_key, b.first_attempt_no "
        "FROM attempts a JOIN attempts e ON e.record_no = a.record_no "
        "AND e.attempt_no < a.attempt_no JOIN batches b ON b.batch_no = e.batch_no "
        "JOIN records r ON r.record_no = e.record_no "
        "WHERE a.attempt_no BETWEEN ? AND ? ORDER BY e.attempt_no",
        {
            "attempt_no": pl.Int64,
            "record_no": pl.Int64,
            "record_id": pl.String,
            "batch_key": pl.String,
            "first_attempt_no": pl.Int64,
        },
        (batch.first_attempt_no, batch.last_attempt_no),
    )


def has_parents(connection: Connection, batch_no: int) -> bool:
    """Does the batch hold another attempt at records of earlier ones?"""
    return (
        connection.execute(
            select(batch_parents.c.parent_batch_no)
            .where(batch_parents.c.batch_no == batch_no)
            .limit(1)
        ).first()
        is not None
    )


def retried_batches(connection: Connection, ledger: Ledger, version_no: int) -> pl.DataFrame:
    """Batches of a version that wait for retries, and how those stand.

    Returns:
        batch_no, open: records that are still tried again, failed: records that were given up.
    """
    return ledger.dialect.fetch(
        connection,
        "SELECT b.batch_no, "
        "COUNT(CASE WHEN s.state IN ('queued', 'prepared', 'submitted', 'retry_wait') THEN 1 END), "
        "COUNT(CASE WHEN s.state IN ('dead_letter', 'discarded', 'cancelled', 'rejected') "
        "THEN 1 END) + (SELECT COUNT(*) FROM dispositions p JOIN attempts a "
        "ON a.attempt_no = p.attempt_no JOIN record_state c ON c.record_no = a.record_no "
        "WHERE p.attempt_no BETWEEN b.first_attempt_no AND b.last_attempt_no "
        # Nothing is decided about what an operator cancelled.
        "AND p.disposition = 'cancelled' AND c.state = 'cancelled' AND NOT EXISTS "
        "(SELECT 1 FROM retry_decisions k WHERE k.attempt_no = p.attempt_no)) FROM batches b "
        "LEFT JOIN retry_decisions t "
        "ON t.attempt_no BETWEEN b.first_attempt_no AND b.last_attempt_no "
        "LEFT JOIN record_state s ON s.record_no = t.record_no "
        "WHERE b.version_no = ? AND b.state = 'retry_required' "
        "GROUP BY b.batch_no, b.first_attempt_no, b.last_attempt_no ORDER BY b.batch_no",
        {"batch_no": pl.Int64, "open": pl.Int64, "failed": pl.Int64},
        (version_no,),
    )
