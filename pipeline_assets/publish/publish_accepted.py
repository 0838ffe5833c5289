"""Publishing what the ledger says is accepted, a batch at a time, each shard whole or not at all.

Belongs here: reading accepted records with their staged values, and the transaction. Does not
belong here: the archive's rows (`resources/ledger/archive.py`), acceptance (`accept`).

Only the ledger's word counts: a record that is not `accepted` there is never published, whatever
a staging file says, so that this stage run alone can leak nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl
from sqlalchemy import Connection

from pipeline_assets.parser_settings import parser_settings
from pipeline_assets.versions import OpenVersion
from resources.artifacts import ArtifactMissing
from resources.context import Context
from resources.contracts import STAGING, read_frame
from resources.ledger.archive import CANDIDATE_SCHEMA, delivered, publish_entries
from resources.ledger.batches import COMPLETE, Batch, find_batches
from resources.ledger.judgements import has_record_in_state, records_in_state
from resources.ledger.leases import Lease, fenced, held
from resources.ledger.moves import batch_chain, move_records


class StagedValuesDiffer(Exception):
    """A staged value is not the one that was accepted."""

    def __init__(self, batch_id: str, count: int) -> None:
        super().__init__(
            f"{count} staged values of batch {batch_id} do not have the digest that was accepted; "
            "nothing of the batch was published. Restore the state folder from a backup."
        )


@dataclass(frozen=True)
class PublishReport:
    """What was published.

    Attributes:
        published: records published now.
        already: accepted records whose delivery key was in the ledger; not published again.
        replaced: documents whose earlier entry was replaced.
    """

    published: int
    already: int
    replaced: int


def publish_accepted(context: Context, version: OpenVersion) -> PublishReport:
    """Publish every accepted record of the version.

    Raises:
        StagedValuesDiffer: staging and judgement disagree.
        ArtifactMissing: a staging file or thumbnail is not in the store.
        LeaseHeld: another worker is at one of the batches.
    """
    todo = [
        batch
        for batch in find_batches(context.ledger, version.version_no, COMPLETE)
        if batch.staging_artifact is not None
    ]
    published, already, replaced = 0, 0, 0
    context.progress.start("publishing", None)
    for batch in todo:
        if not _has_accepted(context, batch):
            continue
        with held(context.ledger, batch.lease_name, context.worker) as lease:
            counts = _publish_batch(context, version, lease, batch)
        published, already, replaced = (
            published + counts.published,
            already + counts.already,
            replaced + counts.replaced,
        )
        context.progress.advance(counts.published)
    context.progress.finish()
    return PublishReport(published, already, replaced)


def _has_accepted(context: Context, batch: Batch) -> bool:
    with context.ledger.read() as connection:
        return has_record_in_state(connection, batch, "accepted")


def _publish_batch(
    context: Context, version: OpenVersion, lease: Lease, batch: Batch
) -> PublishReport:
    assert batch.staging_artifact is not None  # noqa: S101 - filtered by the caller
    staging = read_frame(STAGING, context.artifacts.require("frame", batch.staging_artifact))
    key = parser_settings(version.spec).key
    with fenced(context.ledger, lease) as connection:
        accepted = records_in_state(connection, context.ledger, batch, "accepted")
        candidates = _candidates(connection, context, batch, accepted, staging, key)
        done = delivered(connection, context.ledger, candidates)
        cause = context.cause("published", "publish")
        fresh = candidates.join(done, on="record_no", how="anti", maintain_order="left")
        replaced = publish_entries(connection, context.ledger, version.version_no, fresh, cause.at)
        move_records(
            connection,
            context.ledger.dialect,
            candidates["record_no"],
            "accepted",
            "published",
            cause,
            batch_chain(batch.batch_no),
        )
    return PublishReport(fresh.height, done.height, replaced)


def _candidates(
    connection: Connection,
    context: Context,
    batch: Batch,
    accepted: pl.DataFrame,
    staging: pl.DataFrame,
    parser_key: str,
) -> pl.DataFrame:
    """Accepted records with their values, checked against the judgement in the ledger."""
    ledger = context.ledger
    ledger.dialect.stage(connection, "stage_accepted", accepted.select("record_no", "attempt_no"))
    facts = ledger.dialect.fetch(
        connection,
        "SELECT s.record_no, r.document_no, j.values_digest, p.thumbnail FROM stage_accepted s "
        "JOIN records r ON r.record_no = s.record_no "
        "JOIN judgements j ON j.attempt_no = s.attempt_no "
        "JOIN parses p ON p.checksum = r.checksum AND p.parser_key = ?",
        {
            "record_no": pl.Int64,
            "document_no": pl.Int64,
            "accepted_digest": pl.String,
            "thumbnail": pl.String,
        },
        (parser_key,),
    )
    joined = accepted.join(facts, on="record_no", maintain_order="left").join(
        staging.drop("attempt_no", "outcome"), on="record_no", maintain_order="left"
    )
    agreeing = joined.filter(pl.col("accepted_digest") == pl.col("values_digest"))
    if agreeing.height != accepted.height:
        raise StagedValuesDiffer(batch.batch_id, accepted.height - agreeing.height)
    missing = [
        digest
        for digest in agreeing["thumbnail"].unique()
        if not context.artifacts.has("thumbnail", digest)
    ]
    if missing:
        raise ArtifactMissing("thumbnail", missing[0])
    return agreeing.select(list(CANDIDATE_SCHEMA))
