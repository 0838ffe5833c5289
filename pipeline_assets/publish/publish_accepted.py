"""Publishing what the ledger says is accepted, a batch at a time, each shard whole or not at all.

Belongs here: reading accepted records with their staged values, and the transaction. Does not
belong here: the archive's rows (`resources/ledger/archive.py`), acceptance (`accept`).

Only the ledger's word counts: a record that is not `accepted` there is never published, whatever
a staging file says, so that this stage run alone can leak nothing.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace

import polars as pl
from sqlalchemy import Connection

from pipeline_assets.parser_settings import parser_settings
from pipeline_assets.publish.restore_current import restore_current
from pipeline_assets.versions import OpenVersion
from resources.artifacts import ArtifactMissing
from resources.context import Context
from resources.contracts import STAGING, read_frame
from resources.garbage import without_garbage_collector
from resources.ledger.archive import (
    CANDIDATE_SCHEMA,
    delivered,
    lock_archive,
    publish_entries,
)
from resources.ledger.batches import COMPLETE, Batch, find_batches
from resources.ledger.judgements import (
    accepted_of_batch,
    accepted_of_late,
    has_record_in_state,
    late_record_in_state,
    reviewed_records,
)
from resources.ledger.late import find_late_answers
from resources.ledger.leases import Lease, LeaseHeld, fenced, held
from resources.ledger.moves import batch_chain, move_records


class StagedValuesDiffer(Exception):
    """A staged value is not the one that was accepted."""

    def __init__(self, batch_id: str, count: int) -> None:
        super().__init__(
            f"{count} staged values of batch {batch_id} do not have the digest that was accepted; "
            "nothing of the batch was published. Restore the state folder from a backup."
        )


class AcceptanceUnproven(Exception):
    """A record's state says accepted, and neither a judgement nor a reviewer's move does."""

    def __init__(self, batch_id: str, count: int) -> None:
        super().__init__(
            f"{count} records of batch {batch_id} are in state 'accepted' without a judgement or a "
            "reviewer's move that accepted them; nothing of the batch was published. Their state "
            "was changed past the journal: restore the ledger from a backup."
        )


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
    """

    published: int
    already: int
    replaced: int
    superseded: int = 0
    restored: int = 0
    busy: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Staged:
    """A staging frame that is published together: a batch's own, or one of late answers."""

    batch: Batch
    artifact: str
    late_no: int | None = None


def publish_accepted(context: Context, version: OpenVersion) -> PublishReport:
    """Publish every accepted record of the version.

    Raises:
        AcceptanceUnproven: a state says accepted and nothing else does.
        StagedValuesDiffer: staging and judgement disagree.
        ArtifactDamaged: a staging file's bytes are not those that were judged.
        ArtifactMissing: a staging file or thumbnail is not in the store.
    """
    done = PublishReport(0, 0, 0)
    busy = []
    context.progress.start("publishing", None)
    for staged in _staged(context, version):
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
        done = PublishReport(
            done.published + counts.published,
            done.already + counts.already,
            done.replaced + counts.replaced,
            done.superseded + counts.superseded,
        )
        context.progress.advance(counts.published)
    context.progress.finish()
    return replace(done, restored=restore_current(context, version), busy=tuple(busy))


def _staged(context: Context, version: OpenVersion) -> list[_Staged]:
    batches = {
        batch.batch_no: batch
        for batch in find_batches(context.ledger, version.version_no, COMPLETE)
    }
    own = [
        _Staged(batch, batch.staging_artifact)
        for batch in batches.values()
        if batch.staging_artifact is not None
    ]
    late = [
        _Staged(batches[entry.batch_no], entry.staging_artifact, entry.late_no)
        for entry in find_late_answers(context.ledger, version.version_no, judged=True)
        if entry.staging_artifact is not None and entry.batch_no in batches
    ]
    return own + late


def _has_accepted(context: Context, staged: _Staged) -> bool:
    with context.ledger.read() as connection:
        if staged.late_no is None:
            return has_record_in_state(connection, staged.batch, "accepted")
        return late_record_in_state(connection, staged.late_no, "accepted")


