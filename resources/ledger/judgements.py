"""Judgements and findings: what acceptance decided about each succeeded attempt, and why.

Belongs here: storing both, and the records that wait to be judged or published. Does not belong
here: the rules (`pipeline_assets/workloads`) and the decision (`accept`).
"""

from __future__ import annotations

import polars as pl
from sqlalchemy import Connection, text

from resources.ledger.allocate import next_number
from resources.ledger.batches import Batch
from resources.ledger.engine import Ledger
from resources.ledger.schema import findings, judgements

FACTS_SCHEMA = {
    "record_no": pl.Int64,
    "record_id": pl.String,
    "document_no": pl.Int64,
    "document_id": pl.String,
    "checksum": pl.String,
    "language": pl.String,
    "languages": pl.String,
    "page_count": pl.Int64,
    "text_pack": pl.String,
}
JUDGEMENT_SCHEMA = {
    "attempt_no": pl.Int64,
    "record_no": pl.Int64,
    "outcome": pl.String,
    "values_digest": pl.String,
}
FINDING_SCHEMA = {
    "record_no": pl.Int64,
    "attempt_no": pl.Int64,
    "rule": pl.String,
    "rule_version": pl.Int64,
    "severity": pl.String,
    "field": pl.String,
    "note": pl.String,
}


def facts_of(connection: Connection, ledger: Ledger, parser_key: str, batch: Batch) -> pl.DataFrame:
    """What the parsed text says about a batch's records (`FACTS_SCHEMA`), by attempt."""
    return ledger.dialect.fetch(
        connection,
        "SELECT r.record_no, r.record_id, r.document_no, d.document_id, r.checksum, p.language, "
        "p.languages, p.page_count, p.text_pack "
        "FROM attempts a JOIN records r ON r.record_no = a.record_no "
        "JOIN documents d ON d.document_no = r.document_no "
        "LEFT JOIN parses p ON p.checksum = r.checksum AND p.parser_key = ? "
        "WHERE a.attempt_no BETWEEN ? AND ? ORDER BY a.attempt_no",
        FACTS_SCHEMA,
        (parser_key, batch.first_attempt_no, batch.last_attempt_no),
    )


def facts_of_late(
    connection: Connection, ledger: Ledger, parser_key: str, late_no: int
) -> pl.DataFrame:
    """What the parsed text says about records that were answered late (`FACTS_SCHEMA`).

    Those of every set that came in with the same batch, this one's among them.
    """
    return ledger.dialect.fetch(
        connection,
        "SELECT DISTINCT r.record_no, r.record_id, r.document_no, d.document_id, r.checksum, "
        "p.language, p.languages, p.page_count, p.text_pack FROM late_answers w "
        "JOIN late_results l ON l.batch_no = w.batch_no AND l.used = 1 "
        "JOIN records r ON r.record_no = l.record_no "
        "JOIN documents d ON d.document_no = r.document_no "
        "LEFT JOIN parses p ON p.checksum = r.checksum AND p.parser_key = ? "
        "WHERE w.late_no = ? ORDER BY r.record_no",
        FACTS_SCHEMA,
        (parser_key, late_no),
    )


def unjudged_batches(connection: Connection, ledger: Ledger, version_no: int) -> pl.DataFrame:
    """Batches of a version whose answers are collected and not judged: batch_no."""
    return ledger.dialect.fetch(
        connection,
        "SELECT batch_no FROM batches WHERE version_no = ? AND staging_artifact IS NULL "
        "AND collected_artifact IS NOT NULL ORDER BY batch_no",
        {"batch_no": pl.Int64},
        (version_no,),
    )


def store_judgements(
    connection: Connection, ledger: Ledger, judged: pl.DataFrame, found: pl.DataFrame
) -> None:
    """Add judgements (`JUDGEMENT_SCHEMA`) and findings (`FINDING_SCHEMA`)."""
    ledger.dialect.load(connection, judgements, judged.select(list(JUDGEMENT_SCHEMA)))
    if found.is_empty():
        return
    first = next_number(connection, ledger.dialect, findings.c.finding_no)
    ledger.dialect.load(
        connection,
        findings,
        found.select(list(FINDING_SCHEMA))
        .with_row_index("index")
        .with_columns(finding_no=pl.col("index").cast(pl.Int64) + first)
        .drop("index"),
    )


