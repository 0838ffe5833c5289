"""Dead letters: records that the pipeline gave up, an episode a row, and who has to deal with them.

Belongs here: opening, closing and finding episodes, set-based. Does not belong here: moving the
records (`moves.py`), and deciding what becomes of a dead letter
(`pipeline_assets/recovery/dead_letters.py`).

The state of a record says whether it is a dead letter; an episode says why, since when and whose.
A record that was given up by a release that kept no episodes is found too, with what its newest
disposition and the journal say.
"""

from __future__ import annotations

import polars as pl
from sqlalchemy import Connection, bindparam, text, update

from resources.ledger.engine import Ledger
from resources.ledger.frames import PolarsType
from resources.ledger.schema import dead_letters

DEAD_LETTER_SCHEMA: dict[str, PolarsType] = {
    "attempt_no": pl.Int64,
    "record_no": pl.Int64,
    "version_no": pl.Int64,
    "failure_class": pl.String,
    "reason": pl.String,
    "owner": pl.String,
    "opened_at": pl.String,
}
FOUND_SCHEMA: dict[str, PolarsType] = {
    "record_no": pl.Int64,
    "record_id": pl.String,
    "document_id": pl.String,
    "version_no": pl.Int64,
    "version_key": pl.String,
    "state": pl.String,
    "failure_class": pl.String,
    "reason": pl.String,
    "owner": pl.String,
    "opened_at": pl.String,
    "closed_at": pl.String,
    "closing": pl.String,
    "closing_reason": pl.String,
    "closed_by": pl.String,
    "recorded": pl.Int64,
    "attempts": pl.Int64,
    "newest_batch_no": pl.Int64,
    "attempt_no": pl.Int64,
    "ordinal": pl.Int64,
    "recovery_path": pl.String,
    "batch_no": pl.Int64,
    "batch_id": pl.String,
    "disposition": pl.String,
    "diagnostics": pl.String,
    "result_file_no": pl.Int64,
    "result_artifact": pl.String,
    "line": pl.Int64,
    "line_offset": pl.Int64,
    "line_length": pl.Int64,
}
COUNT_SCHEMA: dict[str, PolarsType] = {
    "version_no": pl.Int64,
    "version_key": pl.String,
    "failure_class": pl.String,
    "letters": pl.Int64,
    "aged": pl.Int64,
    "oldest_at": pl.String,
}
TRY_SCHEMA: dict[str, PolarsType] = {
    "record_no": pl.Int64,
    "attempt_no": pl.Int64,
    "ordinal": pl.Int64,
    "recovery_path": pl.String,
    "parent_attempt_no": pl.Int64,
    "batch_id": pl.String,
    "provider": pl.String,
    "model": pl.String,
    "submitted_at": pl.String,
    "disposition": pl.String,
    "failure_class": pl.String,
    "diagnostics": pl.String,
    "model_revision": pl.String,
    "input_tokens": pl.Int64,
    "output_tokens": pl.Int64,
    "decision": pl.String,
    "next_path": pl.String,
    "counted": pl.Int64,
    "decision_reason": pl.String,
    "not_before": pl.String,
}
LINE_SCHEMA: dict[str, PolarsType] = {
    "record_no": pl.Int64,
    "attempt_no": pl.Int64,
    "result_artifact": pl.String,
    "kind": pl.String,
    "line": pl.Int64,
    "line_offset": pl.Int64,
    "line_length": pl.Int64,
    "anomaly": pl.String,
    "used": pl.Int64,
}
CLOSINGS = frozenset({"requeued", "discarded", "answered", "superseded", "withdrawn"})
"""How an episode ends."""
UNCLASSIFIED = "unclassified"
"""The class of a dead letter whose newest attempt did not fail: only its judgement did."""

