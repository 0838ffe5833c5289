"""Publishing what the ledger says is accepted, a batch at a time, each shard whole or not at all.

Belongs here: the transaction, and what of a batch is published in it. Does not belong here: the
archive's rows (`resources/ledger/archive.py`), proving acceptance (`candidates.py`), publishing
by command (`promote.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import polars as pl
from sqlalchemy import Connection

from pipeline_assets.parser_settings import parser_settings
from pipeline_assets.publish.candidates import candidates_of
from pipeline_assets.publish.corrections import show_corrections, waiting_corrections
from pipeline_assets.publish.restore_current import restore_current
from pipeline_assets.versions import OpenVersion
from pipeline_assets.workloads.fields import searched, searched_of
from resources.context import Context
from resources.contracts import STAGING, read_frame
from resources.garbage import without_garbage_collector
from resources.ledger.archive import (
    CANDIDATE_SCHEMA,
    delivered,
    lock_archive,
    publish_entries,
)
from resources.ledger.archive_changes import OpenChange, open_change
from resources.ledger.archive_visibility import accepted_again, show_again
from resources.ledger.batches import COMPLETE, Batch, find_batches
from resources.ledger.judgements import (
    accepted_of_batch,
    accepted_of_late,
    has_record_in_state,
    late_record_in_state,
)
from resources.ledger.late import find_late_answers
from resources.ledger.leases import Lease, LeaseHeld, fenced, held
from resources.ledger.moves import Cause, batch_chain, move_records
from resources.ledger.versions import operating_value
from resources.ledger.withdrawals import left_with_their_document


@dataclass(frozen=True)
class PublishReport:
    """What was published.

    Attributes:
        published: records published now.
        already: accepted records whose delivery key was in the ledger; not published again.
        replaced: documents whose earlier entry was replaced.
        superseded: accepted records whose document has a newer published record; never published.
        restored: documents that went back to earlier bytes and show those values again.
        busy: batches that another worker is at.
        corrected: documents that show a reviewer's correction of what was published.
        waiting: records that wait for a promotion by command.
    """

    published: int
    already: int
    replaced: int
    superseded: int = 0
    restored: int = 0
    busy: tuple[str, ...] = ()
    corrected: int = 0
    waiting: int = 0

    @property
    def changed(self) -> int:
        """Records and documents that anything was done about."""
        return self.published + self.already + self.superseded + self.restored + self.corrected

    def plus(self, other: PublishReport) -> PublishReport:
        """The counts of both; who is busy stays."""
        return replace(
            self,
            published=self.published + other.published,
            already=self.already + other.already,
            replaced=self.replaced + other.replaced,
            superseded=self.superseded + other.superseded,
            restored=self.restored + other.restored,
        )


@dataclass(frozen=True)
class Staged:
    """A staging frame that is published together: a batch's own, or one of late answers."""

    batch: Batch
    artifact: str
    late_no: int | None = None


def publish_accepted(context: Context, version: OpenVersion) -> PublishReport:
    """Publish every accepted record of the version, and the corrections of published ones.

    Where the version's promote policy is `manual`, nothing is published; the report says how much
    waits for `tallybook promote`.

    Raises:
        AcceptanceUnproven: a state says accepted and nothing else does.
        StagedValuesDiffer: staging and judgement disagree.
        CorrectionDiffers: a correction and its decision disagree.
        ArtifactDamaged: a staging file's bytes are not those that were judged.
        ArtifactMissing: a staging file or thumbnail is not in the store.
    """
    with context.ledger.read() as connection:
        if is_manual(connection, version.version_no):
            return PublishReport(0, 0, 0, waiting=_waiting(connection, context, version))
    done = PublishReport(0, 0, 0)
    busy = []
    context.progress.start("publishing", None)
    for staged in staged_of(context, version):
        if not _has_accepted(context, staged):
            continue
        try:
            with (
                held(context.ledger, staged.batch.lease_name, context.worker) as lease,
                without_garbage_collector(),
            ):
                counts = _publish(context, version, lease, staged)
        except LeaseHeld:
            busy.append(staged.batch.batch_id)
            continue
        done = done.plus(counts)
        context.progress.advance(counts.published)
    context.progress.finish()
    return replace(
        done.plus(PublishReport(0, 0, 0, restored=restore_current(context, version))),
        corrected=_correct(context, version),
        busy=tuple(busy),
    )


