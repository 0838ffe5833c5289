"""Kept reports in the ledger, and the closings of those that somebody vouches for.

Belongs here: every statement on `reports` and `report_closings`. Does not belong here: making a
report and deciding whether it may be closed (`pipeline_assets/account`).

Nothing here changes or deletes a row: a report is kept as it was, and a closing is for good.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, Select, insert, select

from resources.ledger.batches import COMPLETE
from resources.ledger.engine import Ledger
from resources.ledger.moves import Cause, MoveReceipt, close_report
from resources.ledger.schema import batches, processing_versions, report_closings, reports


@dataclass(frozen=True)
class KeptReport:
    """A kept report.

    Attributes:
        report_no: its number.
        version_no: whose account it is.
        key: the same as a key.
        batch_no: the batch that it is of; None for the whole version.
        batch_id: the same as an id.
        digest: of its content, without the times of its making.
        artifact: its JSON.
        page: its page; None where the page is made when it is asked for.
        outcomes: the outcome of every record; None before release 0006.
        merkle_root: over the outcomes; None likewise.
        leaves: how many there are; None likewise.
        baseline_no: the report that it tells the differences to; None for a first one.
        invariant_holds: everything added up.
        made_at: UTC.
        closed_digest: the digest that was closed; None where nobody closed it.
        closed_by: who vouches for it.
        closed_at: since when, UTC.
        closing_reason: why.
    """

    report_no: int
    version_no: int
    key: str
    batch_no: int | None
    batch_id: str | None
    digest: str
    artifact: str
    page: str | None
    outcomes: str | None
    merkle_root: str | None
    leaves: int | None
    baseline_no: int | None
    invariant_holds: bool
    made_at: str
    closed_digest: str | None
    closed_by: str | None
    closed_at: str | None
    closing_reason: str | None

    @property
    def closed(self) -> bool:
        """Does somebody vouch for it?"""
        return self.closed_at is not None


@dataclass(frozen=True)
class NewReport:
    """What is written of a report; the meanings are those of `KeptReport`."""

    version_no: int
    batch_no: int | None
    digest: str
    artifact: str
    page: str | None
    outcomes: str
    merkle_root: str
    leaves: int
    baseline_no: int | None
    invariant_holds: bool
    made_at: str


def find_report(connection: Connection, report_no: int) -> KeptReport | None:
    """The report of a number; None where there is none."""
    row = connection.execute(_select().where(reports.c.report_no == report_no)).first()
    return None if row is None else _kept(row)


def newest_report(
    connection: Connection, version_no: int, batch_no: int | None = None
) -> KeptReport | None:
    """The newest kept report of a version, or of one of its batches; None where none is kept."""
    return _newest(connection, _of(version_no, batch_no))


def newest_closing(
    connection: Connection, version_no: int, batch_no: int | None = None
) -> KeptReport | None:
    """The newest closed report of a version, or of one of its batches; None where none is."""
    return _newest(
        connection, _of(version_no, batch_no).where(report_closings.c.closed_at.is_not(None))
    )


def newest_other(
    connection: Connection, version_no: int, batch_no: int | None, digest: str
) -> KeptReport | None:
    """The newest kept report with another content and a table of outcomes; None without one."""
    return _newest(
        connection,
        _of(version_no, batch_no).where(
            reports.c.outcomes.is_not(None), reports.c.digest != digest
        ),
    )


def unreported_batches(connection: Connection, version_no: int) -> list[str]:
    """The batches of a version that are complete and have no kept report yet, oldest first."""
    kept = select(reports.c.batch_no).where(
        reports.c.version_no == version_no, reports.c.batch_no.is_not(None)
    )
    wanted = (
        select(batches.c.batch_id)
        .where(
            batches.c.version_no == version_no,
            batches.c.state.in_(COMPLETE),
            batches.c.batch_no.not_in(kept),
        )
        .order_by(batches.c.batch_no)
    )
    return list(connection.execute(wanted).scalars())


def list_reports(connection: Connection, version_no: int | None = None) -> list[KeptReport]:
    """Every kept report, oldest first; of one version where it is given."""
    wanted = _select().order_by(reports.c.report_no)
    if version_no is not None:
        wanted = wanted.where(reports.c.version_no == version_no)
    return [_kept(row) for row in connection.execute(wanted)]


def lock_reports(connection: Connection, ledger: Ledger, version_no: int) -> None:
    """Hold the right to keep or close reports of a version to the end of the transaction."""
    ledger.dialect.lock_chain(connection, f"reports:{version_no}")


def add_report(connection: Connection, report: NewReport) -> int:
    """Keep a report; returns its number."""
    key = connection.execute(
        insert(reports).values(
            version_no=report.version_no,
            batch_no=report.batch_no,
            digest=report.digest,
            artifact=report.artifact,
            page=report.page,
            outcomes=report.outcomes,
            merkle_root=report.merkle_root,
            leaves=report.leaves,
            baseline_no=report.baseline_no,
            invariant_holds=int(report.invariant_holds),
            made_at=report.made_at,
        )
    ).inserted_primary_key
    assert key is not None  # noqa: S101 - both databases return the key of a single insert
    return int(key[0])


def add_closing(
    connection: Connection, ledger: Ledger, report_no: int, digest: str, cause: Cause
) -> MoveReceipt:
    """Close a report, in the transaction that keeps it.

    Args:
        connection: a write transaction.
        ledger: the ledger.
        report_no: the report.
        digest: its digest.
        cause: who closes it, when and why; its `cause` names the digest.
    """
    connection.execute(
        insert(report_closings).values(
            report_no=report_no,
            digest=digest,
            closed_by=cause.actor,
            reason=cause.reason,
            closed_at=cause.at,
        )
    )
    return close_report(connection, ledger.dialect, report_no, cause)


def _of(version_no: int, batch_no: int | None) -> Select[tuple[object, ...]]:
    of_batch = reports.c.batch_no.is_(None) if batch_no is None else reports.c.batch_no == batch_no
    return _select().where(reports.c.version_no == version_no, of_batch)


def _newest(connection: Connection, wanted: Select[tuple[object, ...]]) -> KeptReport | None:
    row = connection.execute(wanted.order_by(reports.c.report_no.desc()).limit(1)).first()
    return None if row is None else _kept(row)


def _select() -> Select[tuple[object, ...]]:
    return (
        select(
            reports,
            processing_versions.c.key,
            batches.c.batch_id,
            report_closings.c.digest.label("closed_digest"),
            report_closings.c.closed_by,
            report_closings.c.closed_at,
            report_closings.c.reason.label("closing_reason"),
        )
        .join(processing_versions, processing_versions.c.version_no == reports.c.version_no)
        .outerjoin(batches, batches.c.batch_no == reports.c.batch_no)
        .outerjoin(report_closings, report_closings.c.report_no == reports.c.report_no)
    )


def _kept(row: object) -> KeptReport:
    values = {name: getattr(row, name) for name in KeptReport.__dataclass_fields__}
    return KeptReport(**{**values, "invariant_holds": bool(values["invariant_holds"])})
