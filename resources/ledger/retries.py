"""Retries in the ledger: what was tried before, what was decided, and what is due.

Belongs here: set-based queries and writes over attempts that did not succeed. Does not belong
here: the decision (`pipeline_assets/recovery/retry.py`) and dead letters (`dead_letters.py`).
"""

from __future__ import annotations

import polars as pl
from sqlalchemy import Connection, text

from resources.ledger.engine import Ledger
from resources.ledger.schema import retry_decisions

TRIED_SCHEMA = {
    "record_no": pl.Int64,
    "attempt_no": pl.Int64,
    "recovery_path": pl.String,
    "failure_class": pl.String,
    "counted": pl.Int64,
    "submitted_at": pl.String,
}
AGAIN_SCHEMA = {
    "record_no": pl.Int64,
    "record_id": pl.String,
    "document_no": pl.Int64,
    "document_id": pl.String,
    "source_version_no": pl.Int64,
    "checksum": pl.String,
    "operation": pl.String,
    "state": pl.String,
    "parent_attempt_no": pl.Int64,
    "parent_ordinal": pl.Int64,
    "parent_batch_no": pl.Int64,
    "parent_records": pl.Int64,
    "request_artifact": pl.String,
    "request_digest": pl.String,
    "request_offset": pl.Int64,
    "request_length": pl.Int64,
    "path": pl.String,
    "pages": pl.Int64,
    "pages_sent": pl.Int64,
    "tokens": pl.Int64,
    "redactions": pl.Int64,
    "larger_output": pl.Int64,
    "repair_prompt": pl.Int64,
    "fewer_pages": pl.Int64,
}
"""A record that gets another attempt, with its newest one; `path` is what was decided. The last
three count the attempts that went such a path: what they changed is in the newest request."""

# An answer that acceptance found to be another document's has its class in its decision alone.
# Only attempts since the record was last requeued or replayed count: somebody gave it a new
# start, whatever it was then (a dead letter, one given away before, one that a reviewer had).
_TRIED = """
SELECT s.record_no, a.attempt_no, a.recovery_path, COALESCE(p.failure_class, t.failure_class),
    COALESCE(t.counted, CASE WHEN p.disposition = 'expired' THEN 0 ELSE 1 END), b.submitted_at
FROM stage_failed s
JOIN attempts a ON a.record_no = s.record_no AND a.attempt_no <= s.attempt_no
JOIN batches b ON b.batch_no = a.batch_no
LEFT JOIN dispositions p ON p.attempt_no = a.attempt_no
LEFT JOIN retry_decisions t ON t.attempt_no = a.attempt_no
WHERE a.attempt_no >= COALESCE((SELECT MAX(q.attempt_no) FROM attempts q
    WHERE q.record_no = s.record_no AND q.attempt_no <= s.attempt_no
    AND q.recovery_path IN ('requeue', 'replay')), 0)
"""
_NEWEST = (
    "NOT EXISTS (SELECT 1 FROM attempts n WHERE n.record_no = a.record_no "
    "AND n.attempt_no > a.attempt_no)"
)
_AGAIN = """
SELECT r.record_no, r.record_id, r.document_no, d.document_id, r.source_version_no, r.checksum,
    r.operation, s.state, a.attempt_no, a.ordinal, a.batch_no, b.expected_records,
    b.request_artifact, a.request_digest, a.request_offset, a.request_length,
    COALESCE(t.recovery_path, 'repeat'), n.pages, n.pages_sent, n.tokens, n.redactions,
    (SELECT COUNT(*) FROM attempts g
        WHERE g.record_no = r.record_no AND g.recovery_path = 'larger_output'),
    (SELECT COUNT(*) FROM attempts g
        WHERE g.record_no = r.record_no AND g.recovery_path = 'repair_prompt'),
    (SELECT COUNT(*) FROM attempts g
        WHERE g.record_no = r.record_no AND g.recovery_path = 'fewer_pages')
FROM {chosen}
JOIN attempts a ON a.attempt_no = c.attempt_no
JOIN batches b ON b.batch_no = a.batch_no
JOIN records r ON r.record_no = a.record_no
JOIN record_state s ON s.record_no = r.record_no
JOIN documents d ON d.document_no = r.document_no
LEFT JOIN retry_decisions t ON t.attempt_no = a.attempt_no
LEFT JOIN renderings n ON n.attempt_no = a.attempt_no
WHERE r.version_no = ? {state} ORDER BY r.record_id
"""
# From the decisions, not from the states: few attempts fail, and no index is on a state.
_WAITING = (
    "FROM retry_decisions t JOIN record_state s ON s.record_no = t.record_no "
    "JOIN records r ON r.record_no = t.record_no "
    "JOIN attempts a ON a.attempt_no = t.attempt_no "
    "WHERE s.state = 'retry_wait' AND t.decision IN ('retry', 'hold') AND " + _NEWEST
)


