"""The review queue as it is read: what waits, in order, and everything known of one review.

Belongs here: the queries. Does not belong here: opening, deciding and assigning (`reviews.py`).

A review waits while nobody decided it, its record is still in the state that its kind asks about,
and no newer answer of the record was judged: a record that an operator had asked again leaves the
queue at once, though its review is closed only when the new answer is judged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl
from sqlalchemy import Connection

from resources.ledger.engine import Ledger

REVIEW_SCHEMA = {
    "review_no": pl.Int64,
    "revision": pl.Int64,
    "kind": pl.String,
    "sample_no": pl.Int64,
    "slice": pl.String,
    "priority": pl.Int64,
    "opened_at": pl.String,
    "assigned_to": pl.String,
    "taken_at": pl.String,
    "taken_by": pl.String,
    "decision": pl.String,
    "decided_at": pl.String,
    "reviewer": pl.String,
    "reason": pl.String,
    "values_digest": pl.String,
    "corrected_digest": pl.String,
    "record_no": pl.Int64,
    "record_id": pl.String,
    "document_no": pl.Int64,
    "document_id": pl.String,
    "checksum": pl.String,
    "attempt_no": pl.Int64,
    "batch_no": pl.Int64,
    "version_no": pl.Int64,
    "version_key": pl.String,
    "state": pl.String,
    "waits": pl.Int64,
}
"""One review with what it is about; `waits` is 1 while it is in the queue."""
MEMBER_SCHEMA = {"review_no": pl.Int64, "revision": pl.Int64}
CAUSE_SCHEMA = {
    "review_no": pl.Int64,
    "rule": pl.String,
    "severity": pl.String,
    "field": pl.String,
    "note": pl.String,
}
ACT_SCHEMA = {
    "review_no": pl.Int64,
    "revision": pl.Int64,
    "act": pl.String,
    "who": pl.String,
    "reason": pl.String,
    "acted_at": pl.String,
}
_NUMBERS_A_QUERY = 500
"""Both databases take far more parameters; a longer list only makes the statement slow."""

NEWEST_JUDGED = (
    "NOT EXISTS (SELECT 1 FROM attempts n JOIN judgements k ON k.attempt_no = n.attempt_no "
    "WHERE n.record_no = v.record_no AND n.attempt_no > v.attempt_no)"
)
"""Of a review `v`: no newer attempt at its record was judged."""
FITTING_STATE = (
    "((v.kind = 'findings' AND t.state = 'awaiting_review') "
    "OR (v.kind = 'quality_sample' AND t.state IN ('accepted', 'published')))"
)
"""Of a review `v` and its record's state `t`: the state is the one that the kind asks about."""
_WAITS = f"v.decision IS NULL AND {FITTING_STATE} AND {NEWEST_JUDGED}"
_COLUMNS = (
    "SELECT v.review_no, v.revision, v.kind, v.sample_no, v.slice, v.priority, v.opened_at, "
    "v.assigned_to, v.taken_at, v.taken_by, v.decision, v.decided_at, v.reviewer, v.reason, "
    "v.values_digest, v.corrected_digest, v.record_no, r.record_id, r.document_no, "
    "d.document_id, r.checksum, v.attempt_no, a.batch_no, v.version_no, p.key, t.state, "
)
_TABLES = (
    "FROM reviews v JOIN record_state t ON t.record_no = v.record_no "
    "JOIN records r ON r.record_no = v.record_no "
    "JOIN documents d ON d.document_no = r.document_no "
    "JOIN attempts a ON a.attempt_no = v.attempt_no "
    "JOIN processing_versions p ON p.version_no = v.version_no "
)
_REST = "JOIN reviews v ON v.review_no = w.review_no " + _TABLES.removeprefix("FROM reviews v ")
_NARROW = "FROM reviews v JOIN record_state t ON t.record_no = v.record_no "
_ORDER = "ORDER BY v.priority DESC, v.opened_at, v.review_no"


@dataclass(frozen=True)
class Wanted:
    """Which waiting reviews are meant; every condition that is given narrows it.

    Attributes:
        version_no: of a processing version.
        rule: with a finding of this rule that is more than a note.
        field: with such a finding at this field.
        slice: of documents of this slice.
        kind: `findings` or `quality_sample`.
        assigned_to: of this reviewer.
        unassigned: of nobody.
    """

    version_no: int | None = None
    rule: str | None = None
    field: str | None = None
    slice: str | None = None
    kind: str | None = None
    assigned_to: str | None = None
    unassigned: bool = False