def _publish(
    context: Context, version: OpenVersion, lease: Lease, staged: _Staged
) -> PublishReport:
    batch = staged.batch
    # A file changed in place would carry other values, or other search text, under a right digest.
    context.artifacts.verify("frame", staged.artifact)
    staging = read_frame(STAGING, context.artifacts.require("frame", staged.artifact))
    key = parser_settings(version.spec).key
    ledger = context.ledger
    with fenced(ledger, lease) as connection:
        lock_archive(connection, ledger)
        accepted = (
            accepted_of_batch(connection, ledger, batch)
            if staged.late_no is None
            else accepted_of_late(connection, ledger, staging)
        )
        candidates = _candidates(connection, context, batch, accepted, staging, key)
        done = delivered(connection, ledger, candidates)
        fresh = candidates.join(done, on="record_no", how="anti", maintain_order="left")
        older = fresh.filter((pl.col("head_record_no") > pl.col("record_no")) & ~pl.col("current"))[
            "record_no"
        ]
        fresh = fresh.filter(~pl.col("record_no").is_in(older.implode()))
        cause = context.cause("published", "publish")
        replaced = publish_entries(
            connection,
            ledger,
            version.version_no,
            fresh.select(list(CANDIDATE_SCHEMA)),
            cause.at,
        )
        for members, target, why in (
            (pl.concat([done["record_no"], fresh["record_no"]]), "published", cause),
            (older, "superseded", context.cause("a newer record is published", "publish")),
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
    return PublishReport(fresh.height, done.height, replaced, older.len())


def _candidates(
    connection: Connection,
    context: Context,
    batch: Batch,
    accepted: pl.DataFrame,
    staging: pl.DataFrame,
    parser_key: str,
) -> pl.DataFrame:
    """Accepted records with their values, checked against the judgement in the ledger.

    `head_record_no` is the record of the same version that the archive shows for the document;
    `current` says that the source holds the record's bytes now.
    """
    ledger = context.ledger
    ledger.dialect.stage(connection, "stage_accepted", accepted.select("record_no", "attempt_no"))
    facts = ledger.dialect.fetch(
        connection,
        "SELECT s.record_no, r.document_no, j.values_digest, j.outcome, p.thumbnail, e.record_no, "
        "CASE WHEN n.entry_no IS NULL THEN 0 ELSE 1 END "
        "FROM stage_accepted s JOIN records r ON r.record_no = s.record_no "
        "JOIN judgements j ON j.attempt_no = s.attempt_no "
        "JOIN parses p ON p.checksum = r.checksum AND p.parser_key = ? "
        "LEFT JOIN source_entries n ON n.document_no = r.document_no "
        "AND n.source_version_no = r.source_version_no AND n.to_snapshot IS NULL "
        "LEFT JOIN archive_heads h ON h.document_no = r.document_no "
        "LEFT JOIN archive_entries e ON e.entry_no = h.entry_no AND e.version_no = r.version_no",
        {
            "record_no": pl.Int64,
            "document_no": pl.Int64,
            "accepted_digest": pl.String,
            "judged": pl.String,
            "thumbnail": pl.String,
            "head_record_no": pl.Int64,
            "current": pl.Int64,
        },
        (parser_key,),
    )
    _require_acceptance(connection, context, batch, facts)
    joined = accepted.join(facts, on="record_no", maintain_order="left").join(
        staging.drop("attempt_no", "outcome"), on="record_no", maintain_order="left"
    )
    # Of the values themselves: a digest that stands beside them proves nothing.
    found = [
        None if content is None else hashlib.sha256(content.encode()).hexdigest()
        for content in joined["content"]
    ]
    agreeing = joined.filter(
        (pl.col("accepted_digest") == pl.col("values_digest"))
        & (pl.col("accepted_digest") == pl.Series(found, dtype=pl.String))
    )
    if agreeing.height != accepted.height:
        raise StagedValuesDiffer(batch.batch_id, accepted.height - agreeing.height)
    missing = [
        digest
        for digest in agreeing["thumbnail"].unique()
        if not context.artifacts.has("thumbnail", digest)
    ]
    if missing:
        raise ArtifactMissing("thumbnail", missing[0])
    first = agreeing.with_columns(
        promotion=pl.lit(1, dtype=pl.Int64), current=pl.col("current") == 1
    )
    return first.select(*CANDIDATE_SCHEMA, "head_record_no", "current")


def _require_acceptance(
    connection: Connection, context: Context, batch: Batch, facts: pl.DataFrame
) -> None:
    """What the rules did not accept must have a reviewer's move in the journal."""
    doubtful = facts.filter(pl.col("judged") != "accepted").select("record_no")
    if doubtful.is_empty():
        return
    reviewed = reviewed_records(connection, context.ledger, doubtful["record_no"])
    unproven = doubtful.join(reviewed, on="record_no", how="anti").height
    if unproven:
        raise AcceptanceUnproven(batch.batch_id, unproven)
