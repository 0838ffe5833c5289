"""Results and dispositions: what came back, line by line, and what it means for each attempt.

Belongs here: storing both, set-based. Does not belong here: reading a provider's lines and
deciding (`collect`).
"""

from __future__ import annotations

import polars as pl
from sqlalchemy import Connection, func, insert, select

from resources.ledger.batches import Batch
from resources.ledger.engine import Ledger
from resources.ledger.schema import dispositions, result_files, results

RESULT_SCHEMA = {
    "result_file_no": pl.Int64,
    "line": pl.Int64,
    "attempt_no": pl.Int64,
    "line_offset": pl.Int64,
    "line_length": pl.Int64,
    "anomaly": pl.String,
}
DISPOSITION_SCHEMA = {
    "attempt_no": pl.Int64,
    "disposition": pl.String,
    "failure_class": pl.String,
    "diagnostics": pl.String,
    "result_file_no": pl.Int64,
    "line": pl.Int64,
    "model_revision": pl.String,
    "input_tokens": pl.Int64,
    "output_tokens": pl.Int64,
    "cached_tokens": pl.Int64,
}

_STANDING = (
    "SELECT a.record_no, s.state, {newest} FROM attempts a "
    "JOIN record_state s ON s.record_no = a.record_no "
    "WHERE a.attempt_no BETWEEN ? AND ? ORDER BY a.attempt_no"
)
_NEWEST_JUDGED = (
    "(SELECT MAX(j.attempt_no) FROM attempts n JOIN judgements j "
    "ON j.attempt_no = n.attempt_no WHERE n.record_no = a.record_no)"
)


def store_result_file(
    connection: Connection,
    batch_no: int,
    kind: str,
    artifact: str,
    size: int,
    lines: int,
    at: str,
) -> None:
    """Add a result file; the same file again is a no-op."""
    known = connection.execute(
        select(result_files.c.result_file_no).where(
            result_files.c.batch_no == batch_no,
            result_files.c.kind == kind,
            result_files.c.artifact == artifact,
        )
    ).first()
    if known is None:
        connection.execute(
            insert(result_files).values(
                batch_no=batch_no,
                kind=kind,
                artifact=artifact,
                bytes=size,
                lines=lines,
                stored_at=at,
            )
        )


def result_files_of(ledger: Ledger, batch_no: int) -> pl.DataFrame:
    """The result files of a batch: result_file_no, kind, artifact, lines, bytes; oldest first."""
    with ledger.read() as connection:
        return ledger.dialect.fetch(
            connection,
            "SELECT result_file_no, kind, artifact, lines, bytes FROM result_files "
            "WHERE batch_no = ? ORDER BY result_file_no",
            {
                "result_file_no": pl.Int64,
                "kind": pl.String,
                "artifact": pl.String,
                "lines": pl.Int64,
                "bytes": pl.Int64,
            },
            (batch_no,),
        )


def store_results(
    connection: Connection, ledger: Ledger, observed: pl.DataFrame, decided: pl.DataFrame
) -> None:
    """Add result lines (`RESULT_SCHEMA`) and dispositions (`DISPOSITION_SCHEMA`)."""
    ledger.dialect.load(connection, results, observed.select(list(RESULT_SCHEMA)))
    ledger.dialect.load(connection, dispositions, decided.select(list(DISPOSITION_SCHEMA)))


def count_dispositions(connection: Connection, first_attempt: int, last_attempt: int) -> int:
    """How many attempts of a contiguous range have a disposition in the database."""
    return connection.execute(
        select(func.count()).where(dispositions.c.attempt_no.between(first_attempt, last_attempt))
    ).scalar_one()


def standing_of(
    connection: Connection, ledger: Ledger, batch: Batch, *, judged: bool
) -> pl.DataFrame:
    """Where the records of a batch stand: record_no, state, judged_attempt_no.

    Args:
        connection: inside a transaction.
        ledger: the ledger.
        batch: the batch.
        judged: look up the newest judged attempt of each record too; else it is null.
    """
    return ledger.dialect.fetch(
        connection,
        _STANDING.format(newest=_NEWEST_JUDGED if judged else "CAST(NULL AS BIGINT)"),
        {"record_no": pl.Int64, "state": pl.String, "judged_attempt_no": pl.Int64},
        (batch.first_attempt_no, batch.last_attempt_no),
    )


def unread_files(connection: Connection, ledger: Ledger, batch_no: int) -> pl.Series:
    """Result files of a batch none of whose lines is in the ledger yet: result_file_no."""
    return ledger.dialect.fetch(
        connection,
        "SELECT f.result_file_no FROM result_files f WHERE f.batch_no = ? AND f.lines > 0 "
        "AND NOT EXISTS (SELECT 1 FROM results l WHERE l.result_file_no = f.result_file_no) "
        "ORDER BY f.result_file_no",
        {"result_file_no": pl.Int64},
        (batch_no,),
    )["result_file_no"]


def unanswered_attempts(connection: Connection, ledger: Ledger, batch: Batch) -> pl.Series:
    """Attempts of a batch whose disposition no line stands behind, and no late one either."""
    return ledger.dialect.fetch(
        connection,
        "SELECT p.attempt_no FROM dispositions p WHERE p.attempt_no BETWEEN ? AND ? "
        "AND p.line IS NULL AND NOT EXISTS "
        "(SELECT 1 FROM late_results l WHERE l.attempt_no = p.attempt_no) ORDER BY p.attempt_no",
        {"attempt_no": pl.Int64},
        (batch.first_attempt_no, batch.last_attempt_no),
    )["attempt_no"]