def tried_before(connection: Connection, ledger: Ledger, failed: pl.DataFrame) -> pl.DataFrame:
    """What was tried for each failed attempt's record (`retry.FAILED_SCHEMA` of the stage).

    Args:
        connection: may write temporary tables.
        ledger: the ledger.
        failed: attempt_no, record_no, failure_class.

    Returns:
        attempt_no, record_no, failure_class, attempts, of_class, free, paths,
        first_submitted_at; the counts are of attempts before the failed one.
    """
    ledger.dialect.stage(connection, "stage_failed", failed.select("attempt_no", "record_no"))
    tried = ledger.dialect.fetch(connection, _TRIED, TRIED_SCHEMA)
    earlier = tried.join(failed.select("attempt_no"), on="attempt_no", how="anti")
    present = failed.select("record_no", present="failure_class")
    # The first attempt has no path of its own; a requeue or a replay is a new start.
    starts = ["first", "requeue", "replay"]
    named = pl.col("recovery_path").filter(~pl.col("recovery_path").is_in(starts))
    counts = (
        earlier.join(present, on="record_no")
        .group_by("record_no")
        .agg(
            attempts=pl.col("counted").sum(),
            of_class=(pl.col("failure_class") == pl.col("present")).sum().cast(pl.Int64),
            free=(1 - pl.col("counted")).sum(),
        )
    )
    # The failed attempt's own path was gone too, and its batch may be the first that was sent.
    gone = tried.group_by("record_no").agg(
        paths=named.unique().sort().str.join(" "),
        first_submitted_at=pl.col("submitted_at").min(),
    )
    return (
        failed.select("attempt_no", "record_no", "failure_class")
        .join(counts, on="record_no", how="left", maintain_order="left")
        .join(gone, on="record_no", how="left", maintain_order="left")
        .with_columns(
            pl.col("attempts", "of_class", "free").fill_null(0), pl.col("paths").fill_null("")
        )
        .select(
            "attempt_no",
            "record_no",
            "failure_class",
            "attempts",
            "of_class",
            "free",
            "paths",
            "first_submitted_at",
        )
    )


def store_decisions(connection: Connection, ledger: Ledger, decided: pl.DataFrame, at: str) -> None:
    """Add decisions, and set when waiting records are due.

    Args:
        connection: inside the transaction that moved the records.
        ledger: the ledger.
        decided: attempt_no, record_no, decision, recovery_path, counted, failure_class, reason,
            not_before.
        at: now.
    """
    if decided.is_empty():
        return
    ledger.dialect.load(
        connection, retry_decisions, decided.with_columns(decided_at=pl.lit(at, dtype=pl.String))
    )
    waiting = decided.filter(pl.col("not_before").is_not_null())
    for (until,), part in waiting.group_by("not_before"):
        set_not_before(connection, ledger, part["record_no"], str(until))


def set_not_before(connection: Connection, ledger: Ledger, records: pl.Series, until: str) -> None:
    """Say when records that wait for a retry are due."""
    ledger.dialect.stage(connection, "stage_due", pl.DataFrame({"record_no": records}))
    connection.execute(
        text(
            "UPDATE record_state SET not_before = :until "
            "WHERE state = 'retry_wait' AND record_no IN (SELECT record_no FROM stage_due)"
        ),
        {"until": until},
    )


def due_retries(ledger: Ledger, version_no: int, at: str) -> pl.DataFrame:
    """Records of a version that are due for another attempt by `at` (`AGAIN_SCHEMA`), by id."""
    chosen = (
        "(SELECT t.attempt_no AS attempt_no " + _WAITING + " AND r.version_no = ? "
        "AND (s.not_before IS NULL OR s.not_before <= ?)) c"
    )
    with ledger.read() as connection:
        return ledger.dialect.fetch(
            connection,
            _AGAIN.format(chosen=chosen, state="AND s.state = 'retry_wait'"),
            AGAIN_SCHEMA,
            (version_no, at, version_no),
        )


def newest_attempts(
    connection: Connection, ledger: Ledger, version_no: int, records: pl.Series
) -> pl.DataFrame:
    """Given records with their newest attempt (`AGAIN_SCHEMA`), by id."""
    ledger.dialect.stage(
        connection, "stage_again", pl.DataFrame({"record_no": records.cast(pl.Int64)})
    )
    chosen = (
        "(SELECT MAX(w.attempt_no) AS attempt_no FROM stage_again g "
        "JOIN attempts w ON w.record_no = g.record_no GROUP BY g.record_no) c"
    )
    return ledger.dialect.fetch(
        connection, _AGAIN.format(chosen=chosen, state=""), AGAIN_SCHEMA, (version_no,)
    )


def waiting_retries(ledger: Ledger) -> pl.DataFrame:
    """Versions with records that wait for a retry: version_no, records, first_due (UTC text)."""
    with ledger.read() as connection:
        return ledger.dialect.fetch(
            connection,
            "SELECT r.version_no, COUNT(*), COALESCE(MIN(s.not_before), '') "
            + _WAITING
            + " GROUP BY r.version_no ORDER BY r.version_no",
            {"version_no": pl.Int64, "records": pl.Int64, "first_due": pl.String},
        )


def first_retry(ledger: Ledger, version_no: int) -> str | None:
    """When the first waiting record of a version is due, UTC text; None if none waits."""
    with ledger.read() as connection:
        return ledger.dialect.fetch(
            connection,
            "SELECT MIN(COALESCE(s.not_before, t.decided_at)) "
            + _WAITING
            + " AND r.version_no = ?",
            {"first_due": pl.String},
            (version_no,),
        ).item()


def retries_made(connection: Connection, version_no: int) -> int:
    """Attempts of a version that followed a failed one by themselves, and those decided on.

    What waits for its time counts as made: batches that fail one after the other share a budget.
    """
    made = connection.execute(
        text(
            "SELECT COALESCE(SUM(b.expected_records), 0) FROM batches b "
            "JOIN manifests m ON m.manifest_no = b.manifest_no "
            "WHERE b.version_no = :version AND m.replay_reason = 'transient_retry' "
            # Somebody may give this reason for a replay, which follows nothing by itself.
            "AND m.replay_no IS NULL AND b.state <> 'cancelled'"
        ),
        {"version": version_no},
    ).scalar_one()
    waiting = connection.execute(
        text(
            "SELECT COUNT(*) " + _WAITING + " AND t.decision = 'retry' AND r.version_no = :version"
        ),
        {"version": version_no},
    ).scalar_one()
    return int(made) + int(waiting)
