"""Quality samples in the ledger: what may be drawn, what was drawn, and what was decided of it.

Belongs here: the rows. Does not belong here: which records a sample takes and what the decisions
say (`pipeline_assets/quality`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass

import polars as pl
from sqlalchemy import Connection, insert, select

from resources.ledger.engine import Ledger
from resources.ledger.review_queue import FITTING_STATE
from resources.ledger.reviews import QUALITY_SAMPLE
from resources.ledger.schema import batches, quality_sample_slices, quality_samples

_FACTS = {
    "language": pl.String,
    "page_count": pl.Int64,
    "notes": pl.String,
    "partial": pl.Int64,
}
CANDIDATE_SCHEMA = {
    "record_no": pl.Int64,
    "attempt_no": pl.Int64,
    "record_id": pl.String,
    **_FACTS,
}
"""A record that may be drawn, with the facts of its parse."""
STANDING_SCHEMA = {**_FACTS, "population": pl.Int64, "sampled": pl.Int64}
"""Records with the same facts of their parse: how many the rules accepted, how many were drawn."""
SLICE_SCHEMA = {"slice": pl.String, "population": pl.Int64, "drawn": pl.Int64}
DECISION_SCHEMA = {"slice": pl.String, "decision": pl.String, "reviews": pl.Int64}

# Of a record that was answered several times, only the answer that was judged last counts.
_JUDGED_LAST = (
    "NOT EXISTS (SELECT 1 FROM attempts n JOIN judgements k ON k.attempt_no = n.attempt_no "
    "WHERE n.record_no = a.record_no AND n.attempt_no > a.attempt_no)"
)
_DRAWN = f"v.attempt_no = a.attempt_no AND v.kind = '{QUALITY_SAMPLE}'"
_UNSEEN = (
    "NOT EXISTS (SELECT 1 FROM reviews v WHERE v.attempt_no = a.attempt_no AND "  # noqa: S608
    f"(v.kind = '{QUALITY_SAMPLE}' OR v.decision IN ('accept', 'correct', 'reject')))"
)


@dataclass(frozen=True)
class Sample:
    """A quality sample as it is stored.

    Attributes:
        sample_no: its number.
        version_no: of which version.
        seed: that its records were ordered by.
        percent: the share of each slice that was wanted, as a decimal number.
        least: the records of each slice that were wanted at least.
        reason: why it was drawn.
        actor: who drew it.
        drawn_at: UTC.
    """

    sample_no: int
    version_no: int
    seed: int
    percent: str
    least: int
    reason: str
    actor: str
    drawn_at: str


def standing(
    connection: Connection, ledger: Ledger, version_no: int, parser_key: str
) -> pl.DataFrame:
    """How many records the rules accepted and how many of them were drawn (`STANDING_SCHEMA`).

    A record that a reviewer rejected in a sample still counts: the rules had accepted it.
    """
    return ledger.dialect.fetch(
        connection,
        "SELECT p.language, p.page_count, p.notes, p.partial, COUNT(*), "  # noqa: S608
        f"COUNT(CASE WHEN EXISTS (SELECT 1 FROM reviews v WHERE {_DRAWN}) THEN 1 END) "
        "FROM records r JOIN record_state s ON s.record_no = r.record_no "
        "AND s.state IN ('accepted', 'published', 'rejected') "
        "JOIN attempts a ON a.record_no = r.record_no "
        "JOIN judgements j ON j.attempt_no = a.attempt_no AND j.outcome = 'accepted' "
        "LEFT JOIN parses p ON p.checksum = r.checksum AND p.parser_key = ? "
        f"WHERE r.version_no = ? AND {_JUDGED_LAST} "
        "GROUP BY p.language, p.page_count, p.notes, p.partial",
        STANDING_SCHEMA,
        (parser_key, version_no),
    )


def candidates(
    connection: Connection, ledger: Ledger, version_no: int, parser_key: str
) -> Iterator[pl.DataFrame]:
    """Records that may be drawn (`CANDIDATE_SCHEMA`), a batch at a time.

    Accepted by rules, and nobody looked at the answer or was asked to.
    """
    ranges = connection.execute(
        select(batches.c.first_attempt_no, batches.c.last_attempt_no)
        .where(batches.c.version_no == version_no)
        .order_by(batches.c.batch_no)
    ).all()
    for first, last in ranges:
        yield ledger.dialect.fetch(
            connection,
            "SELECT r.record_no, a.attempt_no, r.record_id, "  # noqa: S608
            "p.language, p.page_count, p.notes, p.partial FROM attempts a "
            "JOIN judgements j ON j.attempt_no = a.attempt_no AND j.outcome = 'accepted' "
            "JOIN record_state s ON s.record_no = a.record_no "
            "AND s.state IN ('accepted', 'published') "
            "JOIN records r ON r.record_no = a.record_no "
            "LEFT JOIN parses p ON p.checksum = r.checksum AND p.parser_key = ? "
            f"WHERE a.attempt_no BETWEEN ? AND ? AND {_JUDGED_LAST} AND {_UNSEEN}",
            CANDIDATE_SCHEMA,
            (parser_key, first, last),
        )


def still_candidates(connection: Connection, ledger: Ledger, attempts: pl.Series) -> pl.DataFrame:
    """Which of these attempts may be drawn now: attempt_no, values_digest.

    Inside the write transaction that draws them.
    """
    ledger.dialect.stage(
        connection, "stage_drawn", pl.DataFrame({"attempt_no": attempts.cast(pl.Int64)})
    )
    return ledger.dialect.fetch(
        connection,
        "SELECT a.attempt_no, j.values_digest FROM stage_drawn g "  # noqa: S608
        "JOIN attempts a ON a.attempt_no = g.attempt_no "
        "JOIN judgements j ON j.attempt_no = a.attempt_no AND j.outcome = 'accepted' "
        "JOIN record_state s ON s.record_no = a.record_no AND s.state IN ('accepted', 'published') "
        f"WHERE {_JUDGED_LAST} AND {_UNSEEN}",
        {"attempt_no": pl.Int64, "values_digest": pl.String},
    )


def store_sample(
    connection: Connection, ledger: Ledger, sample: Sample, slices: pl.DataFrame
) -> None:
    """Add a sample and what each slice of it was drawn from (`SLICE_SCHEMA`)."""
    connection.execute(insert(quality_samples).values(asdict(sample)))
    ledger.dialect.load(
        connection,
        quality_sample_slices,
        slices.select(*SLICE_SCHEMA, sample_no=pl.lit(sample.sample_no, dtype=pl.Int64)),
    )


def newest_sample(connection: Connection, version_no: int) -> Sample | None:
    """The newest sample of a version; None if none was drawn."""
    row = connection.execute(
        select(quality_samples)
        .where(quality_samples.c.version_no == version_no)
        .order_by(quality_samples.c.sample_no.desc())
        .limit(1)
    ).first()
    if row is None:
        return None
    return Sample(**row._mapping)


def slices_of_sample(connection: Connection, ledger: Ledger, sample_no: int) -> pl.DataFrame:
    """What each slice of a sample was drawn from (`SLICE_SCHEMA`), by slice."""
    return ledger.dialect.fetch(
        connection,
        "SELECT slice, population, drawn FROM quality_sample_slices WHERE sample_no = ?",
        SLICE_SCHEMA,
        (sample_no,),
    ).sort("slice")


def decisions_of_samples(connection: Connection, ledger: Ledger, version_no: int) -> pl.DataFrame:
    """The sampled answers of a version by slice and decision (`DECISION_SCHEMA`).

    `decision` is null where nobody decided. An answer that a newer one replaced is left out: it is
    not the record's any more. So is one that nobody decided and nobody can: its record is asked
    about again, or its document is gone.
    """
    return ledger.dialect.fetch(
        connection,
        "SELECT v.slice, v.decision, COUNT(*) FROM reviews v "  # noqa: S608
        "JOIN attempts a ON a.attempt_no = v.attempt_no "
        "JOIN record_state t ON t.record_no = v.record_no "
        f"WHERE v.version_no = ? AND v.kind = '{QUALITY_SAMPLE}' AND {_JUDGED_LAST} "
        f"AND (v.decision IS NOT NULL OR {FITTING_STATE}) "
        "GROUP BY v.slice, v.decision",
        DECISION_SCHEMA,
        (version_no,),
    ).sort("slice", "decision")


def corrections_of_samples(connection: Connection, ledger: Ledger, version_no: int) -> pl.DataFrame:
    """The corrected answers among them: attempt_no, batch_no, corrected_content; by attempt.

    Without those of erased documents, whose corrections were emptied.
    """
    return ledger.dialect.fetch(
        connection,
        "SELECT v.attempt_no, a.batch_no, v.corrected_content FROM reviews v "  # noqa: S608
        "JOIN attempts a ON a.attempt_no = v.attempt_no "
        f"WHERE v.version_no = ? AND v.kind = '{QUALITY_SAMPLE}' AND v.decision = 'correct' "
        f"AND v.corrected_content IS NOT NULL AND {_JUDGED_LAST}",
        {"attempt_no": pl.Int64, "batch_no": pl.Int64, "corrected_content": pl.String},
        (version_no,),
    ).sort("attempt_no")


def staged_artifacts(connection: Connection, ledger: Ledger, version_no: int) -> pl.DataFrame:
    """Where the judged values of a version's answers lie: batch_no, staging_artifact.

    Answers that came late lie with the batch that they came in with, not with their attempt's.
    """
    return ledger.dialect.fetch(
        connection,
        "SELECT batch_no, staging_artifact, 0 FROM batches "
        "WHERE version_no = ? AND staging_artifact IS NOT NULL "
        "UNION ALL SELECT w.batch_no, w.staging_artifact, 1 FROM late_answers w "
        "JOIN batches b ON b.batch_no = w.batch_no "
        "WHERE b.version_no = ? AND w.staging_artifact IS NOT NULL",
        {"batch_no": pl.Int64, "staging_artifact": pl.String, "late": pl.Int64},
        (version_no, version_no),
    )