# An episode that is open while its record went elsewhere is stale, and no dead letter.
_EPISODES = (
    "SELECT d.attempt_no, d.record_no, d.version_no, d.failure_class, d.reason, d.owner, "
    "d.opened_at, d.closed_at, d.closing, d.closing_reason, d.closed_by, 1 AS recorded "
    "FROM dead_letters d"
)
_OPEN = (
    " JOIN record_state o ON o.record_no = d.record_no AND o.state = 'dead_letter' "
    "WHERE d.closed_at IS NULL"
)
_UNRECORDED = (
    "SELECT n.attempt_no, n.record_no, n.version_no, "  # noqa: S608 - our own names
    f"COALESCE(p.failure_class, '{UNCLASSIFIED}') AS failure_class, "
    "COALESCE(NULLIF(p.diagnostics, ''), m.reason, '') AS reason, '' AS owner, "
    "m.moved_at AS opened_at, NULL AS closed_at, NULL AS closing, NULL AS closing_reason, "
    "NULL AS closed_by, 0 AS recorded FROM ("
    "SELECT s.record_no, r.version_no, "
    "(SELECT MAX(a.attempt_no) FROM attempts a WHERE a.record_no = s.record_no) AS attempt_no, "
    "(SELECT MAX(k.move_no) FROM move_members k JOIN moves g ON g.move_no = k.move_no "
    "WHERE k.record_no = s.record_no AND g.to_state = 'dead_letter') AS move_no "
    "FROM record_state s JOIN records r ON r.record_no = s.record_no "
    "WHERE s.state = 'dead_letter' AND NOT EXISTS (SELECT 1 FROM dead_letters x "
    "WHERE x.record_no = s.record_no AND x.closed_at IS NULL)) n "
    "LEFT JOIN dispositions p ON p.attempt_no = n.attempt_no "
    "LEFT JOIN moves m ON m.move_no = n.move_no"
)
_FIND = (
    "SELECT e.record_no, r.record_id, c.document_id, e.version_no, v.key, s.state, "
    "e.failure_class, e.reason, e.owner, e.opened_at, e.closed_at, e.closing, e.closing_reason, "
    "e.closed_by, e.recorded, "
    "(SELECT COUNT(*) FROM attempts t WHERE t.record_no = e.record_no) AS attempts, "
    "(SELECT t.batch_no FROM attempts t WHERE t.record_no = e.record_no "
    "ORDER BY t.attempt_no DESC LIMIT 1) AS newest_batch_no, "
    "e.attempt_no, a.ordinal, a.recovery_path, a.batch_no, b.batch_id, q.disposition, "
    "q.diagnostics, q.result_file_no, f.artifact, q.line, l.line_offset, l.line_length "
    "FROM ({episodes}) e JOIN records r ON r.record_no = e.record_no "
    "JOIN record_state s ON s.record_no = e.record_no "
    "JOIN documents c ON c.document_no = r.document_no "
    "JOIN processing_versions v ON v.version_no = e.version_no "
    "LEFT JOIN attempts a ON a.attempt_no = e.attempt_no "
    "LEFT JOIN batches b ON b.batch_no = a.batch_no "
    "LEFT JOIN dispositions q ON q.attempt_no = e.attempt_no "
    "LEFT JOIN result_files f ON f.result_file_no = q.result_file_no "
    "LEFT JOIN results l ON l.result_file_no = q.result_file_no AND l.line = q.line "
    "{where}ORDER BY e.record_no, e.attempt_no"
)
_COUNT = (
    "SELECT e.version_no, v.key, e.failure_class, COUNT(*), "
    "SUM(CASE WHEN e.opened_at < ? THEN 1 ELSE 0 END), MIN(e.opened_at) "
    "FROM ({episodes}) e JOIN processing_versions v ON v.version_no = e.version_no "
    "{where}GROUP BY e.version_no, v.key, e.failure_class ORDER BY e.version_no, e.failure_class"
)
_TRIES = (
    "SELECT a.record_no, a.attempt_no, a.ordinal, a.recovery_path, a.parent_attempt_no, "
    "b.batch_id, b.provider, b.model, b.submitted_at, p.disposition, p.failure_class, "
    "p.diagnostics, p.model_revision, p.input_tokens, p.output_tokens, d.decision, "
    "d.recovery_path, d.counted, d.reason, d.not_before "
    "FROM attempts a JOIN batches b ON b.batch_no = a.batch_no "
    "LEFT JOIN dispositions p ON p.attempt_no = a.attempt_no "
    "LEFT JOIN retry_decisions d ON d.attempt_no = a.attempt_no "
    "WHERE a.record_no IN ({few}) ORDER BY a.record_no, a.attempt_no"
)
# Lines have no index on their attempt: those of the batch's own files are a range of the key, and
# late ones, which may be in files of other batches, have a table with such an index.
_LINES = (
    "SELECT a.record_no, a.attempt_no, f.artifact, f.kind, l.line, l.line_offset, l.line_length, "
    "l.anomaly, NULL AS used FROM attempts a JOIN result_files f ON f.batch_no = a.batch_no "
    "JOIN results l ON l.result_file_no = f.result_file_no AND l.attempt_no = a.attempt_no "
    "WHERE a.record_no IN ({few}) AND NOT EXISTS (SELECT 1 FROM late_results x "
    "WHERE x.result_file_no = l.result_file_no AND x.line = l.line) "
    "UNION ALL "
    "SELECT a.record_no, a.attempt_no, f.artifact, f.kind, l.line, l.line_offset, l.line_length, "
    "l.anomaly, x.used FROM attempts a JOIN late_results x ON x.attempt_no = a.attempt_no "
    "JOIN result_files f ON f.result_file_no = x.result_file_no "
    "JOIN results l ON l.result_file_no = x.result_file_no AND l.line = x.line "
    "WHERE a.record_no IN ({few}) ORDER BY 1, 2, 3, 5"
)