def has_record_in_state(connection: Connection, batch: Batch, state: str) -> bool:
    """Is any record of a batch in a state?"""
    found = connection.execute(
        text(
            "SELECT 1 FROM attempts a JOIN record_state s ON s.record_no = a.record_no "
            "WHERE a.attempt_no BETWEEN :first AND :last AND s.state = :state LIMIT 1"
        ),
        {"first": batch.first_attempt_no, "last": batch.last_attempt_no, "state": state},
    )
    return found.first() is not None


def late_record_in_state(connection: Connection, late_no: int, state: str) -> bool:
    """Is any record that was answered late, with the same batch as a set, in a state?"""
    found = connection.execute(
        text(
            "SELECT 1 FROM late_answers w "
            "JOIN late_results l ON l.batch_no = w.batch_no AND l.used = 1 "
            "JOIN record_state s ON s.record_no = l.record_no "
            "WHERE w.late_no = :late_no AND s.state = :state LIMIT 1"
        ),
        {"late_no": late_no, "state": state},
    )
    return found.first() is not None


_ACCEPTED_SCHEMA = {"record_no": pl.Int64, "attempt_no": pl.Int64, "request_digest": pl.String}
# A record that was tried again is published from the attempt that was judged last.
_JUDGED_LAST = (
    "NOT EXISTS (SELECT 1 FROM attempts n JOIN judgements k ON k.attempt_no = n.attempt_no "
    "WHERE n.record_no = a.record_no AND n.attempt_no > a.attempt_no)"
)


def accepted_of_batch(
    connection: Connection, ledger: Ledger, batch: Batch, state: str = "accepted"
) -> pl.DataFrame:
    """The accepted records whose newest judgement is of this batch's attempt.

    An attempt that was answered late is staged with the late answers, not with its batch.

    Args:
        connection: inside a transaction.
        ledger: the ledger.
        batch: the batch.
        state: `published` for those that were accepted and published since.

    Returns:
        record_no, attempt_no, request_digest, by attempt.
    """
    return ledger.dialect.fetch(
        connection,
        "SELECT a.record_no, a.attempt_no, a.request_digest FROM attempts a "  # noqa: S608
        "JOIN judgements j ON j.attempt_no = a.attempt_no "
        "JOIN record_state s ON s.record_no = a.record_no AND s.state = ? "
        f"WHERE a.attempt_no BETWEEN ? AND ? AND {_JUDGED_LAST} AND NOT EXISTS "
        "(SELECT 1 FROM late_results l WHERE l.attempt_no = a.attempt_no AND l.used = 1) "
        "ORDER BY a.attempt_no",
        _ACCEPTED_SCHEMA,
        (state, batch.first_attempt_no, batch.last_attempt_no),
    )


def accepted_of_late(
    connection: Connection, ledger: Ledger, staged: pl.DataFrame, state: str = "accepted"
) -> pl.DataFrame:
    """The same of a set of late answers, whose attempts are of earlier batches.

    Args:
        connection: inside a transaction that may stage tables.
        ledger: the ledger.
        staged: attempt_no of the set's staging frame.
        state: as `accepted_of_batch` has it.
    """
    ledger.dialect.stage(connection, "stage_staged", staged.select("attempt_no"))
    return ledger.dialect.fetch(
        connection,
        "SELECT a.record_no, a.attempt_no, a.request_digest FROM stage_staged g "  # noqa: S608
        "JOIN attempts a ON a.attempt_no = g.attempt_no "
        "JOIN judgements j ON j.attempt_no = a.attempt_no "
        "JOIN record_state s ON s.record_no = a.record_no AND s.state = ? "
        f"WHERE {_JUDGED_LAST} ORDER BY a.attempt_no",
        _ACCEPTED_SCHEMA,
        (state,),
    )


def reviewed_records(connection: Connection, ledger: Ledger, records: pl.Series) -> pl.DataFrame:
    """Which of the records the journal has going from review to acceptance: record_no."""
    ledger.dialect.stage(
        connection, "stage_reviewed", pl.DataFrame({"record_no": records.cast(pl.Int64)})
    )
    return ledger.dialect.fetch(
        connection,
        "SELECT DISTINCT s.record_no FROM stage_reviewed s "
        "JOIN move_members k ON k.record_no = s.record_no "
        "JOIN moves m ON m.move_no = k.move_no "
        "WHERE m.from_state = 'awaiting_review' AND m.to_state = 'accepted'",
        {"record_no": pl.Int64},
    )
