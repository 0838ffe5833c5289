"""Accepted records with the values that may be published, each proven to have been accepted.

Belongs here: joining ledger and staging, putting a reviewer's correction in the place of the
model's values, and refusing what nobody accepted. Does not belong here: publishing
(`publish_accepted.py`), and corrections of what is published already (`corrections.py`).

Only the ledger's word counts: a record that is not `accepted` there is never published, whatever
a staging file says, so that this stage run alone can leak nothing.
"""

from __future__ import annotations

import hashlib

import polars as pl
from sqlalchemy import Connection

from resources.artifacts import ArtifactMissing
from resources.context import Context
from resources.ledger.archive import CANDIDATE_SCHEMA
from resources.ledger.archive_content import SEARCH_COLUMNS, Searched, search_entries_of
from resources.ledger.judgements import reviewed_records

_FACTS_SCHEMA = {
    "record_no": pl.Int64,
    "document_no": pl.Int64,
    "accepted_digest": pl.String,
    "judged": pl.String,
    "thumbnail": pl.String,
    "head_record_no": pl.Int64,
    "current": pl.Int64,
}
_REVIEW_SCHEMA = {
    "record_no": pl.Int64,
    "review_no": pl.Int64,
    "kind": pl.String,
    "decision": pl.String,
    "decided_at": pl.String,
    "corrected_digest": pl.String,
    "corrected_content": pl.String,
}


class StagedValuesDiffer(Exception):
    """A staged value is not the one that was accepted."""

    def __init__(self, batch_id: str, count: int) -> None:
        super().__init__(
            f"{count} staged values of batch {batch_id} do not have the digest that was accepted; "
            "nothing of the batch was published. Restore the state folder from a backup."
        )


class CorrectionDiffers(Exception):
    """A reviewer's correction does not have the digest that was stored with the decision."""

    def __init__(self, count: int) -> None:
        super().__init__(
            f"{count} corrections do not have the digest that was stored with their decision; "
            "nothing was published. Restore the ledger from a backup."
        )


class AcceptanceUnproven(Exception):
    """A record's state says accepted, and neither a judgement nor a reviewer's decision does."""

    def __init__(self, batch_id: str, count: int) -> None:
        super().__init__(
            f"{count} records of batch {batch_id} are in state 'accepted' without a judgement or a "
            "reviewer's move that accepted them; nothing of the batch was published. Their state "
            "was changed past the journal: restore the ledger from a backup."
        )


