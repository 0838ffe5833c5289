"""What each outlet has to hear of the archive, and what came of telling it.

Belongs here: every statement on `outlet_deliveries`. Does not belong here: deciding what an answer
means (`pipeline_assets/outlets/queue.py`) and sending.

Every entry of the archive has one row (`put`) for each outlet; a document that left the archive
has a `remove` with its last entry. Only the newest thing of a document is ever sent: a row that the
archive has moved past before it was delivered is `overtaken`, since telling values that are no
longer true would make the outlet wrong for a while and teach it nothing. So at most one row of a
document is due, which is what keeps its order.

Rows are written under the outlet's lease alone. Entries get their numbers under the archive's
lock, so they become visible in the order of their numbers and the newest queued one is a mark.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl
from sqlalchemy import Connection, text

from resources.ledger.engine import Ledger
from resources.ledger.schema import outlet_deliveries

PROBLEM_LENGTH = 128
OPERATION = "publish"

QUEUEABLE_SCHEMA = {
    "entry_no": pl.Int64,
    "document_no": pl.Int64,
    "record_id": pl.String,
    "request_digest": pl.String,
    "accepted_digest": pl.String,
    "promotion": pl.Int64,
    "wanted": pl.Int64,
}
"""What a row is made from; `wanted` is 0 where nothing needs to be told any more."""

DUE_SCHEMA = {
    "entry_no": pl.Int64,
    "effect": pl.String,
    "idempotency_key": pl.String,
    "tries": pl.Int64,
    "queued_at": pl.String,
    "document_id": pl.String,
    "archive_version": pl.Int64,
    "record_id": pl.String,
    "valid_to": pl.String,
    "change": pl.String,
    "next_try_at": pl.String,
    "status_code": pl.Int64,
    "problem": pl.String,
}
SETTLED_SCHEMA = {
    "entry_no": pl.Int64,
    "effect": pl.String,
    "state": pl.String,
    "tries": pl.Int64,
    "next_try_at": pl.String,
    "ended_at": pl.String,
    "status_code": pl.Int64,
    "problem": pl.String,
}
STORY_SCHEMA = {
    "outlet": pl.String,
    "document_id": pl.String,
    "archive_version": pl.Int64,
    "effect": pl.String,
    "change": pl.String,
    "state": pl.String,
    "current": pl.Int64,
    "tries": pl.Int64,
    "queued_at": pl.String,
    "next_try_at": pl.String,
    "ended_at": pl.String,
    "status_code": pl.Int64,
    "problem": pl.String,
    "idempotency_key": pl.String,
}

# Does a row still say what the archive shows? `o` is the row.
_CURRENT = (
    "((o.effect = 'put' AND EXISTS (SELECT 1 FROM archive_heads h "
    "WHERE h.document_no = o.document_no AND h.entry_no = o.entry_no)) "
    "OR (o.effect = 'remove' AND NOT EXISTS (SELECT 1 FROM archive_heads h "
    "WHERE h.document_no = o.document_no)))"
)
_CHANGE = (
    "LEFT JOIN archive_changes c ON c.change_no = "
    "CASE WHEN o.effect = 'put' THEN e.change_no ELSE e.closed_by END "
)
_KEY_PARTS = "r.record_id, y.request_digest, e.content_digest, e.promotion"
_KEY_TABLES = (
    "JOIN records r ON r.record_no = e.record_no "
    "LEFT JOIN deliveries y ON y.record_no = e.record_no AND y.entry_no = e.entry_no "
)


def newest_queued(connection: Connection, outlet: str) -> int:
    """The newest entry that the outlet has a row for; 0 where it has none."""
    newest = connection.execute(
        text("SELECT MAX(entry_no) FROM outlet_deliveries WHERE outlet = :o AND effect = 'put'"),
        {"o": outlet},
    ).scalar()
    return int(newest or 0)


def has_newer_entry(connection: Connection, entry_no: int) -> bool:
    """Has the archive an entry after this one?"""
    newest = connection.execute(text("SELECT MAX(entry_no) FROM archive_entries")).scalar()
    return int(newest or 0) > entry_no


def entries_after(
    connection: Connection, ledger: Ledger, entry_no: int, limit: int
) -> pl.DataFrame:
    """The next entries (`QUEUEABLE_SCHEMA`), by number; `wanted` are those that are visible."""
    return ledger.dialect.fetch(
        connection,
        f"SELECT e.entry_no, e.document_no, {_KEY_PARTS}, "  # noqa: S608 - our own names
        "CASE WHEN h.entry_no IS NULL THEN 0 ELSE 1 END "
        f"FROM archive_entries e {_KEY_TABLES}"
        "LEFT JOIN archive_heads h ON h.document_no = e.document_no AND h.entry_no = e.entry_no "
        "WHERE e.entry_no > ? ORDER BY e.entry_no LIMIT ?",
        QUEUEABLE_SCHEMA,
        (entry_no, limit),
    ).unique("entry_no", keep="first", maintain_order=True)


def gone_documents(connection: Connection, ledger: Ledger, outlet: str, limit: int) -> pl.DataFrame:
    """Last entries of documents that left the archive, without a `remove` (`QUEUEABLE_SCHEMA`).

    `wanted` are those that the outlet may hold: a `put` was tried since its last `remove` that was
    delivered. A try counts from the moment before it, so a sender that died is on the safe side.
    """
    return ledger.dialect.fetch(
        connection,
        f"SELECT e.entry_no, e.document_no, {_KEY_PARTS}, CASE WHEN EXISTS ("  # noqa: S608
        "SELECT 1 FROM archive_entries m JOIN outlet_deliveries p ON p.entry_no = m.entry_no "
        "AND p.outlet = ? AND p.effect = 'put' AND p.tries > 0 "
        "WHERE m.document_no = e.document_no AND NOT EXISTS ("
        "SELECT 1 FROM archive_entries n JOIN outlet_deliveries q ON q.entry_no = n.entry_no "
        "AND q.outlet = ? AND q.effect = 'remove' AND q.state = 'delivered' "
        "WHERE n.document_no = e.document_no AND n.entry_no >= m.entry_no)) THEN 1 ELSE 0 END "
        "FROM (SELECT x.document_no, MAX(x.archive_version) AS archive_version "
        "FROM archive_entries x WHERE NOT EXISTS "
        "(SELECT 1 FROM archive_heads h WHERE h.document_no = x.document_no) "
        "GROUP BY x.document_no) g JOIN archive_entries e ON e.document_no = g.document_no "
        f"AND e.archive_version = g.archive_version {_KEY_TABLES}"
        "WHERE NOT EXISTS (SELECT 1 FROM outlet_deliveries o WHERE o.entry_no = e.entry_no "
        "AND o.outlet = ? AND o.effect = 'remove') ORDER BY e.entry_no LIMIT ?",
        QUEUEABLE_SCHEMA,
        (outlet, outlet, outlet, limit),
    ).unique("entry_no", keep="first", maintain_order=True)


def add_deliveries(
    connection: Connection,
    ledger: Ledger,
    outlet: str,
    effect: str,
    rows: pl.DataFrame,
    at: str,
) -> None:
    """Queue rows: `QUEUEABLE_SCHEMA` and idempotency_key."""
    wanted = pl.col("wanted") == 1
    ledger.dialect.load(
        connection,
        outlet_deliveries,
        rows.select(
            "entry_no",
            "document_no",
            "idempotency_key",
            outlet=pl.lit(outlet),
            effect=pl.lit(effect),
            state=pl.when(wanted).then(pl.lit("due")).otherwise(pl.lit("overtaken")),
            tries=pl.lit(0, dtype=pl.Int64),
            queued_at=pl.lit(at),
            ended_at=pl.when(wanted).then(None).otherwise(pl.lit(at)),
        ),
    )


def overtake(connection: Connection, outlet: str, at: str) -> int:
    """Settle due rows that the archive has moved past, and say how many."""
    return connection.execute(
        text(
            "UPDATE outlet_deliveries AS o SET state = 'overtaken', ended_at = :at, "  # noqa: S608
            f"next_try_at = NULL WHERE o.outlet = :o AND o.state = 'due' AND NOT {_CURRENT}"
        ),
        {"at": at, "o": outlet},
    ).rowcount


def has_due(connection: Connection, outlet: str, now: str | None) -> bool:
    """Is anything due now; without a time: at all?"""
    time = "" if now is None else "AND (next_try_at IS NULL OR next_try_at <= :now) "
    found = connection.execute(
        text(
            "SELECT 1 FROM outlet_deliveries WHERE outlet = :o AND state = 'due' "  # noqa: S608
            f"{time}LIMIT 1"
        ),
        {"o": outlet} if now is None else {"o": outlet, "now": now},
    )
    return found.first() is not None


def due_after(
    connection: Connection,
    ledger: Ledger,
    outlet: str,
    entry_no: int,
    now: str | None,
    limit: int,
) -> pl.DataFrame:
    """The next due rows that still say what the archive shows (`DUE_SCHEMA`), by entry.

    Args:
        connection: inside a transaction.
        ledger: the ledger.
        outlet: the outlet's name.
        entry_no: only rows of later entries.
        now: leave out what waits for a later time; None takes it along.
        limit: at most so many.
    """
    time = "" if now is None else "AND (o.next_try_at IS NULL OR o.next_try_at <= ?) "
    return ledger.dialect.fetch(
        connection,
        "SELECT o.entry_no, o.effect, o.idempotency_key, o.tries, o.queued_at, "  # noqa: S608
        "d.document_id, e.archive_version, r.record_id, e.valid_to, c.kind, o.next_try_at, "
        "o.status_code, o.problem "
        "FROM outlet_deliveries o JOIN archive_entries e ON e.entry_no = o.entry_no "
        "JOIN documents d ON d.document_no = o.document_no "
        f"JOIN records r ON r.record_no = e.record_no {_CHANGE}"
        f"WHERE o.outlet = ? AND o.state = 'due' AND o.entry_no > ? {time}AND {_CURRENT} "
        "ORDER BY o.entry_no LIMIT ?",
        DUE_SCHEMA,
        (outlet, entry_no, *(() if now is None else (now,)), limit),
    )


def claim(
    connection: Connection, ledger: Ledger, outlet: str, rows: pl.DataFrame, until: str
) -> None:
    """Count a try of each row before it is made; nobody else tries it before `until`."""
    ledger.dialect.stage(connection, "stage_outlet", rows.select("entry_no", "effect"))
    connection.execute(
        text(
            "UPDATE outlet_deliveries SET tries = tries + 1, next_try_at = :until, "
            "problem = NULL, status_code = NULL FROM stage_outlet s "
            "WHERE outlet_deliveries.outlet = :o AND outlet_deliveries.entry_no = s.entry_no "
            "AND outlet_deliveries.effect = s.effect"
        ),
        {"o": outlet, "until": until},
    )


def settle(connection: Connection, ledger: Ledger, outlet: str, rows: pl.DataFrame) -> None:
    """Write what came of claimed rows (`SETTLED_SCHEMA`)."""
    ledger.dialect.stage(connection, "stage_settled", rows.select(list(SETTLED_SCHEMA)))
    connection.execute(
        text(
            "UPDATE outlet_deliveries SET state = s.state, tries = s.tries, "
            "next_try_at = s.next_try_at, ended_at = s.ended_at, status_code = s.status_code, "
            "problem = s.problem FROM stage_settled s "
            "WHERE outlet_deliveries.outlet = :o AND outlet_deliveries.entry_no = s.entry_no "
            "AND outlet_deliveries.effect = s.effect AND outlet_deliveries.state = 'due'"
        ),
        {"o": outlet},
    )


def make_due_again(
    connection: Connection, ledger: Ledger, outlet: str, documents: Sequence[int] | None, at: str
) -> int:
    """Make refused and given-up rows due that still say what the archive shows; how many.

    Args:
        connection: a fenced write transaction.
        ledger: the ledger.
        outlet: the outlet's name.
        documents: only those of these documents; None for all of them.
        at: when they are queued again.
    """
    limited = ""
    if documents is not None:
        chosen = pl.DataFrame({"document_no": documents}, schema={"document_no": pl.Int64})
        ledger.dialect.stage(connection, "stage_chosen", chosen)
        limited = "AND o.document_no IN (SELECT document_no FROM stage_chosen) "
    return connection.execute(
        text(
            "UPDATE outlet_deliveries AS o SET state = 'due', queued_at = :at, "  # noqa: S608
            "next_try_at = NULL, ended_at = NULL WHERE o.outlet = :o "
            f"AND o.state IN ('refused', 'given_up') {limited}AND {_CURRENT}"
        ),
        {"at": at, "o": outlet},
    ).rowcount


def counts(connection: Connection, ledger: Ledger) -> pl.DataFrame:
    """Rows of each outlet and state: outlet, state, rows, failing, oldest_at, next_try_at.

    `failing` were tried and are still due; `oldest_at` is when the oldest of them was queued.
    """
    return ledger.dialect.fetch(
        connection,
        "SELECT outlet, state, COUNT(*), SUM(CASE WHEN problem IS NULL THEN 0 ELSE 1 END), "
        "MIN(queued_at), MIN(next_try_at) FROM outlet_deliveries GROUP BY outlet, state "
        "ORDER BY outlet, state",
        {
            "outlet": pl.String,
            "state": pl.String,
            "rows": pl.Int64,
            "failing": pl.Int64,
            "oldest_at": pl.String,
            "next_try_at": pl.String,
        },
    )


def unwelcome(connection: Connection, ledger: Ledger, outlet: str, limit: int) -> pl.DataFrame:
    """Refused and given-up rows that still say what the archive shows (`STORY_SCHEMA`)."""
    return _stories(
        connection,
        ledger,
        f"o.outlet = ? AND o.state IN ('refused', 'given_up') AND {_CURRENT} "
        "ORDER BY o.entry_no LIMIT ?",
        (outlet, limit),
    )


def unwelcome_count(connection: Connection, outlet: str) -> int:
    """How many those are."""
    found = connection.execute(
        text(
            "SELECT COUNT(*) FROM outlet_deliveries o WHERE o.outlet = :o "  # noqa: S608
            f"AND o.state IN ('refused', 'given_up') AND {_CURRENT}"
        ),
        {"o": outlet},
    )
    return int(found.scalar_one())


def deliveries_of_document(
    connection: Connection, ledger: Ledger, document_no: int
) -> pl.DataFrame:
    """Everything that any outlet had to hear of a document (`STORY_SCHEMA`), oldest first."""
    return _stories(
        connection,
        ledger,
        "o.entry_no IN (SELECT x.entry_no FROM archive_entries x WHERE x.document_no = ?) "
        "ORDER BY o.outlet, o.entry_no, o.effect",
        (document_no,),
    )


def _stories(
    connection: Connection, ledger: Ledger, where: str, parameters: Sequence[object]
) -> pl.DataFrame:
    return ledger.dialect.fetch(
        connection,
        "SELECT o.outlet, d.document_id, e.archive_version, o.effect, c.kind, o.state, "  # noqa: S608
        f"CASE WHEN {_CURRENT} THEN 1 ELSE 0 END, o.tries, o.queued_at, o.next_try_at, "
        "o.ended_at, o.status_code, o.problem, o.idempotency_key "
        "FROM outlet_deliveries o JOIN archive_entries e ON e.entry_no = o.entry_no "
        f"JOIN documents d ON d.document_no = o.document_no {_CHANGE}WHERE {where}",
        STORY_SCHEMA,
        parameters,
    )