@dataclass(frozen=True)
class Place:
    """A place in the queue's order: what comes next comes after it."""

    priority: int
    opened_at: str
    review_no: int


def waiting(connection: Connection, ledger: Ledger, wanted: Wanted, limit: int) -> pl.DataFrame:
    """The first reviews that wait (`REVIEW_SCHEMA`): high priority first, then the oldest."""
    conditions, given = _conditions(wanted)
    return _first(connection, ledger, conditions, (*given, limit))


def count_waiting(connection: Connection, ledger: Ledger, wanted: Wanted) -> int:
    """How many reviews wait."""
    conditions, given = _conditions(wanted)
    found = ledger.dialect.fetch(
        connection,
        f"SELECT COUNT(*) {_NARROW} WHERE {_WAITS}{conditions}",
        {"count": pl.Int64},
        given,
    )
    return int(found["count"][0])


def waiting_members(connection: Connection, ledger: Ledger, wanted: Wanted) -> pl.DataFrame:
    """Number and revision (`MEMBER_SCHEMA`) of every review that waits, by number."""
    conditions, given = _conditions(wanted)
    return ledger.dialect.fetch(
        connection,
        f"SELECT v.review_no, v.revision {_NARROW} WHERE {_WAITS}{conditions} ORDER BY v.review_no",
        MEMBER_SCHEMA,
        given,
    )


def rules_of_waiting(connection: Connection, ledger: Ledger, wanted: Wanted) -> pl.DataFrame:
    """How many of the waiting reviews each rule has more than a note at: rule, reviews."""
    conditions, given = _conditions(wanted)
    return ledger.dialect.fetch(
        connection,
        "SELECT f.rule, COUNT(DISTINCT w.review_no) FROM "  # noqa: S608
        f"(SELECT v.review_no, v.record_no, v.attempt_no {_NARROW} WHERE {_WAITS}{conditions}) w "
        "JOIN findings f ON f.record_no = w.record_no AND f.attempt_no = w.attempt_no "
        "WHERE f.severity <> 'note' GROUP BY f.rule ORDER BY 2 DESC, f.rule",
        {"rule": pl.String, "reviews": pl.Int64},
        given,
    )


def next_waiting(
    connection: Connection,
    ledger: Ledger,
    wanted: Wanted,
    who: str,
    free_since: str,
    after: Place | None,
) -> pl.DataFrame:
    """The next review for a reviewer (`REVIEW_SCHEMA`), or no row.

    Args:
        connection: a transaction.
        ledger: the ledger.
        wanted: of these.
        who: the reviewer; what belongs to another, or is on another's screen, is left out.
        free_since: what another took before this time is free again.
        after: where the queue was left.
    """
    conditions, given = _conditions(wanted)
    conditions += " AND (v.taken_by IS NULL OR v.taken_by = ? OR v.taken_at <= ?)"
    given += (who, free_since)
    if wanted.assigned_to is None:
        conditions += " AND (v.assigned_to IS NULL OR v.assigned_to = ?)"
        given += (who,)
    if after is not None:
        conditions += (
            " AND (v.priority < ? OR (v.priority = ? AND (v.opened_at > ? "
            "OR (v.opened_at = ? AND v.review_no > ?))))"
        )
        given += (after.priority, after.priority, after.opened_at, after.opened_at, after.review_no)
    return _first(connection, ledger, conditions, (*given, 1))


def find_review(connection: Connection, ledger: Ledger, review_no: int) -> pl.DataFrame:
    """One review (`REVIEW_SCHEMA`), waiting or not; no row where there is none."""
    return _with_waits(connection, ledger, "v.review_no = ?", (review_no,))


def revisions_of(connection: Connection, ledger: Ledger, numbers: Sequence[int]) -> pl.DataFrame:
    """Number and present revision (`MEMBER_SCHEMA`) of reviews; none for an unknown number."""
    parts = [pl.DataFrame(schema=MEMBER_SCHEMA)]
    for start in range(0, len(numbers), _NUMBERS_A_QUERY):
        part = tuple(numbers[start : start + _NUMBERS_A_QUERY])
        marks = ",".join("?" * len(part))
        parts.append(
            ledger.dialect.fetch(
                connection,
                f"SELECT review_no, revision FROM reviews WHERE review_no IN ({marks})",  # noqa: S608
                MEMBER_SCHEMA,
                part,
            )
        )
    return pl.concat(parts)