def is_manual(connection: Connection, version_no: int) -> bool:
    """Does the version publish by command only?"""
    return operating_value(connection, version_no, "promote", "auto") == "manual"


def _waiting(connection: Connection, context: Context, version: OpenVersion) -> int:
    """Records whose values, or whose corrected or earlier values, a promotion would show."""
    accepted = context.ledger.dialect.fetch(
        connection,
        "SELECT COUNT(*) FROM records r JOIN record_state s ON s.record_no = r.record_no "
        "WHERE r.version_no = ? AND s.state = 'accepted'",
        {"count": pl.Int64},
        (version.version_no,),
    ).item()
    corrected = waiting_corrections(connection, context.ledger, version.version_no)
    return int(accepted) + corrected.height


def staged_of(context: Context, version: OpenVersion) -> list[Staged]:
    """Everything of a version that was judged, by batch: each holds a shard at most."""
    batches = {
        batch.batch_no: batch
        for batch in find_batches(context.ledger, version.version_no, COMPLETE)
    }
    own = [
        Staged(batch, batch.staging_artifact)
        for batch in batches.values()
        if batch.staging_artifact is not None
    ]
    late = [
        Staged(batches[entry.batch_no], entry.staging_artifact, entry.late_no)
        for entry in find_late_answers(context.ledger, version.version_no, judged=True)
        if entry.staging_artifact is not None and entry.batch_no in batches
    ]
    return own + late


def _has_accepted(context: Context, staged: Staged) -> bool:
    with context.ledger.read() as connection:
        return has_accepted(connection, staged)


def has_accepted(connection: Connection, staged: Staged) -> bool:
    """Is any record of a staging frame accepted?"""
    if staged.late_no is None:
        return has_record_in_state(connection, staged.batch, "accepted")
    return late_record_in_state(connection, staged.late_no, "accepted")


def _publish(context: Context, version: OpenVersion, lease: Lease, staged: Staged) -> PublishReport:
    ledger = context.ledger
    cause = context.cause("published", "publish")
    with (
        fenced(ledger, lease) as connection,
        open_change(connection, "publish", version.version_no, cause) as change,
    ):
        lock_archive(connection, ledger)
        if is_manual(connection, version.version_no):
            # Somebody rolled the version back while its batches were being published.
            return PublishReport(0, 0, 0)
        return publish_staged(connection, context, version, staged, change, cause)


@dataclass(frozen=True)
class Delivery:
    """What delivering a staging frame comes to, before anything is written.

    Attributes:
        fresh: `CANDIDATE_SCHEMA` of records to write an entry for.
        done: record_no, entry_no of records whose delivery key is in the ledger.
        older: record_no of records whose document has a newer published one.
        current: the rows of `done` whose document has no newer published record.
    """

    fresh: pl.DataFrame
    done: pl.DataFrame
    older: pl.Series
    current: pl.DataFrame


