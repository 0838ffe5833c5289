"""Removed documents leave the archive where their source's policy says so, and may come back.

Belongs here: the policy, the decision which entry a document that came back shows, and the
transactions, a shard of documents each. Does not belong here: finding the records
(`resources/ledger/withdrawals.py`) and erasing (`pipeline_assets/erasure`).

The policy belongs to a source, so a withdrawal is of a document: its records under every version
of the workload are withdrawn, retired versions too, and no earlier entry takes the place of the
one that ended. Records of older bytes of a document that is still there are no removal: the
archive keeps an entry until the corrected bytes are published.

What came back with the same bytes goes on from where it was, and no model is asked again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import polars as pl
from sqlalchemy import Connection

from pipeline_assets.publish.publish_accepted import is_manual
from pipeline_assets.versions import OpenVersion
from pipeline_assets.workloads.fields import searched_of
from resources.context import Context
from resources.garbage import without_garbage_collector
from resources.ledger.archive import end_entries, lock_archive
from resources.ledger.archive_changes import PUTS_BACK, open_change
from resources.ledger.archive_visibility import show_again
from resources.ledger.engine import Ledger
from resources.ledger.leases import Lease, LeaseHeld, fenced, held
from resources.ledger.moves import (
    Cause,
    MoveRefused,
    batch_chain,
    move_records,
    version_chain,
)
from resources.ledger.reviews import lock_reviews
from resources.ledger.withdrawals import (
    REMOVED,
    RETURNS,
    WITHDRAWN,
    entries_to_end,
    published_before,
    records_to_return,
    records_to_withdraw,
    removed_documents,
    returned_documents,
    settle_returned,
    settle_withdrawn,
    source_numbers,
)
from resources.sources.declared import declared_sources

RETURNED = "its document came back with the same bytes"
SHARD = 5_000
"""Documents that one transaction withdraws or brings back."""
_TRIES = 3
"""Another worker may move a record between looking and moving; then the shard is looked at anew."""

Step = Callable[[Connection, Context, pl.Series], "WithdrawReport"]


@dataclass(frozen=True)
class WithdrawReport:
    """What was withdrawn, and what came back.

    Attributes:
        withdrawn: records of removed documents that were withdrawn now.
        ended: documents that left the archive now.
        returned: withdrawn records whose bytes are there again.
        shown: documents that show again what they showed when they were removed.
        waiting: documents that would, and wait for a promotion by command.
        later: records of removed documents with an attempt under way: the next run looks again.
        busy: another worker is at it.
    """

    withdrawn: int = 0
    ended: int = 0
    returned: int = 0
    shown: int = 0
    waiting: int = 0
    later: int = 0
    busy: bool = False

    @property
    def changed(self) -> int:
        """Records and documents that anything was done about."""
        return self.withdrawn + self.ended + self.returned

    def plus(self, other: WithdrawReport) -> WithdrawReport:
        """The counts of both."""
        return WithdrawReport(
            withdrawn=self.withdrawn + other.withdrawn,
            ended=self.ended + other.ended,
            returned=self.returned + other.returned,
            shown=self.shown + other.shown,
            waiting=self.waiting + other.waiting,
            later=self.later + other.later,
            busy=self.busy or other.busy,
        )


@dataclass(frozen=True)
class Shown:
    """What becomes visible of records that came back as published ones.

    Attributes:
        entries: entry_no of former entries to show again, at most one of a document.
        waiting: record_no of records whose version publishes by command only.
    """

    entries: pl.Series
    waiting: pl.Series


def withdraw_removed(context: Context, version: OpenVersion) -> WithdrawReport:
    """Withdraw removed documents of the version's workload, and take up those that came back.

    Raises:
        InvalidSources: the file of sources cannot be used; nothing was changed.
        UnknownWorkload: an entry to show again is of a workload that is not installed.
    """
    ledger, workload = context.ledger, version.spec.workload
    names = [
        source.name
        for source in declared_sources(context.settings)
        if source.removed == "withdraw" and source.workload == workload
    ]
    with ledger.read() as connection:
        sources = source_numbers(connection, ledger, names, workload)
        removed, later = removed_documents(connection, ledger, sources)
        returned = returned_documents(connection, ledger, workload)
    report = WithdrawReport(later=later)
    if removed.is_empty() and returned.is_empty():
        return report
    try:
        with held(ledger, f"withdraw:{workload}", context.worker) as lease:
            for documents, step in ((removed, withdraw_documents), (returned, return_documents)):
                for start in range(0, documents.len(), SHARD):
                    shard = documents.slice(start, SHARD)
                    report = report.plus(_in_one(context, lease, shard, step))
    except LeaseHeld:
        return replace(report, busy=True)
    return report


def _in_one(context: Context, lease: Lease, documents: pl.Series, step: Step) -> WithdrawReport:
    """A step over a shard in one fenced transaction; again where another worker was quicker."""
    for _ in range(_TRIES - 1):
        try:
            with fenced(context.ledger, lease) as connection, without_garbage_collector():
                return step(connection, context, documents)
        except MoveRefused:
            continue
    with fenced(context.ledger, lease) as connection, without_garbage_collector():
        return step(connection, context, documents)


def withdraw_documents(
    connection: Connection, context: Context, documents: pl.Series
) -> WithdrawReport:
    """Take removed documents out of the archive and withdraw their records.

    Args:
        connection: the write transaction.
        context: the open resources.
        documents: document_no; those that came back meanwhile are passed over.

    Raises:
        MoveRefused: another worker moved a record meanwhile; the transaction must not be committed.
    """
    ledger, cause = context.ledger, context.cause(REMOVED, "publish")
    lock_reviews(connection, ledger)
    lock_archive(connection, ledger)
    members = records_to_withdraw(connection, ledger, documents)
    ended = entries_to_end(connection, ledger, documents)
    with open_change(connection, "removal", _one(members), cause) as change:
        if not ended.is_empty():
            end_entries(connection, ledger, ended, change.at, change.number)
            change.count(0, ended.height)
    _move(connection, ledger, members.with_columns(target=pl.lit(WITHDRAWN)), cause)
    settle_withdrawn(connection, ledger, members["record_no"], cause)
    return WithdrawReport(withdrawn=members.height, ended=ended.height)


def return_documents(
    connection: Connection, context: Context, documents: pl.Series
) -> WithdrawReport:
    """Let withdrawn records go on whose bytes are there again; see `withdraw_documents`."""
    ledger, cause = context.ledger, context.cause(RETURNED, "publish")
    lock_reviews(connection, ledger)
    lock_archive(connection, ledger)
    members = records_to_return(connection, ledger, documents)
    was_published = members.filter(pl.col("state") == "published")
    former = published_before(connection, ledger, was_published["record_no"])
    manual = [no for no in former["version_no"].unique() if is_manual(connection, no)]
    chosen = choose_shown(former, manual)
    with open_change(connection, "restore", _one(was_published), cause) as change:
        shown = show_again(
            connection, ledger, chosen.entries, change, searched_of(context.settings)
        )
    _move(
        connection,
        ledger,
        members.with_columns(
            target=pl.col("state").replace_strict(RETURNS, return_dtype=pl.String)
        ),
        cause,
        from_state=WITHDRAWN,
    )
    published = was_published.filter(~pl.col("record_no").is_in(chosen.waiting.implode()))
    _move(
        connection,
        ledger,
        published.with_columns(target=pl.lit("published")),
        cause,
        from_state=RETURNS["published"],
    )
    settle_returned(connection, ledger, members, cause)
    return WithdrawReport(returned=members.height, shown=shown, waiting=chosen.waiting.len())


def choose_shown(former: pl.DataFrame, manual: list[int]) -> Shown:
    """Which entry each document that came back shows.

    It is the one that it showed when it was removed. Where that is of other bytes than those that
    came back, it is the newest that was shown of these; what a rollback took away stays away. A
    document that shows its present bytes already, or values of another version, keeps that.

    Args:
        former: what the archive knows of the records (`withdrawals.published_before`).
        manual: version_no of versions that publish by command only.
    """
    left = pl.col("removed") == 1
    taken_away = pl.col("ended_by").is_in(PUTS_BACK).fill_null(value=False) & ~left
    free = pl.col("shown_version_no").is_null()
    corrects = (pl.col("shown_version_no") == pl.col("version_no")) & (pl.col("shown_current") == 0)
    wanted = (
        former.filter(~taken_away & (free | corrects).fill_null(value=False))
        .sort("document_no", "removed", "archive_version")
        .unique("document_no", keep="last", maintain_order=True)
    )
    waits = pl.col("version_no").is_in(manual)
    return Shown(wanted.filter(~waits)["entry_no"], wanted.filter(waits)["record_no"])


def _move(
    connection: Connection,
    ledger: Ledger,
    members: pl.DataFrame,
    cause: Cause,
    *,
    from_state: str | None = None,
) -> None:
    """Move records to their `target`, from their `state` by default, always in the same order."""
    groups = members.sort("batch_no", "version_no", "state", "record_no").group_by(
        "batch_no", "version_no", "state", "target", maintain_order=True
    )
    for (batch_no, version_no, state, target), part in groups:
        chain = version_chain(_int(version_no)) if batch_no is None else batch_chain(_int(batch_no))
        move_records(
            connection,
            ledger.dialect,
            part["record_no"],
            from_state or str(state),
            str(target),
            cause,
            chain,
        )


def _one(members: pl.DataFrame) -> int | None:
    """The version of all the records; None where they are of several."""
    versions = members["version_no"].unique()
    return int(versions[0]) if versions.len() == 1 else None


def _int(number: object) -> int:
    return int(str(number))
