"""Reviews: what waits for a person, and every act on it.

Belongs here: opening reviews set by set, closing, deciding and assigning them. Does not belong
here: reading the queue (`review_queue.py`) and who may decide what (`pipeline_assets/review`).
"""

from __future__ import annotations

import polars as pl
from sqlalchemy import Connection, select, text

from resources.ledger.allocate import next_number
from resources.ledger.engine import Ledger
from resources.ledger.moves import Cause
from resources.ledger.schema import reviews

OPENING_SCHEMA = {
    "record_no": pl.Int64,
    "attempt_no": pl.Int64,
    "version_no": pl.Int64,
    "values_digest": pl.String,
    "slice": pl.String,
}
"""A judged attempt that a person has to look at."""

FINDINGS, QUALITY_SAMPLE = "findings", "quality_sample"
UNSEEN_PRIORITY = 10
"""Priority of a document that the archive does not show yet: until it is reviewed, nobody can find
it; one that is shown already keeps its earlier values meanwhile."""


def open_reviews(
    connection: Connection,
    ledger: Ledger,
    opening: pl.DataFrame,
    *,
    kind: str,
    at: str,
    sample_no: int = 0,
) -> None:
    """Open a review for each judged attempt.

    Args:
        connection: the write transaction that also moves the records, or draws the sample.
        ledger: the ledger.
        opening: `OPENING_SCHEMA`.
        kind: `findings` or `quality_sample`.
        at: now.
        sample_no: the quality sample that drew them.
    """
    if opening.is_empty():
        return
    dialect = ledger.dialect
    dialect.stage(connection, "stage_opening", opening.select("record_no"))
    shown = dialect.fetch(
        connection,
        "SELECT DISTINCT s.record_no FROM stage_opening s "
        "JOIN records r ON r.record_no = s.record_no "
        "JOIN archive_heads h ON h.document_no = r.document_no",
        {"record_no": pl.Int64},
    )["record_no"]
    first = next_number(connection, dialect, reviews.c.review_no)
    dialect.load(
        connection,
        reviews,
        opening.select(list(OPENING_SCHEMA))
        .with_row_index("index")
        .with_columns(
            review_no=pl.col("index").cast(pl.Int64) + first,
            kind=pl.lit(kind),
            sample_no=pl.lit(sample_no, dtype=pl.Int64),
            priority=pl.when(pl.col("record_no").is_in(shown.implode()))
            .then(pl.lit(0, dtype=pl.Int64))
            .otherwise(pl.lit(UNSEEN_PRIORITY, dtype=pl.Int64)),
            opened_at=pl.lit(at),
            revision=pl.lit(0, dtype=pl.Int64),
        )
        .drop("index"),
    )


def close_overtaken(
    connection: Connection,
    ledger: Ledger,
    records: pl.Series,
    at: str,
    *,
    by: str = "tallybook",
    why: str = "a newer answer of the record was judged",
) -> int:
    """Close the open reviews of records that are judged again or gone, and say how many.

    Nobody decided them: a newer answer of the record is what a person would look at now. That
    holds for a quality sample too, which asks about the values that were drawn.
    """
    if records.is_empty():
        return 0
    ledger.dialect.stage(
        connection, "stage_overtaken", pl.DataFrame({"record_no": records.cast(pl.Int64)})
    )
    which = "decision IS NULL AND record_no IN (SELECT record_no FROM stage_overtaken)"
    given = {"at": at, "who": by, "why": why}
    connection.execute(
        text(
            "INSERT INTO review_acts (review_no, revision, act, who, reason, acted_at) "  # noqa: S608
            "SELECT review_no, revision + 1, 'overtaken', CAST(:who AS TEXT), "
            f"CAST(:why AS TEXT), CAST(:at AS TEXT) FROM reviews WHERE {which}"
        ),
        given,
    )
    return connection.execute(
        text(
            "UPDATE reviews SET decision = 'overtaken', decided_at = :at, "  # noqa: S608
            f"revision = revision + 1 WHERE {which}"
        ),
        {"at": at},
    ).rowcount


STANDING_SCHEMA = {
    "review_no": pl.Int64,
    "asked_revision": pl.Int64,
    "revision": pl.Int64,
    "kind": pl.String,
    "decision": pl.String,
    "reviewer": pl.String,
    "decided_at": pl.String,
    "record_no": pl.Int64,
    "document_id": pl.String,
    "version_no": pl.Int64,
    "batch_no": pl.Int64,
    "state": pl.String,
    "answered_again": pl.Int64,
}
"""What an act has to know of a review: `revision` and what follows are null where there is none;
`answered_again` is 1 where a newer answer of the record was judged."""
DECISION_SCHEMA = {
    "review_no": pl.Int64,
    "revision": pl.Int64,
    "corrected_digest": pl.String,
    "corrected_content": pl.String,
}


def lock_reviews(connection: Connection, ledger: Ledger) -> None:
    """Hold the right to act on reviews to the end of the transaction.

    Acts are short, and two of them that lock the same reviews in another order would stand in
    each other's way. Whoever needs the archive too locks it after this.
    """
    ledger.dialect.lock_chain(connection, "reviews")