def open_dead_letters(connection: Connection, ledger: Ledger, frame: pl.DataFrame) -> None:
    """Open an episode a row (`DEAD_LETTER_SCHEMA`); one that is open already stays as it is.

    An attempt that had an episode before (a late answer of it closed that, and could not be used
    after all) has it opened again: the journal keeps what happened in between.
    """
    if frame.is_empty():
        return
    rows = frame.select(
        pl.col(name).cast(dtype, strict=True) for name, dtype in DEAD_LETTER_SCHEMA.items()
    )
    ledger.dialect.stage(connection, "stage_dead", rows.select("attempt_no"))
    known = ledger.dialect.fetch(
        connection,
        "SELECT d.attempt_no, CASE WHEN d.closed_at IS NULL THEN 1 ELSE 0 END "
        "FROM stage_dead s JOIN dead_letters d ON d.attempt_no = s.attempt_no",
        {"attempt_no": pl.Int64, "is_open": pl.Int64},
    )
    ledger.dialect.load(connection, dead_letters, rows.join(known, on="attempt_no", how="anti"))
    again = rows.join(known.filter(pl.col("is_open") == 0), on="attempt_no", how="semi")
    if not again.is_empty():
        _reopen(connection, again)


def _reopen(connection: Connection, rows: pl.DataFrame) -> None:
    connection.execute(
        update(dead_letters)
        .where(dead_letters.c.attempt_no == bindparam("same_attempt"))
        .values(
            failure_class=bindparam("failure_class"),
            reason=bindparam("reason"),
            owner=bindparam("owner"),
            opened_at=bindparam("opened_at"),
            closed_at=None,
            closing=None,
            closing_reason=None,
            closed_by=None,
        ),
        rows.select(
            "failure_class", "reason", "owner", "opened_at", same_attempt="attempt_no"
        ).to_dicts(),
    )


def close_dead_letters(
    connection: Connection,
    ledger: Ledger,
    records: pl.Series,
    *,
    closing: str,
    reason: str,
    by: str,
    at: str,
) -> int:
    """Close the open episodes of a set of records; returns how many were open.

    Args:
        connection: inside a write transaction.
        ledger: the ledger.
        records: record numbers; those without an open episode are passed over.
        closing: how it ended, one of `CLOSINGS`.
        reason: a sentence for people.
        by: who or what closed it.
        at: the ledger's text form of the time.

    Raises:
        ValueError: `closing` is not one of `CLOSINGS`.
    """
    if closing not in CLOSINGS:
        raise ValueError(f"found closing {closing!r}; expected one of {sorted(CLOSINGS)}")
    if records.is_empty():
        return 0
    ledger.dialect.stage(
        connection, "stage_dead", pl.DataFrame({"record_no": records.cast(pl.Int64)})
    )
    return connection.execute(
        text(
            "UPDATE dead_letters SET closed_at = :at, closing = :closing, "
            "closing_reason = :reason, closed_by = :by WHERE closed_at IS NULL "
            "AND record_no IN (SELECT record_no FROM stage_dead)"
        ),
        {"at": at, "closing": closing, "reason": reason, "by": by},
    ).rowcount