def plan_delivery(
    connection: Connection,
    context: Context,
    version: OpenVersion,
    staged: Staged,
    only: pl.Series | None = None,
    state: str = "accepted",
) -> Delivery:
    """What is to be done about the accepted records of one staging frame.

    Args:
        connection: a transaction that may stage tables; to act on the plan, the write transaction
            that holds the archive's lock.
        context: the open resources.
        version: their processing version.
        staged: the frame.
        only: record_no of the records that are meant; all by default.
        state: `published` asks what would be done if those records were accepted again.

    Raises:
        see `publish_accepted`.
    """
    batch, ledger = staged.batch, context.ledger
    # A file changed in place would carry other values, or other search text, under a right digest.
    context.artifacts.verify("frame", staged.artifact)
    staging = read_frame(STAGING, context.artifacts.require("frame", staged.artifact))
    accepted = (
        accepted_of_batch(connection, ledger, batch, state)
        if staged.late_no is None
        else accepted_of_late(connection, ledger, staging, state)
    )
    if only is not None:
        accepted = accepted.filter(pl.col("record_no").is_in(only.implode()))
    key = parser_settings(version.spec).key
    fields = searched(version.workload.fields)
    candidates = candidates_of(connection, context, batch.batch_id, accepted, staging, key, fields)
    done = delivered(connection, ledger, candidates)
    fresh = candidates.join(done, on="record_no", how="anti", maintain_order="left")
    newer_shown = (pl.col("head_record_no") > pl.col("record_no")) & ~pl.col("current")
    hidden = candidates.filter(newer_shown)["record_no"]
    older = fresh.filter(pl.col("record_no").is_in(hidden.implode()))["record_no"]
    fresh = fresh.filter(~pl.col("record_no").is_in(hidden.implode()))
    current = done.filter(~pl.col("record_no").is_in(hidden.implode()))
    return Delivery(fresh.select(list(CANDIDATE_SCHEMA)), done, older, current)


def entries_again(connection: Connection, context: Context, plan: Delivery) -> pl.Series:
    """entry_no of former entries that delivered records are to show again."""
    return pl.concat(
        [
            accepted_again(connection, context.ledger, plan.current),
            left_with_their_document(connection, context.ledger, plan.current),
        ]
    ).unique(maintain_order=True)


def publish_staged(
    connection: Connection,
    context: Context,
    version: OpenVersion,
    staged: Staged,
    change: OpenChange,
    cause: Cause,
    only: pl.Series | None = None,
) -> PublishReport:
    """Publish the accepted records of one staging frame.

    Args:
        connection: the write transaction, which holds the archive's lock.
        context: the open resources.
        version: their processing version.
        staged: the frame.
        change: the change that the new entries are part of.
        cause: why the records are moved.
        only: record_no of the records that are meant; all by default.

    Raises:
        see `publish_accepted`.
    """
    batch, ledger = staged.batch, context.ledger
    plan = plan_delivery(connection, context, version, staged, only)
    fresh, done, older = plan.fresh, plan.done, plan.older
    replaced = 0
    if not fresh.is_empty():
        replaced = publish_entries(
            connection,
            ledger,
            version.version_no,
            fresh,
            change.at,
            change.number,
        )
        change.count(fresh.height, replaced)
    former = entries_again(connection, context, plan)
    again = show_again(connection, ledger, former, change, searched_of(context.settings))
    overtaken = replace(cause, reason="a newer record is published")
    for members, target, why in (
        (pl.concat([done["record_no"], fresh["record_no"]]), "published", cause),
        (older, "superseded", overtaken),
    ):
        move_records(
            connection,
            ledger.dialect,
            members,
            "accepted",
            target,
            why,
            batch_chain(batch.batch_no),
        )
    return PublishReport(fresh.height, done.height, replaced, older.len(), restored=again)


def _correct(context: Context, version: OpenVersion) -> int:
    """Show the corrections of published records; returns how many."""
    ledger, number = context.ledger, version.version_no
    with ledger.read() as connection:
        if waiting_corrections(connection, ledger, number).is_empty():
            return 0
    with (
        held(ledger, f"correct:{version.key}", context.worker) as lease,
        fenced(ledger, lease) as connection,
        open_change(
            connection, "correction", number, context.cause("corrected by a reviewer", "publish")
        ) as change,
    ):
        lock_archive(connection, ledger)
        if is_manual(connection, number):
            return 0
        return show_corrections(connection, context, version, change)
