"""Rows of the ledger that must fit each other: one statement a check, one row a finding.

Belongs here: attempts, dispositions, judgements, dead letters, deliveries, archive entries,
reviews, approvals and closings against one another. Does not belong here: anything that a file
decides, the journal (`journal.py`), and counts of a version's account (`account/violations.py`).

Each statement gives the name of the row and what was found there. `{version}` stands for the
condition that it is of the audited version.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from pipeline_assets.audit.look import Look

DISPOSITION, ATTEMPT, RECORD, DELIVERY, ENTRY, REVIEW, CLOSING = (
    "rows.disposition",
    "rows.attempt",
    "rows.record",
    "rows.delivery",
    "rows.archive",
    "rows.review",
    "rows.closing",
)

_COMPLETE = "('completed', 'completed_with_errors', 'retry_required')"
_RANGE = "BETWEEN b.first_attempt_no AND b.last_attempt_no"


def _named(number: str) -> str:
    return f"CAST({number} AS VARCHAR)"


_ATTEMPT = f"'attempt ' || {_named('a.attempt_no')} || ' of batch ' || b.batch_id"
_ENTRY = (
    "'archive version ' || CAST(e.archive_version AS VARCHAR) || ' of document ' || d.document_id"
)
_OF_ENTRY = "FROM archive_entries e JOIN documents d ON d.document_no = e.document_no "
_DELIVERY = "'delivery ' || CAST(y.promotion AS VARCHAR) || ' of record ' || r.record_id"
_OF_DELIVERY = "FROM deliveries y JOIN records r ON r.record_no = y.record_no "
_REVIEW = "'review ' || CAST(w.review_no AS VARCHAR)"
_LAST_ACT = "LEFT JOIN review_acts x ON x.review_no = w.review_no AND x.revision = w.revision "


@dataclass(frozen=True)
class RowCheck:
    """One statement.

    Attributes:
        check: the check that it belongs to.
        sql: gives subject and found, a row a finding.
        expected: what should be instead.
    """

    check: str
    sql: str
    expected: str


ROW_CHECKS: tuple[RowCheck, ...] = (
    RowCheck(
        DISPOSITION,
        f"SELECT {_ATTEMPT}, 'no disposition' FROM batches b JOIN attempts a "  # noqa: S608
        f"ON a.attempt_no {_RANGE} LEFT JOIN dispositions p ON p.attempt_no = a.attempt_no "
        f"WHERE {{version}} AND b.state IN {_COMPLETE} AND p.attempt_no IS NULL",
        "exactly one: its batch is complete",
    ),
    RowCheck(
        DISPOSITION,
        f"SELECT {_ATTEMPT}, 'the disposition ' || p.disposition FROM batches b "  # noqa: S608
        f"JOIN attempts a ON a.attempt_no {_RANGE} JOIN dispositions p "
        "ON p.attempt_no = a.attempt_no WHERE {version} AND (p.disposition NOT IN ('succeeded', "
        "'retryable_failure', 'permanent_failure', 'cancelled', 'expired') OR b.state NOT IN "
        "('completed', 'completed_with_errors', 'retry_required', 'reconciling', 'incident'))",
        "one of the five, and only once its batch is reconciled",
    ),
    RowCheck(
        DISPOSITION,
        f"SELECT 'disposition of attempt ' || {_named('p.attempt_no')}, 'no such attempt' "  # noqa: S608
        "FROM dispositions p LEFT JOIN attempts a ON a.attempt_no = p.attempt_no "
        "WHERE a.attempt_no IS NULL",
        "the attempt that it is of",
    ),
    RowCheck(
        DISPOSITION,
        f"SELECT {_ATTEMPT}, 'line ' || {_named('p.line')} || ' of result file ' || "  # noqa: S608
        f"{_named('p.result_file_no')} FROM batches b JOIN dispositions p ON p.attempt_no {_RANGE} "
        "JOIN attempts a ON a.attempt_no = p.attempt_no "
        "LEFT JOIN results l ON l.result_file_no = p.result_file_no AND l.line = p.line "
        "AND l.attempt_no = p.attempt_no "
        "WHERE {version} AND p.line IS NOT NULL AND l.line IS NULL",
        "a line that came back for this attempt",
    ),
    RowCheck(
        DISPOSITION,
        "SELECT 'batch ' || b.batch_id, 'reconciled records ' || "  # noqa: S608
        f"{_named('b.reconciled_records')} FROM batches b WHERE {{version}} "
        f"AND b.state IN {_COMPLETE} AND b.reconciled_records <> b.expected_records",
        "as many as it expects",
    ),
    RowCheck(
        ATTEMPT,
        f"SELECT 'attempt ' || {_named('a.attempt_no')}, 'batch number ' || "  # noqa: S608
        f"{_named('a.batch_no')} FROM attempts a LEFT JOIN batches b ON b.batch_no = a.batch_no "
        f"AND a.attempt_no {_RANGE} WHERE b.batch_no IS NULL",
        "the batch whose numbers it is among",
    ),
    RowCheck(
        ATTEMPT,
        f"SELECT {_ATTEMPT}, 'record number ' || {_named('a.record_no')} FROM batches b "  # noqa: S608
        f"JOIN attempts a ON a.attempt_no {_RANGE} LEFT JOIN records r "
        "ON r.record_no = a.record_no AND r.version_no = b.version_no "
        "WHERE {version} AND r.record_no IS NULL",
        "a record of the batch's version",
    ),
    RowCheck(
        ATTEMPT,
        "SELECT 'judgement of ' || "  # noqa: S608
        f"{_ATTEMPT}, j.outcome FROM batches b JOIN judgements j ON j.attempt_no {_RANGE} "
        "LEFT JOIN attempts a ON a.attempt_no = j.attempt_no LEFT JOIN dispositions p "
        "ON p.attempt_no = j.attempt_no AND p.disposition = 'succeeded' WHERE {version} "
        "AND (a.attempt_no IS NULL OR a.record_no <> j.record_no OR (p.attempt_no IS NULL "
        "AND NOT EXISTS (SELECT 1 FROM late_results l WHERE l.attempt_no = j.attempt_no "
        "AND l.used = 1 AND l.disposition = 'succeeded')))",
        "none: only what succeeded is judged, and as its own record's",
    ),
    RowCheck(
        RECORD,
        "SELECT 'record ' || r.record_id, 'no attempt' FROM records r WHERE {version:r} "
        "AND NOT EXISTS (SELECT 1 FROM attempts a WHERE a.record_no = r.record_no)",
        "an attempt: it was frozen with one",
    ),
    RowCheck(
        RECORD,
        "SELECT 'record ' || r.record_id, 'no manifest of its version' FROM records r "
        "LEFT JOIN manifests m ON m.manifest_no = r.manifest_no AND m.version_no = r.version_no "
        "WHERE {version:r} AND m.manifest_no IS NULL",
        "the manifest that it was frozen in",
    ),
    RowCheck(
        RECORD,
        f"SELECT 'state of record number ' || {_named('s.record_no')}, s.state "  # noqa: S608
        "FROM record_state s LEFT JOIN records r ON r.record_no = s.record_no "
        "WHERE r.record_no IS NULL",
        "the record that it is of",
    ),
    RowCheck(
        RECORD,
        "SELECT 'record ' || r.record_id, 'two attempts under way at once' FROM records r "  # noqa: S608
        "WHERE {version:r} AND r.record_no IN (SELECT a.record_no FROM batches b "
        f"JOIN attempts a ON a.attempt_no {_RANGE} WHERE b.state NOT IN ('completed', "
        "'completed_with_errors', 'retry_required', 'cancelled') "
        "GROUP BY a.record_no HAVING COUNT(*) > 1)",
        "one at a time",
    ),
    RowCheck(
        RECORD,
        "SELECT 'record ' || r.record_id, 'it waits for a retry that nobody decided' "
        "FROM records r JOIN record_state s ON s.record_no = r.record_no "
        "WHERE {version:r} AND s.state = 'retry_wait' AND NOT EXISTS "
        "(SELECT 1 FROM attempts a JOIN retry_decisions t ON t.attempt_no = a.attempt_no "
        "WHERE a.record_no = r.record_no AND t.decision IN ('retry', 'hold'))",
        "a decision to try again",
    ),
    RowCheck(
        RECORD,
        "SELECT 'record ' || r.record_id, 'a dead letter that nobody owns' FROM records r "
        "JOIN record_state s ON s.record_no = r.record_no WHERE {version:r} "
        "AND s.state = 'dead_letter' AND NOT EXISTS (SELECT 1 FROM dead_letters l "
        "WHERE l.record_no = r.record_no AND l.closed_at IS NULL)",
        "an open dead letter",
    ),
    RowCheck(
        RECORD,
        "SELECT 'record ' || r.record_id, 'state published and no archive entry' FROM records r "
        "JOIN record_state s ON s.record_no = r.record_no LEFT JOIN archive_entries e "
        "ON e.document_no = r.document_no AND e.record_no = r.record_no "
        "WHERE {version:r} AND s.state = 'published' AND e.entry_no IS NULL",
        "the entry that was published",
    ),
    RowCheck(
        DELIVERY,
        "SELECT 'record ' || r.record_id, 'state published and no delivery' FROM records r "
        "JOIN record_state s ON s.record_no = r.record_no WHERE {version:r} "
        "AND s.state = 'published' AND NOT EXISTS "
        "(SELECT 1 FROM deliveries y WHERE y.record_no = r.record_no)",
        "the delivery that published it",
    ),
    RowCheck(
        DELIVERY,
        f"SELECT {_ENTRY}, {_named('COUNT(y.entry_no)')} || ' deliveries' "
        f"{_OF_ENTRY} LEFT JOIN deliveries y ON y.record_no = e.record_no "
        "AND y.entry_no = e.entry_no WHERE {version:e} "
        "GROUP BY e.entry_no, e.archive_version, d.document_id HAVING COUNT(y.entry_no) <> 1",
        "exactly one",
    ),
    RowCheck(
        DELIVERY,
        f"SELECT {_DELIVERY}, 'entry number ' || {_named('y.entry_no')} {_OF_DELIVERY}"
        "LEFT JOIN archive_entries e ON e.entry_no = y.entry_no AND e.record_no = y.record_no "
        "WHERE {version:r} AND e.entry_no IS NULL",
        "an archive entry of this record",
    ),
    RowCheck(
        DELIVERY,
        f"SELECT {_DELIVERY}, 'values ' || SUBSTR(y.accepted_digest, 1, 16) {_OF_DELIVERY}"
        "JOIN archive_entries e ON e.entry_no = y.entry_no WHERE {version:r} "
        "AND (e.content_digest <> y.accepted_digest OR e.promotion <> y.promotion)",
        "the values and promotion of its entry",
    ),
    RowCheck(
        DELIVERY,
        f"SELECT {_DELIVERY}, 'request ' || SUBSTR(y.request_digest, 1, 16) {_OF_DELIVERY}"  # noqa: S608
        "WHERE {version:r} AND NOT EXISTS (SELECT 1 FROM attempts a "
        "WHERE a.record_no = y.record_no AND a.request_digest = y.request_digest)",
        "a request that was made of this record",
    ),
    RowCheck(
        ENTRY,
        f"SELECT {_ENTRY}, 'record number ' || {_named('e.record_no')} {_OF_ENTRY}"
        "LEFT JOIN records r ON r.record_no = e.record_no AND r.document_no = e.document_no "
        "AND r.version_no = e.version_no WHERE {version:e} AND r.record_no IS NULL",
        "a record of this document and version",
    ),
    RowCheck(
        ENTRY,
        f"SELECT {_ENTRY}, 'visible, and its record is ' || COALESCE(s.state, 'unknown') "  # noqa: S608
        f"{_OF_ENTRY} LEFT JOIN record_state s ON s.record_no = e.record_no "
        # What was published stays visible while a replay asks again, and whatever comes of it.
        "WHERE {version:e} AND e.valid_to IS NULL "
        "AND (s.state IS NULL OR s.state = 'withdrawn' OR (s.state <> 'published' "
        "AND COALESCE((SELECT m.to_state FROM move_members k "
        "JOIN moves m ON m.move_no = k.move_no WHERE k.record_no = e.record_no "
        "AND m.from_state = 'published' ORDER BY m.move_no DESC LIMIT 1), '') <> 'prepared'))",
        "a published record",
    ),
    RowCheck(
        ENTRY,
        "SELECT 'document ' || d.document_id, 'archive versions ' || "
        f"{_named('MIN(e.archive_version)')} || ' to ' || {_named('MAX(e.archive_version)')} "
        f"|| ', ' || {_named('COUNT(*)')} || ' in all' {_OF_ENTRY}"
        "GROUP BY e.document_no, d.document_id "
        "HAVING MIN(e.archive_version) <> 1 OR MAX(e.archive_version) <> COUNT(*)",
        "versions from 1 on, none left out",
    ),
    RowCheck(
        ENTRY,
        "SELECT 'archive version ' || CAST(n.archive_version AS VARCHAR) || ' of document ' "
        "|| d.document_id, 'valid from ' || n.valid_from || ', before the one before it ended' "
        "FROM (SELECT document_no, version_no, archive_version, valid_from, valid_to, "
        "LAG(valid_from) OVER o AS was_from, LAG(valid_to) OVER o AS was_to FROM archive_entries "
        "WINDOW o AS (PARTITION BY document_no ORDER BY archive_version)) n "
        "JOIN documents d ON d.document_no = n.document_no WHERE n.was_from IS NOT NULL "
        "AND (n.was_to IS NULL OR n.was_to > n.valid_from)",
        "one visible entry at a time",
    ),
    RowCheck(
        ENTRY,
        f"SELECT {_ENTRY}, 'valid to ' || e.valid_to {_OF_ENTRY}"
        "WHERE {version:e} AND e.valid_to < e.valid_from",
        "an end that is not before its beginning",
    ),
    RowCheck(
        ENTRY,
        f"SELECT {_ENTRY}, CASE WHEN e.valid_to IS NULL THEN 'open and not the head' "
        f"ELSE 'ended and still the head' END {_OF_ENTRY}"
        "LEFT JOIN archive_heads h ON h.document_no = e.document_no WHERE {version:e} "
        "AND ((e.valid_to IS NULL AND (h.entry_no IS NULL OR h.entry_no <> e.entry_no)) "
        "OR (e.valid_to IS NOT NULL AND h.entry_no = e.entry_no))",
        "a head at the open entry, and nowhere else",
    ),
    RowCheck(
        ENTRY,
        f"SELECT 'head of document ' || d.document_id, 'entry number ' || {_named('h.entry_no')} "  # noqa: S608
        "FROM archive_heads h JOIN documents d ON d.document_no = h.document_no "
        "LEFT JOIN archive_entries e ON e.entry_no = h.entry_no "
        "AND e.document_no = h.document_no WHERE e.entry_no IS NULL",
        "an entry of this document",
    ),
    RowCheck(
        ENTRY,
        f"SELECT {_ENTRY}, 'change ' || CASE WHEN c.change_no IS NULL AND e.change_no IS NOT NULL "
        f"THEN {_named('e.change_no')} ELSE {_named('e.closed_by')} END {_OF_ENTRY}"
        "LEFT JOIN archive_changes c ON c.change_no = e.change_no "
        "LEFT JOIN archive_changes z ON z.change_no = e.closed_by WHERE {version:e} "
        "AND ((e.change_no IS NOT NULL AND c.change_no IS NULL) "
        "OR (e.closed_by IS NOT NULL AND z.change_no IS NULL))",
        "a change of the archive that is on record",
    ),
    RowCheck(
        ENTRY,
        f"SELECT {_ENTRY}, 'no change of the archive' {_OF_ENTRY}"  # noqa: S608
        "WHERE {version:e} AND e.change_no IS NULL AND e.entry_no > "
        "(SELECT MIN(n.entry_no) FROM archive_entries n WHERE n.change_no IS NOT NULL)",
        "the change that showed it, as every entry since the first that names one",
    ),
    RowCheck(
        ENTRY,
        f"SELECT 'change ' || {_named('c.change_no')} || ' of the archive', "  # noqa: S608
        f"{_named('COALESCE(e.entries, 0)')} || ' entries that it showed and ' || "
        f"{_named('COALESCE(z.entries, 0)')} || ' that it ended' FROM archive_changes c "
        "LEFT JOIN (SELECT change_no, COUNT(*) AS entries FROM archive_entries "
        "GROUP BY change_no) e ON e.change_no = c.change_no "
        "LEFT JOIN (SELECT closed_by, COUNT(*) AS entries FROM archive_entries "
        "GROUP BY closed_by) z ON z.closed_by = c.change_no "
        "WHERE c.shown <> COALESCE(e.entries, 0) OR c.hidden <> COALESCE(z.entries, 0)",
        "as many as the change counted",
    ),
    RowCheck(
        REVIEW,
        f"SELECT {_REVIEW}, {_named('COUNT(x.review_no)')} || ' acts, the last of revision ' || "  # noqa: S608
        f"{_named('COALESCE(MAX(x.revision), 0)')} FROM reviews w "
        "LEFT JOIN review_acts x ON x.review_no = w.review_no WHERE {version:w} "
        "GROUP BY w.review_no, w.revision HAVING COUNT(x.review_no) <> w.revision "
        "OR COALESCE(MAX(x.revision), 0) <> w.revision OR COALESCE(MIN(x.revision), 1) <> 1",
        "an act for each revision up to the review's own",
    ),
    RowCheck(
        REVIEW,
        f"SELECT {_REVIEW}, COALESCE(w.decision, 'undecided') || ' by ' || "  # noqa: S608
        f"COALESCE(w.reviewer, 'nobody') FROM reviews w {_LAST_ACT}WHERE {{version:w}} AND ("
        "(w.decision IN ('accept', 'correct', 'reject') AND (x.act IS NULL OR x.act <> w.decision "
        "OR x.who <> w.reviewer OR x.reason <> w.reason OR x.acted_at <> w.decided_at "
        "OR w.reviewer IS NULL OR w.reason IS NULL OR w.decided_at IS NULL "
        "OR w.reviewer = '' OR w.reason = '')) "
        "OR (w.decision = 'overtaken' AND COALESCE(x.act, '') NOT IN ('overtaken', 'withdrawn')) "
        "OR (w.decision IS NULL AND x.act IN ('accept', 'correct', 'reject', 'overtaken', "
        "'withdrawn')) OR w.decision NOT IN ('accept', 'correct', 'reject', 'overtaken'))",
        "what its last act says, with reviewer, reason and time",
    ),
    RowCheck(
        REVIEW,
        f"SELECT {_REVIEW}, w.decision || ' by ' || COALESCE(w.reviewer, 'nobody') "  # noqa: S608
        "FROM reviews w WHERE {version:w} AND ((w.kind = 'findings' "
        "AND w.decision IN ('accept', 'correct', 'reject')) OR w.decision = 'reject') "
        "AND NOT EXISTS (SELECT 1 FROM move_members k JOIN moves m ON m.move_no = k.move_no "
        "WHERE k.record_no = w.record_no AND m.moved_at = w.decided_at AND m.actor = w.reviewer "
        "AND m.to_state = CASE w.decision WHEN 'reject' THEN 'rejected' ELSE 'accepted' END "
        "AND m.reason = CASE w.decision WHEN 'reject' THEN 'rejected' WHEN 'accept' "
        "THEN 'accepted' ELSE 'corrected' END || ' by a reviewer: ' || w.reason)",
        "a move of its record in the journal, by the same reviewer at the same time, with the "
        "same decision and reason",
    ),
    RowCheck(
        REVIEW,
        "SELECT 'record ' || r.record_id, 'moved to ' || m.to_state || ' by ' || m.actor "
        "FROM moves m JOIN move_members k ON k.move_no = m.move_no "
        "JOIN records r ON r.record_no = k.record_no WHERE {version:r} AND m.machine = 'record' "
        "AND m.cause = 'review' AND NOT EXISTS (SELECT 1 FROM reviews w "
        "JOIN review_acts x ON x.review_no = w.review_no WHERE w.record_no = k.record_no "
        "AND x.acted_at = m.moved_at AND x.who = m.actor)",
        "an act of a review of it, by the same reviewer at the same time",
    ),
    RowCheck(
        REVIEW,
        f"SELECT {_REVIEW}, 'attempt ' || {_named('w.attempt_no')} || ', values ' || "  # noqa: S608
        "SUBSTR(w.values_digest, 1, 16) FROM reviews w LEFT JOIN judgements j "
        "ON j.attempt_no = w.attempt_no AND j.record_no = w.record_no "
        "AND j.values_digest = w.values_digest WHERE {version:w} AND j.attempt_no IS NULL",
        "the judged values of its record",
    ),
    RowCheck(
        REVIEW,
        f"SELECT {_REVIEW}, 'a correction without values' FROM reviews w "  # noqa: S608
        "WHERE {version:w} AND w.decision = 'correct' AND w.corrected_digest IS NULL",
        "the digest of the reviewer's values",
    ),
    RowCheck(
        REVIEW,
        f"SELECT 'approval ' || {_named('p.approval_no')}, p.decision || ' by ' || p.actor "  # noqa: S608
        "FROM approvals p LEFT JOIN source_versions v "
        "ON v.source_version_no = p.source_version_no WHERE v.source_version_no IS NULL "
        "OR p.decision NOT IN ('approved', 'refused') OR p.actor = '' OR p.reason = ''",
        "a decision by somebody, with a reason, about bytes that were seen",
    ),
    RowCheck(
        CLOSING,
        f"SELECT 'closing of report ' || {_named('c.report_no')}, 'digest ' || "  # noqa: S608
        "SUBSTR(c.digest, 1, 16) FROM report_closings c LEFT JOIN reports q "
        "ON q.report_no = c.report_no WHERE q.report_no IS NULL OR q.digest <> c.digest "
        "OR c.closed_by = '' OR c.reason = ''",
        "the digest of a kept report, with who and why",
    ),
    RowCheck(
        CLOSING,
        f"SELECT 'closing of report ' || {_named('c.report_no')}, 'by ' || c.closed_by || ' at ' "  # noqa: S608
        "|| c.closed_at FROM report_closings c WHERE NOT EXISTS (SELECT 1 FROM moves m "
        "WHERE m.machine = 'report' AND m.subject_no = c.report_no AND m.to_state = 'closed' "
        "AND m.actor = c.closed_by AND m.moved_at = c.closed_at "
        "AND m.cause = 'close_report ' || c.digest)",
        "a move in the journal that names its digest, by the same person at the same time",
    ),
)

_SCHEMA = {"subject": pl.String, "found": pl.String}
_COLUMNS = {
    "{version}": "b.version_no",
    "{version:r}": "r.version_no",
    "{version:e}": "e.version_no",
}
_COLUMNS["{version:w}"] = "w.version_no"


def check_rows(look: Look) -> None:
    """Run every statement."""
    for check in ROW_CHECKS:
        sql = check.sql
        for mark, column in _COLUMNS.items():
            sql = sql.replace(mark, look.of_version(column))
        for part in look.stream(sql, _SCHEMA):
            for subject, found in part.sort("subject", "found").iter_rows():
                look.findings.add(
                    check.check,
                    subject or "a row without a name",
                    found or "nothing",
                    check.expected,
                )
        look.findings.looked(check.check)