def assign_dead_letters(
    connection: Connection, ledger: Ledger, records: pl.Series, owner: str
) -> int:
    """Give the open episodes of a set of records to an owner; returns how many there were."""
    if records.is_empty():
        return 0
    ledger.dialect.stage(
        connection, "stage_dead", pl.DataFrame({"record_no": records.cast(pl.Int64)})
    )
    return connection.execute(
        text(
            "UPDATE dead_letters SET owner = :owner WHERE closed_at IS NULL "
            "AND record_no IN (SELECT record_no FROM stage_dead)"
        ),
        {"owner": owner},
    ).rowcount


def find_dead_letters(
    connection: Connection, ledger: Ledger, version_no: int | None, *, only_open: bool = True
) -> pl.DataFrame:
    """Dead letters (`FOUND_SCHEMA`) of a version or of all, by record and attempt.

    `attempts` is how many tries the record had in all, and `newest_batch_no` the batch of the
    last; the other facts of an attempt are those of the one that the episode is about. Where its
    answer lies is pointed at, never copied: `result_artifact` with `line`, and `line_offset` and
    `line_length` in bytes. `recorded` is 0 where no episode was written (a release before there
    were any); its `owner` is empty then.

    Args:
        connection: inside a transaction.
        ledger: the ledger.
        version_no: the version; None for all.
        only_open: the present dead letters alone; else closed and stale episodes too.
    """
    episodes = f"{_EPISODES}{_OPEN if only_open else ''} UNION ALL {_UNRECORDED}"
    where = "" if version_no is None else "WHERE e.version_no = ? "
    return ledger.dialect.fetch(
        connection,
        _FIND.format(episodes=episodes, where=where),
        FOUND_SCHEMA,
        () if version_no is None else (version_no,),
    )


def count_dead_letters(
    connection: Connection, ledger: Ledger, version_no: int | None, opened_before: str
) -> pl.DataFrame:
    """The present dead letters by version and class (`COUNT_SCHEMA`).

    `aged` are those that were opened before `opened_before`.
    """
    where = "" if version_no is None else "WHERE e.version_no = ? "
    return ledger.dialect.fetch(
        connection,
        _COUNT.format(episodes=f"{_EPISODES}{_OPEN} UNION ALL {_UNRECORDED}", where=where),
        COUNT_SCHEMA,
        (opened_before,) if version_no is None else (opened_before, version_no),
    )


def tries_of(connection: Connection, ledger: Ledger, records: pl.Series) -> pl.DataFrame:
    """Every attempt of a few records and what was decided after it (`TRY_SCHEMA`), in order."""
    return ledger.dialect.fetch(connection, _TRIES.format(few=_few(records)), TRY_SCHEMA)


def lines_of(connection: Connection, ledger: Ledger, records: pl.Series) -> pl.DataFrame:
    """Every line that came back for a few records (`LINE_SCHEMA`), in order: pointers, no text.

    A line that came in after its attempt had a disposition has `used`: 1 where its answer became
    the record's, else 0.
    """
    return ledger.dialect.fetch(connection, _LINES.format(few=_few(records)), LINE_SCHEMA)


def stale_episodes(connection: Connection, ledger: Ledger, version_no: int) -> pl.DataFrame:
    """Open episodes whose record is no dead letter any more: record_no, document_id, state."""
    return ledger.dialect.fetch(
        connection,
        "SELECT d.record_no, c.document_id, s.state FROM dead_letters d "
        "JOIN record_state s ON s.record_no = d.record_no "
        "JOIN records r ON r.record_no = d.record_no "
        "JOIN documents c ON c.document_no = r.document_no "
        "WHERE d.closed_at IS NULL AND s.state <> 'dead_letter' AND d.version_no = ? "
        "ORDER BY d.record_no",
        {"record_no": pl.Int64, "document_id": pl.String, "state": pl.String},
        (version_no,),
    )


def _few(records: pl.Series) -> str:
    """Record numbers for an IN: reading them back must not need a table, even a temporary one."""
    return ",".join(str(int(number)) for number in records) or "NULL"