def standing_of(connection: Connection, ledger: Ledger, asked: pl.DataFrame) -> pl.DataFrame:
    """How the reviews stand now that an act names (`STANDING_SCHEMA`), by number.

    Args:
        connection: inside a write transaction.
        ledger: the ledger.
        asked: review_no, revision as the act saw it.
    """
    ledger.dialect.stage(connection, "stage_asked", asked.select("review_no", "revision"))
    return ledger.dialect.fetch(
        connection,
        "SELECT s.review_no, s.revision, v.revision, v.kind, v.decision, v.reviewer, "
        "v.decided_at, v.record_no, d.document_id, v.version_no, a.batch_no, t.state, "
        "CASE WHEN EXISTS (SELECT 1 FROM attempts n "
        "JOIN judgements k ON k.attempt_no = n.attempt_no "
        "WHERE n.record_no = v.record_no AND n.attempt_no > v.attempt_no) THEN 1 ELSE 0 END "
        "FROM stage_asked s LEFT JOIN reviews v ON v.review_no = s.review_no "
        "LEFT JOIN records r ON r.record_no = v.record_no "
        "LEFT JOIN documents d ON d.document_no = r.document_no "
        "LEFT JOIN attempts a ON a.attempt_no = v.attempt_no "
        "LEFT JOIN record_state t ON t.record_no = v.record_no ORDER BY s.review_no",
        STANDING_SCHEMA,
    )


def decide_reviews(
    connection: Connection, ledger: Ledger, decided: pl.DataFrame, decision: str, cause: Cause
) -> int:
    """Write a decision on reviews that are undecided and still at the revision that it names.

    Args:
        connection: the write transaction that also moves the records.
        ledger: the ledger.
        decided: `DECISION_SCHEMA`; the revision is the one that was decided on.
        decision: accept, correct or reject.
        cause: the reviewer as its actor, the reason and the time.

    Returns:
        How many reviews it was written on; fewer than asked for means that another act came
        first, and the caller must not commit.
    """
    _stage_act(connection, ledger, decided.select(list(DECISION_SCHEMA)))
    written = connection.execute(
        text(
            "UPDATE reviews SET decision = :decision, decided_at = :at, reviewer = :who, "
            "reason = :why, corrected_digest = s.corrected_digest, "
            "corrected_content = s.corrected_content, revision = reviews.revision + 1 "
            "FROM stage_act s WHERE reviews.review_no = s.review_no "
            "AND reviews.revision = s.revision AND reviews.decision IS NULL"
        ),
        {"decision": decision, "at": cause.at, "who": cause.actor, "why": cause.reason},
    ).rowcount
    _add_acts(connection, decision, cause)
    return written


def assign_reviews(
    connection: Connection, ledger: Ledger, asked: pl.DataFrame, to: str, cause: Cause
) -> int:
    """Give undecided reviews to a reviewer; see `decide_reviews` for the arguments."""
    _stage_act(connection, ledger, asked.select("review_no", "revision"))
    written = connection.execute(
        text(
            "UPDATE reviews SET assigned_to = :to_whom, revision = reviews.revision + 1 "
            "FROM stage_act s WHERE reviews.review_no = s.review_no "
            "AND reviews.revision = s.revision AND reviews.decision IS NULL"
        ),
        {"to_whom": to},
    ).rowcount
    _add_acts(connection, "assign", cause)
    return written


def take_review(connection: Connection, review_no: int, who: str, at: str, free_since: str) -> bool:
    """A reviewer has a review on the screen; False if another has, or it was decided.

    The first time stays, and showing it is no act: it changes nothing that another decides on.
    What another took at `free_since` or before is taken over.
    """
    return (
        connection.execute(
            text(
                "UPDATE reviews SET taken_at = CASE WHEN taken_by = :who THEN taken_at "
                "ELSE :at END, taken_by = :who WHERE review_no = :review_no "
                "AND decision IS NULL "
                "AND (taken_by IS NULL OR taken_by = :who OR taken_at <= :free_since)"
            ),
            {"who": who, "at": at, "review_no": review_no, "free_since": free_since},
        ).rowcount
        == 1
    )


def corrected_content_of(connection: Connection, review_no: int) -> str | None:
    """The content that a reviewer put in place of the model's; None where nobody did."""
    return connection.execute(
        select(reviews.c.corrected_content).where(reviews.c.review_no == review_no)
    ).scalar()


def _stage_act(connection: Connection, ledger: Ledger, acts: pl.DataFrame) -> None:
    ledger.dialect.stage(connection, "stage_act", acts)


def _add_acts(connection: Connection, act: str, cause: Cause) -> None:
    connection.execute(
        text(
            "INSERT INTO review_acts (review_no, revision, act, who, reason, acted_at) "
            "SELECT review_no, revision + 1, CAST(:act AS TEXT), CAST(:who AS TEXT), "
            "CAST(:why AS TEXT), CAST(:at AS TEXT) FROM stage_act"
        ),
        {"act": act, "who": cause.actor, "why": cause.reason, "at": cause.at},
    )
