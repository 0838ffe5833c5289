"""Documents that their source no longer holds, and those that came back: what a run has to know.

Belongs here: finding them with their records, and what a withdrawal does to reviews, dead letters
and retries, each set by set. Does not belong here: the policies and the transaction
(`pipeline_assets/publish/withdraw.py`), the archive's rows (`archive.py`) and moving records
(`moves.py`).

A document is removed when no snapshot interval of it is open. One that is excluded now (it became
encrypted, say) is still held.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import polars as pl
from sqlalchemy import Connection, text

from resources.ledger.dead_letters import (
    DEAD_LETTER_SCHEMA,
    close_dead_letters,
    open_dead_letters,
)
from resources.ledger.engine import Ledger
from resources.ledger.frames import PolarsType
from resources.ledger.moves import Cause
from resources.ledger.retries import set_not_before
from resources.ledger.transitions import RECORD

WITHDRAWN = "withdrawn"
REMOVED = "its document was removed from its source"
"""The reason of a withdrawal's moves and change. By the change's reason an entry that left with its
document is told from one that a reviewer or a rollback took away."""
WITHDRAWABLE = (
    "published",
    "accepted",
    "awaiting_review",
    "rejected",
    "retry_wait",
    "dead_letter",
    "queued",
)
"""States from which a record of a removed document is withdrawn."""
UNDER_WAY = ("prepared", "submitted", "collected")
"""States of records whose attempt has to end first: its answer is paid for and accounted."""
RETURNS: dict[str, str] = {
    state: "accepted" if state == "published" else state
    for state in WITHDRAWABLE
    if state == "published" or state in RECORD[WITHDRAWN]
}
"""The state before the withdrawal → the one that a record takes up when its document is back."""

MEMBER_SCHEMA: dict[str, PolarsType] = {
    "record_no": pl.Int64,
    "document_no": pl.Int64,
    "version_no": pl.Int64,
    "batch_no": pl.Int64,
    "attempt_no": pl.Int64,
    "state": pl.String,
}
"""A record to move: `state` is the present one, or for records that come back the one before the
withdrawal; batch and attempt are its newest, null where it never had any."""
_PUBLISHED_SCHEMA: dict[str, PolarsType] = {
    "document_no": pl.Int64,
    "record_no": pl.Int64,
    "version_no": pl.Int64,
    "entry_no": pl.Int64,
    "archive_version": pl.Int64,
    "ended_by": pl.String,
    "removed": pl.Int64,
    "shown_version_no": pl.Int64,
    "shown_current": pl.Int64,
}
_DOCUMENT: dict[str, PolarsType] = {"document_no": pl.Int64}
_ENTRY: dict[str, PolarsType] = {"document_no": pl.Int64, "entry_no": pl.Int64}

_GONE = (
    "NOT EXISTS (SELECT 1 FROM source_entries e WHERE e.document_no = d.document_no "
    "AND e.to_snapshot IS NULL)"
)
"""Of a document `d`: its source does not hold it."""
_BACK = (
    "JOIN source_entries e ON e.document_no = r.document_no "
    "AND e.source_version_no = r.source_version_no AND e.to_snapshot IS NULL "
)
"""Of a record `r`: its source holds the very bytes."""
_LEFT = f"(c.kind = 'removal' AND c.reason = '{REMOVED}')"
"""Of the change `c` that ended an entry: its document was removed from its source."""
_KEPT = "NOT EXISTS (SELECT 1 FROM erasures x WHERE x.document_no = r.document_no)"
# Grouped, and not asked record by record: PostgreSQL joins on no subquery by an index, and looked
# through the whole table for each of 5,000 records (74 s).
_OF_DOCUMENTS = "FROM stage_withdrawn u JOIN records q ON q.document_no = u.document_no "
_NEWEST_ATTEMPT = (
    "LEFT JOIN (SELECT q.record_no, MAX(n.attempt_no) AS attempt_no "
    f"{_OF_DOCUMENTS}JOIN attempts n ON n.record_no = q.record_no GROUP BY q.record_no) g "
    "ON g.record_no = r.record_no LEFT JOIN attempts a ON a.attempt_no = g.attempt_no "
)
_WITHDRAWAL = (
    "JOIN (SELECT q.record_no, MAX(k.move_no) AS move_no "
    f"{_OF_DOCUMENTS}JOIN move_members k ON k.record_no = q.record_no "
    "JOIN moves w ON w.move_no = k.move_no AND w.to_state = 'withdrawn' GROUP BY q.record_no) l "
    "ON l.record_no = r.record_no JOIN moves m ON m.move_no = l.move_no "
)
_NEWEST_ENTRY = (
    "JOIN archive_entries z ON z.document_no = r.document_no AND z.record_no = r.record_no "
    "AND NOT EXISTS (SELECT 1 FROM archive_entries n WHERE n.document_no = z.document_no "
    "AND n.record_no = z.record_no AND n.entry_no > z.entry_no) "
)


def source_numbers(
    connection: Connection, ledger: Ledger, names: Sequence[str], workload: str
) -> list[int]:
    """Numbers of the sources with these names that were scanned for a workload."""
    if not names:
        return []
    return ledger.dialect.fetch(
        connection,
        "SELECT source_no FROM sources WHERE workload = ? "  # noqa: S608 - marks only
        f"AND name IN ({', '.join('?' for _ in names)})",
        {"source_no": pl.Int64},
        (workload, *names),
    )["source_no"].to_list()


def removed_documents(
    connection: Connection, ledger: Ledger, sources: Collection[int]
) -> tuple[pl.Series, int]:
    """Removed documents of sources that are still shown, or have a record to withdraw.

    Returns:
        document_no, sorted; and how many records have an attempt under way that has to end first.
    """
    if not sources:
        return pl.Series("document_no", [], dtype=pl.Int64), 0
    held = f"d.source_no IN ({_numbers(sources)}) AND {_GONE}"
    found = ledger.dialect.fetch(
        connection,
        "SELECT r.document_no FROM records r "  # noqa: S608 - our own states and numbers
        "JOIN record_state s ON s.record_no = r.record_no "
        "JOIN documents d ON d.document_no = r.document_no "
        f"WHERE s.state IN ({_quoted(WITHDRAWABLE)}) AND {held} "
        "UNION SELECT h.document_no FROM archive_heads h "
        f"JOIN documents d ON d.document_no = h.document_no WHERE {held}",
        _DOCUMENT,
    )["document_no"].sort()
    later = connection.execute(
        text(
            "SELECT COUNT(*) FROM records r "  # noqa: S608 - our own states and numbers
            "JOIN record_state s ON s.record_no = r.record_no "
            "JOIN documents d ON d.document_no = r.document_no "
            f"WHERE s.state IN ({_quoted(UNDER_WAY)}) AND {held}"
        )
    ).scalar_one()
    return found, int(later)


def records_to_withdraw(
    connection: Connection, ledger: Ledger, documents: pl.Series
) -> pl.DataFrame:
    """Records (`MEMBER_SCHEMA`) of those of the documents that are still removed."""
    _stage_documents(connection, ledger, documents)
    return ledger.dialect.fetch(
        connection,
        "SELECT r.record_no, r.document_no, r.version_no, a.batch_no, a.attempt_no, s.state "  # noqa: S608
        "FROM stage_withdrawn t JOIN documents d ON d.document_no = t.document_no "
        "JOIN records r ON r.document_no = t.document_no "
        "JOIN record_state s ON s.record_no = r.record_no "
        f"{_NEWEST_ATTEMPT}WHERE s.state IN ({_quoted(WITHDRAWABLE)}) AND {_GONE}",
        MEMBER_SCHEMA,
    ).sort("record_no")


def entries_to_end(connection: Connection, ledger: Ledger, documents: pl.Series) -> pl.DataFrame:
    """What those of the documents show that are still removed: document_no, entry_no.

    Whatever the record's state and version: an attempt that is under way again at a published
    record does not keep a removed document visible.
    """
    _stage_documents(connection, ledger, documents)
    return ledger.dialect.fetch(
        connection,
        "SELECT h.document_no, h.entry_no FROM stage_withdrawn t "  # noqa: S608 - our own condition
        "JOIN documents d ON d.document_no = t.document_no "
        f"JOIN archive_heads h ON h.document_no = t.document_no WHERE {_GONE}",
        _ENTRY,
    ).sort("document_no")


def returned_documents(connection: Connection, ledger: Ledger, workload: str) -> pl.Series:
    """Documents (document_no, sorted) with a withdrawn record of bytes that are there again.

    An erased document never comes back.
    """
    ever = "SELECT 1 FROM moves WHERE machine = 'record' AND to_state = 'withdrawn' LIMIT 1"
    if connection.execute(text(ever)).first() is None:
        return pl.Series("document_no", [], dtype=pl.Int64)
    return ledger.dialect.fetch(
        connection,
        "SELECT DISTINCT r.document_no FROM record_state s "  # noqa: S608 - our own conditions
        "JOIN records r ON r.record_no = s.record_no "
        "JOIN processing_versions v ON v.version_no = r.version_no AND v.workload = ? "
        f"{_BACK}WHERE s.state = 'withdrawn' AND {_KEPT}",
        _DOCUMENT,
        (workload,),
    )["document_no"].sort()


def records_to_return(connection: Connection, ledger: Ledger, documents: pl.Series) -> pl.DataFrame:
    """Withdrawn records (`MEMBER_SCHEMA`) of documents, of those bytes that are there again.

    `state` is the one before the withdrawal, as the journal has it.
    """
    _stage_documents(connection, ledger, documents)
    return ledger.dialect.fetch(
        connection,
        "SELECT r.record_no, r.document_no, r.version_no, a.batch_no, a.attempt_no, m.from_state "  # noqa: S608
        "FROM stage_withdrawn t JOIN records r ON r.document_no = t.document_no "
        "JOIN record_state s ON s.record_no = r.record_no AND s.state = 'withdrawn' "
        f"{_BACK}{_WITHDRAWAL}{_NEWEST_ATTEMPT}"
        f"WHERE {_KEPT} AND m.from_state IN ({_quoted(RETURNS)})",
        MEMBER_SCHEMA,
    ).sort("record_no")


def published_before(connection: Connection, ledger: Ledger, records: pl.Series) -> pl.DataFrame:
    """What the archive knows of records that were published when they were withdrawn.

    Returns:
        document_no, record_no, version_no; entry_no and archive_version of the record's newest
        entry; ended_by: the kind of change that ended it, null where it is visible or that is not
        known; removed: 1 where it ended with its document's removal; shown_version_no: whose entry
        the document shows, null where none; shown_current: that entry is of the present bytes.
    """
    ledger.dialect.stage(
        connection, "stage_published", pl.DataFrame({"record_no": records.cast(pl.Int64)})
    )
    return ledger.dialect.fetch(
        connection,
        "SELECT r.document_no, r.record_no, r.version_no, z.entry_no, z.archive_version, c.kind, "  # noqa: S608
        f"CASE WHEN {_LEFT} THEN 1 ELSE 0 END, q.version_no, "
        "CASE WHEN o.entry_no IS NULL THEN 0 ELSE 1 END FROM stage_published t "
        f"JOIN records r ON r.record_no = t.record_no {_NEWEST_ENTRY}"
        "LEFT JOIN archive_changes c ON c.change_no = z.closed_by "
        "LEFT JOIN archive_heads h ON h.document_no = r.document_no "
        "LEFT JOIN archive_entries g ON g.entry_no = h.entry_no "
        "LEFT JOIN records q ON q.record_no = g.record_no "
        "LEFT JOIN source_entries o ON o.document_no = q.document_no "
        "AND o.source_version_no = q.source_version_no AND o.to_snapshot IS NULL",
        _PUBLISHED_SCHEMA,
    ).sort("record_no")


def left_with_their_document(
    connection: Connection, ledger: Ledger, delivered: pl.DataFrame
) -> pl.Series:
    """Of delivered records, the entries of those that a removal of their document ended last.

    They are accepted again, so that the document is back; without this their used delivery key
    would keep them out for good. Records that are visible are left out.

    Args:
        connection: the write transaction.
        ledger: the ledger.
        delivered: record_no and entry_no of their first delivery.
    """
    if delivered.is_empty():
        return pl.Series("entry_no", [], dtype=pl.Int64)
    ledger.dialect.stage(connection, "stage_delivered", delivered.select("record_no", "entry_no"))
    return ledger.dialect.fetch(
        connection,
        "SELECT s.entry_no FROM stage_delivered s "  # noqa: S608 - our own condition
        f"JOIN records r ON r.record_no = s.record_no {_NEWEST_ENTRY}"
        f"JOIN archive_changes c ON c.change_no = z.closed_by AND {_LEFT}",
        {"entry_no": pl.Int64},
    )["entry_no"]


def settle_withdrawn(
    connection: Connection, ledger: Ledger, records: pl.Series, cause: Cause
) -> None:
    """Close what waits for people about records that are withdrawn: reviews and dead letters.

    A review is closed as overtaken, with the act `withdrawn`, so that it can be told from one
    whose record was answered again.
    """
    close_dead_letters(
        connection,
        ledger,
        records,
        closing=WITHDRAWN,
        reason=cause.reason,
        by=cause.actor,
        at=cause.at,
    )
    _stage_records(connection, ledger, records)
    which = "decision IS NULL AND record_no IN (SELECT record_no FROM stage_settled)"
    _act(connection, WITHDRAWN, which, cause)
    connection.execute(
        text(
            "UPDATE reviews SET decision = 'overtaken', decided_at = :at, "  # noqa: S608
            f"revision = revision + 1 WHERE {which}"
        ),
        {"at": cause.at},
    )


def settle_returned(
    connection: Connection, ledger: Ledger, members: pl.DataFrame, cause: Cause
) -> None:
    """Open again what waited for people about records that came back, and set when retries are due.

    Args:
        connection: the write transaction, in which the records were moved already.
        ledger: the ledger.
        members: `MEMBER_SCHEMA`, with the states that they were withdrawn from.
        cause: why they came back.
    """
    _stage_records(connection, ledger, members["record_no"])
    which = (
        "decision = 'overtaken' AND record_no IN (SELECT record_no FROM stage_settled) "
        "AND EXISTS (SELECT 1 FROM review_acts x WHERE x.review_no = reviews.review_no "
        "AND x.revision = reviews.revision AND x.act = 'withdrawn')"
    )
    # The acts are added second: they would be the newest ones otherwise, and nothing fit.
    chosen = ledger.dialect.fetch(
        connection,
        f"SELECT review_no FROM reviews WHERE {which}",  # noqa: S608 - our own condition
        {"review_no": pl.Int64},
    )
    ledger.dialect.stage(connection, "stage_reopened", chosen)
    reopened = "review_no IN (SELECT review_no FROM stage_reopened)"
    _act(connection, "reopened", reopened, cause)
    connection.execute(
        text(
            "UPDATE reviews SET decision = NULL, decided_at = NULL, "  # noqa: S608
            f"revision = revision + 1 WHERE {reopened}"
        )
    )
    _reopen_dead_letters(
        connection, ledger, members.filter(pl.col("state") == "dead_letter")["record_no"]
    )
    _wait_again(connection, ledger, members.filter(pl.col("state") == "retry_wait"), cause.at)


def _reopen_dead_letters(connection: Connection, ledger: Ledger, records: pl.Series) -> None:
    """The newest episode of each goes on, with its owner and its age."""
    if records.is_empty():
        return
    _stage_records(connection, ledger, records)
    episodes = ledger.dialect.fetch(
        connection,
        "SELECT l.attempt_no, l.record_no, l.version_no, l.failure_class, l.reason, l.owner, "
        "l.opened_at FROM stage_settled t JOIN dead_letters l ON l.record_no = t.record_no "
        "AND l.closing = 'withdrawn' AND NOT EXISTS (SELECT 1 FROM dead_letters n "
        "WHERE n.record_no = l.record_no AND n.attempt_no > l.attempt_no)",
        DEAD_LETTER_SCHEMA,
    )
    open_dead_letters(connection, ledger, episodes)


def _wait_again(connection: Connection, ledger: Ledger, members: pl.DataFrame, at: str) -> None:
    """Due when they were due before, and not earlier than now."""
    if members.is_empty():
        return
    ledger.dialect.stage(connection, "stage_decided", members.select("attempt_no"))
    decided = ledger.dialect.fetch(
        connection,
        "SELECT k.record_no, k.not_before FROM stage_decided t "
        "JOIN retry_decisions k ON k.attempt_no = t.attempt_no",
        {"record_no": pl.Int64, "not_before": pl.String},
    )
    due = (
        members.select("record_no")
        .join(decided, on="record_no", how="left", maintain_order="left")
        .with_columns(until=pl.max_horizontal("not_before", pl.lit(at)))
    )
    for (until,), part in due.group_by("until", maintain_order=True):
        set_not_before(connection, ledger, part["record_no"], str(until))


def _act(connection: Connection, act: str, which: str, cause: Cause) -> None:
    """Write an act on reviews, as their next revision."""
    connection.execute(
        text(
            "INSERT INTO review_acts (review_no, revision, act, who, reason, acted_at) "  # noqa: S608
            "SELECT review_no, revision + 1, CAST(:act AS TEXT), CAST(:who AS TEXT), "
            f"CAST(:why AS TEXT), CAST(:at AS TEXT) FROM reviews WHERE {which}"
        ),
        {"act": act, "who": cause.actor, "why": cause.reason, "at": cause.at},
    )


def _stage_documents(connection: Connection, ledger: Ledger, documents: pl.Series) -> None:
    ledger.dialect.stage(
        connection, "stage_withdrawn", pl.DataFrame({"document_no": documents.cast(pl.Int64)})
    )


def _stage_records(connection: Connection, ledger: Ledger, records: pl.Series) -> None:
    ledger.dialect.stage(
        connection, "stage_settled", pl.DataFrame({"record_no": records.cast(pl.Int64)})
    )


def _quoted(states: Collection[str]) -> str:
    return ", ".join(f"'{state}'" for state in states)


def _numbers(values: Collection[int]) -> str:
    return ", ".join(str(int(value)) for value in values)
