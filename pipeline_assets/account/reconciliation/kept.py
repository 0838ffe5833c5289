"""Keeping reports as baselines, and opening kept ones.

Belongs here: the order of the steps, and which earlier report a new one is held against. Does not
belong here: what a report says (`facts.py`) and closing one (`closing.py`).

A report is kept as its JSON and its table of outcomes. Its page is made from the two when somebody
asks for it, which costs a second for the plots; only a closed report has its page stored.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec
from sqlalchemy import Connection

from pipeline_assets.account.reconciliation.baseline import (
    Difference,
    compare_outcomes,
    compare_settings,
)
from pipeline_assets.account.reconciliation.errors import (
    ReportOfOther,
    ReportWithoutOutcomes,
    UnknownReport,
)
from pipeline_assets.account.reconciliation.facts import FullReport, decode_report, make_report
from pipeline_assets.costs.account import CostReader, cost_account
from pipeline_assets.known_version import KnownVersion, known_version
from resources.artifacts import ArtifactStore
from resources.context import Context
from resources.ledger.kept_reports import (
    KeptReport,
    NewReport,
    add_report,
    find_report,
    lock_reports,
    newest_other,
    newest_report,
    unreported_batches,
)
from resources.one_moment import at_one_moment


@dataclass(frozen=True)
class MadeReport:
    """A report that was just made, with its table of outcomes in a temporary file."""

    report: FullReport
    outcomes: Path
    version: KnownVersion
    batch_no: int | None
    digest: str


@dataclass(frozen=True)
class Kept:
    """What keeping came to.

    Attributes:
        report: the report as it is now.
        digest: of its content.
        report_no: the number that it is kept under.
        is_new: False where the newest kept one said the same.
    """

    report: FullReport
    digest: str
    report_no: int
    is_new: bool


@dataclass(frozen=True)
class OpenedReport:
    """A kept report with its files.

    Attributes:
        row: what the ledger says of it.
        report: what it says.
        outcomes: the file of its table of outcomes.
        page: the file of its page; None where the page is made anew.
    """

    row: KeptReport
    report: FullReport
    outcomes: Path
    page: Path | None


@contextmanager
def made_report(
    context: Context,
    key: str,
    batch_id: str | None = None,
    against: int | None = None,
    *,
    read_cost: CostReader = cost_account,
) -> Iterator[MadeReport]:
    """Make a report now; its table of outcomes is gone after the block unless it is adopted.

    Args:
        context: the open resources.
        key: the version.
        batch_id: only this batch and what became of its records.
        against: the number of the report that it is held against; by default the newest kept one
            that says something else.
        read_cost: reads what the version cost; for a caller that needs it too.

    Raises:
        MalformedVersionKey, VersionNeverUsed, UnknownBatch: there is no such thing here.
        UnknownReport, ReportWithoutOutcomes, ReportOfOther: `against` cannot be used.
        ArtifactStoreFull: the disk is full.
    """
    with context.artifacts.workfile() as file:
        with at_one_moment(context) as moment:
            version = known_version(moment, key)
            report = make_report(moment, key, file, batch_id, read_cost)
            batch_no = None if batch_id is None else report.details.batches[0].batch_no
            digest = report.content_digest
            with moment.ledger.read() as connection:
                earlier = (
                    # Held against its own copy a report has no news.
                    newest_other(connection, version.version_no, batch_no, digest)
                    if against is None
                    else _chosen_baseline(connection, version, batch_id, against)
                )
        if earlier is not None:
            report = report.against(_difference(context.artifacts, earlier, report, file))
        yield MadeReport(report, file, version, batch_no, digest)


def keep_report(
    context: Context,
    key: str,
    batch_id: str | None = None,
    *,
    read_cost: CostReader = cost_account,
) -> Kept:
    """Make a report and keep it, unless the newest kept one says the same.

    Args:
        context: the open resources.
        key: the version.
        batch_id: only this batch and what became of its records.
        read_cost: reads what the version cost; for a caller that needs it too.

    Raises:
        MalformedVersionKey, VersionNeverUsed, UnknownBatch: there is no such thing here.
        ArtifactStoreFull: the disk is full.
    """
    with made_report(context, key, batch_id, read_cost=read_cost) as made:
        return keep_made(context, made)


def keep_made(context: Context, made: MadeReport) -> Kept:
    """Keep a report that was made, unless the newest kept one says the same.

    Raises:
        ArtifactStoreFull: the disk is full.
    """
    with context.ledger.read() as connection:
        same = _same_kept(connection, made)
    if same is not None:
        return same
    new = store_files(context.artifacts, made)
    with context.ledger.write() as connection:
        lock_reports(connection, context.ledger, made.version.version_no)
        # Another run may have kept the same in between.
        same = _same_kept(connection, made)
        if same is not None:
            return same
        number = add_report(connection, new)
    return Kept(made.report, made.digest, number, is_new=True)


def _same_kept(connection: Connection, made: MadeReport) -> Kept | None:
    newest = newest_report(connection, made.version.version_no, made.batch_no)
    if newest is None or newest.digest != made.digest:
        return None
    return Kept(made.report, made.digest, newest.report_no, is_new=False)


def keep_batch_reports(context: Context, key: str) -> int:
    """Keep a report of every batch that is complete and has none yet; returns how many.

    Each batch is accounted for once by itself, so the work grows with what came in since, not with
    the batches that there are. Where this ends early, the next call goes on.

    Raises:
        MalformedVersionKey, VersionNeverUsed: there is no such version here.
        ArtifactStoreFull: the disk is full.
    """
    version = known_version(context, key)
    with context.ledger.read() as connection:
        wanted = unreported_batches(connection, version.version_no)
    for batch_id in wanted:
        keep_report(context, key, batch_id)
    return len(wanted)


def store_files(store: ArtifactStore, made: MadeReport, page: str | None = None) -> NewReport:
    """Make a report's files durable; what is left is its row.

    Args:
        store: the artifacts.
        made: the report; its table of outcomes is moved into the store.
        page: the digest of its page, where that is stored.

    Raises:
        ArtifactStoreFull: the disk is full.
    """
    account, details = made.report.account, made.report.details
    outcomes = store.adopt("report", made.outcomes)
    encoded = msgspec.json.encode(made.report.as_json())
    stored = store.put("report", msgspec.json.format(encoded, indent=2))
    return NewReport(
        version_no=made.version.version_no,
        batch_no=made.batch_no,
        digest=made.digest,
        artifact=stored.digest,
        page=page,
        outcomes=outcomes.digest,
        merkle_root=details.outcomes.merkle_root,
        leaves=details.outcomes.rows,
        baseline_no=None if details.baseline is None else details.baseline.report_no,
        invariant_holds=account.invariant_holds,
        made_at=account.made_at,
    )


def open_kept(context: Context, report_no: int) -> OpenedReport:
    """A kept report, from its artifacts alone; each is read whole and held against its digest.

    Raises:
        UnknownReport: there is none of this number.
        ReportWithoutOutcomes: it is of an earlier release.
        ArtifactMissing, ArtifactDamaged: a file of it is gone, or is not what was kept.
    """
    with context.ledger.read() as connection:
        row = find_report(connection, report_no)
    if row is None:
        raise UnknownReport(report_no)
    if row.outcomes is None:
        raise ReportWithoutOutcomes(report_no)
    store = context.artifacts
    files = [digest for digest in (row.artifact, row.outcomes, row.page) if digest is not None]
    for digest in files:
        store.verify("report", digest)
    return OpenedReport(
        row=row,
        report=decode_report(store.require("report", row.artifact).read_bytes()),
        outcomes=store.require("report", row.outcomes),
        page=None if row.page is None else store.require("report", row.page),
    )


def _chosen_baseline(
    connection: Connection, version: KnownVersion, batch_id: str | None, number: int
) -> KeptReport:
    row = find_report(connection, number)
    if row is None:
        raise UnknownReport(number)
    if (row.version_no, row.batch_id) != (version.version_no, batch_id):
        raise ReportOfOther(row, version.key, batch_id)
    if row.outcomes is None:
        raise ReportWithoutOutcomes(number)
    return row


def _difference(
    store: ArtifactStore, earlier: KeptReport, report: FullReport, outcomes: Path
) -> Difference:
    before = decode_report(store.require("report", earlier.artifact).read_bytes())
    assert earlier.outcomes is not None  # noqa: S101 - both ways of choosing one see to it
    found = compare_outcomes(store.require("report", earlier.outcomes), outcomes)
    return Difference(
        report_no=earlier.report_no,
        made_at=earlier.made_at,
        digest=earlier.digest,
        closed=earlier.closed,
        documents=(before.account.documents, report.account.documents),
        same=found.same,
        moved=found.moved,
        values_changed=found.values_changed,
        changed=found.changed,
        more=found.more,
        settings=compare_settings(
            before.details.configuration.flat(), report.details.configuration.flat()
        ),
    )