def candidates_of(
    connection: Connection,
    context: Context,
    batch_id: str,
    accepted: pl.DataFrame,
    staging: pl.DataFrame,
    parser_key: str,
    searched: Searched,
) -> pl.DataFrame:
    """Accepted records with their values, checked against judgement and review in the ledger.

    Args:
        connection: the write transaction that publishes them.
        context: the open resources.
        batch_id: for messages.
        accepted: record_no, attempt_no, request_digest of accepted records.
        staging: the staging frame that holds their values.
        parser_key: what the parses of the version are cached under.
        searched: what is searched in the content of the version's workload.

    Returns:
        `CANDIDATE_SCHEMA`, and `head_record_no`, the record of the same version that the archive
        shows for the document, and `current`: the source holds the record's bytes now.

    Raises:
        AcceptanceUnproven: a state says accepted and nothing else does.
        StagedValuesDiffer: staging and judgement disagree.
        CorrectionDiffers: a correction and its decision disagree.
        ArtifactMissing: a thumbnail is not in the store.
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
        _FACTS_SCHEMA,
        (parser_key,),
    )
    reviews = ledger.dialect.fetch(
        connection,
        "SELECT s.record_no, w.review_no, w.kind, w.decision, w.decided_at, w.corrected_digest, "
        "w.corrected_content FROM stage_accepted s JOIN reviews w ON w.attempt_no = s.attempt_no",
        _REVIEW_SCHEMA,
    )
    unproven = _unproven(connection, context, facts, reviews)
    if unproven:
        raise AcceptanceUnproven(batch_id, unproven)
    agreeing = _agreeing(batch_id, accepted, facts, staging)
    _require_thumbnails(context, agreeing["thumbnail"])
    return _corrected(agreeing, reviews, searched).select(
        *CANDIDATE_SCHEMA, "head_record_no", pl.col("current") == 1
    )


def _unproven(
    connection: Connection, context: Context, facts: pl.DataFrame, reviews: pl.DataFrame
) -> int:
    """How many records nobody accepted.

    What the rules did not accept must have a reviewer's move in the journal and, where the ledger
    has a review of it, that review's decision. What a reviewer rejected is accepted by nobody.
    """
    rejected = reviews.filter(pl.col("decision") == "reject")["record_no"]
    doubtful = facts.filter(pl.col("judged") != "accepted")["record_no"]
    if doubtful.is_empty():
        return rejected.n_unique()
    moved = reviewed_records(connection, context.ledger, doubtful)["record_no"]
    asked = reviews.filter(pl.col("kind") == "findings")
    agreed = asked.filter(pl.col("decision").is_in(["accept", "correct"]))["record_no"]
    undecided = asked.filter(~pl.col("record_no").is_in(agreed.implode()))["record_no"]
    unmoved = doubtful.filter(~doubtful.is_in(moved.implode()))
    undecided = doubtful.filter(doubtful.is_in(undecided.implode()))
    return pl.concat([rejected, unmoved, undecided]).n_unique()


def _agreeing(
    batch_id: str, accepted: pl.DataFrame, facts: pl.DataFrame, staging: pl.DataFrame
) -> pl.DataFrame:
    """Accepted records with facts and staged values, all of which have the accepted digest."""
    joined = accepted.join(facts, on="record_no", maintain_order="left").join(
        staging.drop("attempt_no", "outcome"), on="record_no", maintain_order="left"
    )
    # Of the values themselves: a digest that stands beside them proves nothing.
    agreeing = joined.filter(
        (pl.col("accepted_digest") == pl.col("values_digest"))
        & (pl.col("accepted_digest") == digests_of(joined["content"]))
    )
    if agreeing.height != accepted.height:
        raise StagedValuesDiffer(batch_id, accepted.height - agreeing.height)
    return agreeing.with_columns(promotion=pl.lit(1, dtype=pl.Int64))


def digests_of(contents: pl.Series) -> pl.Series:
    """The SHA-256 of each content; null where there is none."""
    found = [
        None if content is None else hashlib.sha256(content.encode()).hexdigest()
        for content in contents
    ]
    return pl.Series(found, dtype=pl.String)


def require_corrections(corrections: pl.DataFrame) -> None:
    """Refuse corrections whose content is not what was decided.

    Args:
        corrections: corrected_digest and corrected_content of decided reviews.

    Raises:
        CorrectionDiffers: some are not.
    """
    agreeing = corrections.filter(
        pl.col("corrected_digest") == digests_of(corrections["corrected_content"])
    )
    if agreeing.height != corrections.height:
        raise CorrectionDiffers(corrections.height - agreeing.height)


def _corrected(values: pl.DataFrame, reviews: pl.DataFrame, searched: Searched) -> pl.DataFrame:
    """The same with the content of the newest correction, where a reviewer decided for one."""
    decided = (
        reviews.filter(pl.col("decision") == "correct")
        .sort("decided_at", "review_no")
        .unique("record_no", keep="last", maintain_order=True)
    )
    if decided.is_empty():
        return values
    require_corrections(decided)
    corrected = search_entries_of(
        decided.select("record_no", content="corrected_content", values_digest="corrected_digest"),
        searched,
    )
    return values.update(
        corrected.select("record_no", "content", "values_digest", *SEARCH_COLUMNS), on="record_no"
    )


def _require_thumbnails(context: Context, digests: pl.Series) -> None:
    for digest in digests.unique():
        if not context.artifacts.has("thumbnail", digest):
            raise ArtifactMissing("thumbnail", digest)
