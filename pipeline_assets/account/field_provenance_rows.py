"""What the ledger has of one archive entry: the entry, the answers of its record, what was decided.

Belongs here: the queries behind the provenance of published values, each for one document or one
record. Does not belong here: putting them together (`field_provenance.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl
from sqlalchemy import Connection

from resources.ledger.engine import Ledger
from resources.ledger.frames import PolarsType

_INT, _TEXT = pl.Int64, pl.String

_ENTRY = {
    "entry_no": _INT,
    "record_no": _INT,
    "record_id": _TEXT,
    "operation": _TEXT,
    "replay_reason": _TEXT,
    "checksum": _TEXT,
    "key": _TEXT,
    "workload": _TEXT,
    "digest": _TEXT,
    "spec": _TEXT,
    "archive_version": _INT,
    "content": _TEXT,
    "content_digest": _TEXT,
    "valid_from": _TEXT,
    "valid_to": _TEXT,
    "shown": _INT,
    "first_shown": _TEXT,
    "change_kind": _TEXT,
    "change_reason": _TEXT,
    "change_actor": _TEXT,
    "changed_at": _TEXT,
}
_ANSWER = {
    "attempt_no": _INT,
    "ordinal": _INT,
    "recovery_path": _TEXT,
    "request_digest": _TEXT,
    "request_offset": _INT,
    "request_length": _INT,
    "request_artifact": _TEXT,
    "batch_id": _TEXT,
    "batch_key": _TEXT,
    "first_attempt_no": _INT,
    "provider": _TEXT,
    "mode": _TEXT,
    "model": _TEXT,
    "provider_job_id": _TEXT,
    "schema_version": _INT,
    "submitted_at": _TEXT,
    "manifest_id": _TEXT,
    "manifest_digest": _TEXT,
    "frozen_at": _TEXT,
    "values_digest": _TEXT,
    "replay_id": _TEXT,
    "replay_reason": _TEXT,
    "replay_note": _TEXT,
    "replay_actor": _TEXT,
    "replay_expression": _TEXT,
    "model_revision": _TEXT,
    "result_artifact": _TEXT,
    "line": _INT,
    "line_offset": _INT,
    "line_length": _INT,
    "late_line": _INT,
    "late_revision": _TEXT,
    "late_artifact": _TEXT,
    "late_offset": _INT,
    "late_length": _INT,
}
_REVIEW = {
    "review_no": _INT,
    "attempt_no": _INT,
    "kind": _TEXT,
    "decision": _TEXT,
    "decided_at": _TEXT,
    "reviewer": _TEXT,
    "reason": _TEXT,
    "corrected_digest": _TEXT,
}
_FINDING = {
    "rule": _TEXT,
    "rule_version": _INT,
    "severity": _TEXT,
    "field": _TEXT,
    "note": _TEXT,
}
_REPAIR = {"rule": _TEXT, "rule_version": _INT, "before_digest": _TEXT, "after_digest": _TEXT}
_FRAMES = {"staging": _TEXT, "places": _TEXT}


def entries_of_document(connection: Connection, ledger: Ledger, document_no: int) -> pl.DataFrame:
    """Every entry of a document, newest first, with the change that showed it.

    `shown` is 1 for the visible one; `first_shown` is when its record showed these values first.
    """
    return ledger.dialect.fetch(
        connection,
        "SELECT e.entry_no, r.record_no, r.record_id, r.operation, r.replay_reason, r.checksum, "
        "v.key, v.workload, v.digest, v.spec, e.archive_version, e.content, e.content_digest, "
        "e.valid_from, e.valid_to, CASE WHEN h.entry_no IS NULL THEN 0 ELSE 1 END, "
        "(SELECT MIN(f.valid_from) FROM archive_entries f WHERE f.document_no = e.document_no "
        "AND f.record_no = e.record_no AND f.content_digest = e.content_digest), "
        "c.kind, c.reason, c.actor, c.changed_at FROM archive_entries e "
        "JOIN records r ON r.record_no = e.record_no "
        "JOIN processing_versions v ON v.version_no = e.version_no "
        "LEFT JOIN archive_heads h ON h.entry_no = e.entry_no "
        "LEFT JOIN archive_changes c ON c.change_no = e.change_no "
        "WHERE e.document_no = ? ORDER BY e.archive_version DESC",
        _ENTRY,
        (document_no,),
    )


def judged_answers(connection: Connection, ledger: Ledger, record_no: int) -> pl.DataFrame:
    """The judged attempts at a record, oldest first, with batch, raw result and replay.

    A result that came late and was used has its own line, in the columns named `late_…`.
    """
    return ledger.dialect.fetch(
        connection,
        "SELECT a.attempt_no, a.ordinal, a.recovery_path, a.request_digest, a.request_offset, "
        "a.request_length, b.request_artifact, b.batch_id, b.batch_key, b.first_attempt_no, "
        "b.provider, b.mode, b.model, b.provider_job_id, b.request_schema_version, "
        "b.submitted_at, m.manifest_id, m.digest, m.frozen_at, j.values_digest, y.replay_id, "
        "y.reason, y.note, y.actor, y.expression, p.model_revision, f.artifact, p.line, "
        "l.line_offset, l.line_length, t.line, t.model_revision, g.artifact, x.line_offset, "
        "x.line_length FROM attempts a "
        "JOIN judgements j ON j.attempt_no = a.attempt_no "
        "JOIN batches b ON b.batch_no = a.batch_no "
        "JOIN manifests m ON m.manifest_no = b.manifest_no "
        "LEFT JOIN replays y ON y.replay_no = m.replay_no "
        "LEFT JOIN dispositions p ON p.attempt_no = a.attempt_no "
        "LEFT JOIN result_files f ON f.result_file_no = p.result_file_no "
        "LEFT JOIN results l ON l.result_file_no = p.result_file_no AND l.line = p.line "
        "LEFT JOIN late_results t ON t.attempt_no = a.attempt_no AND t.used = 1 "
        "LEFT JOIN result_files g ON g.result_file_no = t.result_file_no "
        "LEFT JOIN results x ON x.result_file_no = t.result_file_no AND x.line = t.line "
        "WHERE a.record_no = ? ORDER BY a.attempt_no",
        _ANSWER,
        (record_no,),
    )


def agreeing_reviews(connection: Connection, ledger: Ledger, record_no: int) -> pl.DataFrame:
    """The reviews of a record that ended in accept or correct, in the order of the decisions."""
    return ledger.dialect.fetch(
        connection,
        "SELECT review_no, attempt_no, kind, decision, decided_at, reviewer, reason, "
        "corrected_digest FROM reviews WHERE record_no = ? "
        "AND decision IN ('accept', 'correct') ORDER BY decided_at, review_no",
        _REVIEW,
        (record_no,),
    )


def findings_of_attempt(
    connection: Connection, ledger: Ledger, record_no: int, attempt_no: int
) -> list[dict[str, Any]]:
    """What the rules found in an answer, in that order."""
    return _rows(
        connection,
        ledger,
        "SELECT rule, rule_version, severity, field, note FROM findings "
        "WHERE record_no = ? AND attempt_no = ? ORDER BY finding_no",
        _FINDING,
        (record_no, attempt_no),
    )


def repairs_of_attempt(
    connection: Connection, ledger: Ledger, attempt_no: int
) -> list[dict[str, Any]]:
    """What was mended in the form of an answer, in that order."""
    return _rows(
        connection,
        ledger,
        "SELECT rule, rule_version, before_digest, after_digest FROM repairs "
        "WHERE attempt_no = ? ORDER BY ordinal",
        _REPAIR,
        (attempt_no,),
    )


def frames_of_attempt(
    connection: Connection, ledger: Ledger, attempt_no: int
) -> list[dict[str, Any]]:
    """The frames that may hold an attempt's staged values and places: its batch's, or late ones."""
    return _rows(
        connection,
        ledger,
        "SELECT b.staging_artifact, b.places_artifact FROM attempts a "
        "JOIN batches b ON b.batch_no = a.batch_no "
        "WHERE a.attempt_no = ? AND b.staging_artifact IS NOT NULL UNION ALL "
        "SELECT w.staging_artifact, w.places_artifact FROM late_results l "
        "JOIN late_answers w ON w.batch_no = l.batch_no "
        "WHERE l.attempt_no = ? AND l.used = 1 AND w.staging_artifact IS NOT NULL",
        _FRAMES,
        (attempt_no, attempt_no),
    )


def text_pack_of(
    connection: Connection, ledger: Ledger, checksum: str, parser_key: str
) -> str | None:
    """Where the parsed text of some bytes is; None if it gave none, or is not kept."""
    found = ledger.dialect.fetch(
        connection,
        "SELECT text_pack FROM parses WHERE checksum = ? AND parser_key = ?",
        {"text_pack": _TEXT},
        (checksum, parser_key),
    )
    return None if found.is_empty() else found["text_pack"][0]


def _rows(
    connection: Connection,
    ledger: Ledger,
    sql: str,
    schema: Mapping[str, PolarsType],
    parameters: Sequence[object],
) -> list[dict[str, Any]]:
    return ledger.dialect.fetch(connection, sql, schema, parameters).to_dicts()