def reviews_of_document(
    connection: Connection, ledger: Ledger, document_no: int, version_no: int | None
) -> pl.DataFrame:
    """Every review of a document (`REVIEW_SCHEMA`): what waits first, then the newest."""
    condition, given = "r.document_no = ?", (document_no,)
    if version_no is not None:
        condition, given = f"{condition} AND v.version_no = ?", (document_no, version_no)
    found = _with_waits(connection, ledger, condition, given)
    return found.sort("waits", "review_no", descending=True)


def causes_of(connection: Connection, ledger: Ledger, numbers: Sequence[int]) -> pl.DataFrame:
    """The findings of reviews' attempts (`CAUSE_SCHEMA`), in the order they were found."""
    parts = [pl.DataFrame(schema=CAUSE_SCHEMA)]
    for start in range(0, len(numbers), _NUMBERS_A_QUERY):
        part = tuple(numbers[start : start + _NUMBERS_A_QUERY])
        marks = ",".join("?" * len(part))
        parts.append(
            ledger.dialect.fetch(
                connection,
                "SELECT v.review_no, f.rule, f.severity, f.field, f.note FROM reviews v "  # noqa: S608
                "JOIN findings f ON f.record_no = v.record_no AND f.attempt_no = v.attempt_no "
                f"WHERE v.review_no IN ({marks}) ORDER BY v.review_no, f.finding_no",
                CAUSE_SCHEMA,
                part,
            )
        )
    return pl.concat(parts)


def acts_of(connection: Connection, ledger: Ledger, review_no: int) -> pl.DataFrame:
    """Every act on a review (`ACT_SCHEMA`), in order."""
    return ledger.dialect.fetch(
        connection,
        "SELECT review_no, revision, act, who, reason, acted_at FROM review_acts "
        "WHERE review_no = ? ORDER BY revision",
        ACT_SCHEMA,
        (review_no,),
    )


def _first(
    connection: Connection, ledger: Ledger, conditions: str, given: tuple[object, ...]
) -> pl.DataFrame:
    """The first reviews; the last parameter is how many.

    They are chosen before anything is joined that only describes them: of a hundred thousand that
    wait, only those that are shown are looked up.
    """
    return ledger.dialect.fetch(
        connection,
        f"{_COLUMNS} 1 FROM (SELECT v.review_no {_NARROW} WHERE {_WAITS}{conditions} {_ORDER} "
        f"LIMIT ?) w {_REST} {_ORDER}",
        REVIEW_SCHEMA,
        given,
    )


def _with_waits(
    connection: Connection, ledger: Ledger, condition: str, given: tuple[object, ...]
) -> pl.DataFrame:
    return ledger.dialect.fetch(
        connection,
        f"{_COLUMNS} CASE WHEN {_WAITS} THEN 1 ELSE 0 END {_TABLES} "
        f"WHERE {condition} ORDER BY v.review_no",
        REVIEW_SCHEMA,
        given,
    )


def _conditions(wanted: Wanted) -> tuple[str, tuple[object, ...]]:
    """SQL to append to a WHERE, each condition with its AND, and the parameters."""
    given: list[object] = []
    sql = ""
    for column, value in (
        ("version_no", wanted.version_no),
        ("slice", wanted.slice),
        ("kind", wanted.kind),
        ("assigned_to", wanted.assigned_to),
    ):
        if value is not None:
            sql += f" AND v.{column} = ?"
            given.append(value)
    if wanted.unassigned:
        sql += " AND v.assigned_to IS NULL"
    found = ""
    for column, value in (("rule", wanted.rule), ("field", wanted.field)):
        if value is not None:
            found += f" AND f.{column} = ?"
            given.append(value)
    if found:
        sql += (
            " AND EXISTS (SELECT 1 FROM findings f WHERE f.record_no = v.record_no "  # noqa: S608
            f"AND f.attempt_no = v.attempt_no AND f.severity <> 'note'{found})"
        )
    return sql, tuple(given)
