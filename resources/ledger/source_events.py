"""Events of queues: received at least once, looked at until their document was seen.

Belongs here: storing events, those that wait, closing them with a snapshot, and the list of those
that were given up. Does not belong here: receiving (`resources/sources/event_queue`), what an
event says, and what a look at a document found.

States: `waiting` (its document is still to be looked at), `done`, `dead` (given up, with an owner
and a problem; it can be waiting again, or discarded), `discarded`.
"""

from __future__ import annotations

import polars as pl
from sqlalchemy import Connection, bindparam, text, update

from resources.ledger.allocate import next_number
from resources.ledger.engine import Ledger
from resources.ledger.frames import PolarsType
from resources.ledger.schema import source_events

RECEIVED_SCHEMA: dict[str, PolarsType] = {
    "event_key": pl.String,
    "document_id": pl.String,
    "problem": pl.String,
}
"""An event as received, once or more often. `problem` says why it can never be acted on; without
problem and document there is nothing to do."""
WAITING_SCHEMA: dict[str, PolarsType] = {"event_no": pl.Int64, "document_id": pl.String}
LOOKED_SCHEMA: dict[str, PolarsType] = {
    "event_no": pl.Int64,
    "document_id": pl.String,
    "outcome": pl.String,
    "size": pl.Int64,
    "mtime_ns": pl.Int64,
    "mark": pl.String,
    "problem": pl.String,
}
"""What a look for an event's document came to: `found` with size, time and mark as listed, `gone`,
or `failed` with a problem."""
LISTED_EVENT_SCHEMA: dict[str, PolarsType] = {
    "event_no": pl.Int64,
    "source": pl.String,
    "event_key": pl.String,
    "document_id": pl.String,
    "state": pl.String,
    "times": pl.Int64,
    "tries": pl.Int64,
    "first_at": pl.String,
    "last_at": pl.String,
    "problem": pl.String,
    "owner": pl.String,
    "closed_at": pl.String,
    "closing_reason": pl.String,
    "closed_by": pl.String,
}
STATES = ("waiting", "done", "dead", "discarded")

_LIST = (
    "SELECT v.event_no, s.name, v.event_key, v.document_id, v.state, v.times, v.tries, "
    "v.first_at, v.last_at, v.problem, v.owner, v.closed_at, v.closing_reason, v.closed_by "
    "FROM source_events v JOIN sources s ON s.source_no = v.source_no "
)


class EventsNotOpen(LookupError):
    """Events were chosen that are not there, or not in a state in which this can be done."""

    def __init__(self, what: str, numbers: list[int], expected: str) -> None:
        shown = ", ".join(str(number) for number in numbers[:10])
        more = f" and {len(numbers) - 10} more" if len(numbers) > 10 else ""
        super().__init__(
            f"events {shown}{more} cannot be {what}; expected {expected}. Nothing was changed: "
            "`tallybook sources events` lists the events as they are."
        )


def record_events(
    connection: Connection, ledger: Ledger, source_no: int, events: pl.DataFrame, owner: str
) -> None:
    """Store received events (`RECEIVED_SCHEMA`); one that is known counts once more, no else.

    Args:
        connection: a write transaction.
        ledger: the ledger.
        source_no: the queue's source.
        events: what was received, repetitions included.
        owner: whom those with a problem belong to.
    """
    if events.is_empty():
        return
    # Two receivers of one queue may be told the same event at the same moment.
    ledger.dialect.lock_chain(connection, f"source_events:{source_no}")
    now = ledger.now()
    once = events.group_by("event_key", maintain_order=True).agg(
        pl.col("document_id").first(), pl.col("problem").first(), times=pl.len().cast(pl.Int64)
    )
    ledger.dialect.stage(connection, "stage_events", once.select("event_key", again="times"))
    known = ledger.dialect.fetch(
        connection,
        "SELECT s.event_key FROM stage_events s JOIN source_events v "
        "ON v.event_key = s.event_key AND v.source_no = ?",
        {"event_key": pl.String},
        (source_no,),
    )
    connection.execute(
        text(
            "UPDATE source_events SET times = times + s.again, last_at = :now "
            "FROM stage_events s WHERE source_events.source_no = :source_no "
            "AND source_events.event_key = s.event_key"
        ),
        {"now": now, "source_no": source_no},
    )
    fresh = once.join(known, on="event_key", how="anti")
    if fresh.is_empty():
        return
    first = next_number(connection, ledger.dialect, source_events.c.event_no)
    dead = pl.col("problem").is_not_null()
    done = ~dead & pl.col("document_id").is_null()
    rows = fresh.with_row_index("index").select(
        event_no=pl.col("index").cast(pl.Int64) + first,
        source_no=pl.lit(source_no, dtype=pl.Int64),
        event_key="event_key",
        document_id="document_id",
        times="times",
        tries=pl.lit(0, dtype=pl.Int64),
        state=pl.when(dead)
        .then(pl.lit("dead"))
        .when(done)
        .then(pl.lit("done"))
        .otherwise(pl.lit("waiting")),
        first_at=pl.lit(now),
        last_at=pl.lit(now),
        problem="problem",
        owner=pl.when(dead).then(pl.lit(owner)),
        closed_at=pl.when(done).then(pl.lit(now)),
    )
    ledger.dialect.load(connection, source_events, rows)


def waiting_events(ledger: Ledger, source_no: int) -> pl.DataFrame:
    """The events of a source whose document is to be looked at (`WAITING_SCHEMA`), by document."""
    with ledger.read() as connection:
        return ledger.dialect.fetch(
            connection,
            "SELECT event_no, document_id FROM source_events "
            "WHERE source_no = ? AND state = 'waiting'",
            WAITING_SCHEMA,
            (source_no,),
        ).sort("document_id", "event_no")


def settle_events(
    connection: Connection,
    ledger: Ledger,
    looked: pl.DataFrame,
    *,
    tries: int,
    owner: str,
) -> None:
    """Close the events whose documents the snapshot now holds as they were listed.

    An event is done if the open entry of its document has the very size, time and mark that were
    listed, or, for a document that is gone, if no entry is open. What the scan left for later (a
    file that is still being written), or read in a newer state, waits for the next look.

    Args:
        connection: the transaction that stores the snapshot, after its entries.
        ledger: the ledger.
        looked: `LOOKED_SCHEMA`.
        tries: an event is given up after so many failed looks.
        owner: whom events that are given up belong to.
    """
    if looked.is_empty():
        return
    now = ledger.now()
    ledger.dialect.stage(
        connection,
        "stage_looked",
        looked.rename({"problem": "trouble"}).with_columns(pl.col("mark").fill_null("")),
    )
    open_entry = (
        "SELECT 1 FROM documents d JOIN source_entries e ON e.document_no = d.document_no "
        "AND e.to_snapshot IS NULL WHERE d.document_id = s.document_id"
    )
    connection.execute(
        text(
            "UPDATE source_events SET state = 'done', closed_at = :now, problem = NULL "  # noqa: S608 - own names
            "WHERE state = 'waiting' AND event_no IN (SELECT s.event_no FROM stage_looked s WHERE "
            f"(s.outcome = 'found' AND EXISTS ({open_entry} AND e.size = s.size "
            "AND e.mtime_ns = s.mtime_ns AND COALESCE(e.mark, '') = s.mark)) "
            f"OR (s.outcome = 'gone' AND NOT EXISTS ({open_entry})))"
        ),
        {"now": now},
    )
    connection.execute(
        text(
            "UPDATE source_events SET tries = tries + 1, problem = s.trouble, "
            "state = CASE WHEN tries + 1 >= :tries THEN 'dead' ELSE state END, "
            "owner = CASE WHEN tries + 1 >= :tries THEN :owner ELSE owner END "
            "FROM stage_looked s WHERE source_events.event_no = s.event_no "
            "AND source_events.state = 'waiting' AND s.outcome = 'failed'"
        ),
        {"tries": tries, "owner": owner},
    )


def list_events(
    connection: Connection,
    ledger: Ledger,
    *,
    source: str | None = None,
    states: tuple[str, ...] = ("dead", "waiting"),
) -> pl.DataFrame:
    """Events (`LISTED_EVENT_SCHEMA`) by number; the oldest first.

    Args:
        connection: inside a transaction.
        ledger: the ledger.
        source: of one source alone; None for all.
        states: some of `STATES`. `dead` ones are the dead letters: `owner`, `problem`, and their
            age is counted from `first_at`.

    Raises:
        ValueError: a state is not one of `STATES`.
    """
    unknown = sorted(set(states) - set(STATES))
    if unknown:
        raise ValueError(f"found states {unknown}; expected some of {list(STATES)}")
    marks = ",".join("?" * len(states))
    where = f"WHERE v.state IN ({marks})" + ("" if source is None else " AND s.name = ?")
    return ledger.dialect.fetch(
        connection,
        f"{_LIST}{where} ORDER BY v.event_no",
        LISTED_EVENT_SCHEMA,
        (*states, *(() if source is None else (source,))),
    )


def dead_event_counts(connection: Connection, ledger: Ledger) -> pl.DataFrame:
    """Sources with dead events: source, events, oldest_at."""
    return ledger.dialect.fetch(
        connection,
        "SELECT s.name, COUNT(*), MIN(v.first_at) FROM source_events v "
        "JOIN sources s ON s.source_no = v.source_no WHERE v.state = 'dead' "
        "GROUP BY s.name ORDER BY s.name",
        {"source": pl.String, "events": pl.Int64, "oldest_at": pl.String},
    )


def retry_events(
    connection: Connection, ledger: Ledger, event_nos: list[int], *, reason: str, actor: str
) -> int:
    """Let dead events wait for a look again, with all their tries; returns how many.

    Who said so and why stays with the event.

    Raises:
        EventsNotOpen: one of them is not dead, or names no document to look at.
    """
    chosen = sorted(set(event_nos))
    _require(connection, ledger, chosen, ("dead",), "retried", "dead events that name a document")
    return _change(
        connection,
        chosen,
        {"state": "waiting", "tries": 0, "closing_reason": reason, "closed_by": actor},
    )


def discard_events(
    connection: Connection, ledger: Ledger, event_nos: list[int], *, reason: str, actor: str
) -> int:
    """Give events up for good; returns how many.

    Raises:
        EventsNotOpen: one of them is neither dead nor waiting.
    """
    chosen = sorted(set(event_nos))
    _require(connection, ledger, chosen, ("dead", "waiting"), "discarded", "dead or waiting events")
    return _change(
        connection,
        chosen,
        {
            "state": "discarded",
            "closed_at": ledger.now(),
            "closing_reason": reason,
            "closed_by": actor,
        },
    )


def _require(
    connection: Connection,
    ledger: Ledger,
    chosen: list[int],
    states: tuple[str, ...],
    what: str,
    expected: str,
) -> None:
    if not chosen:
        return
    ledger.dialect.stage(connection, "stage_chosen", pl.DataFrame({"event_no": chosen}))
    marks = ",".join("?" * len(states))
    named = " AND v.document_id IS NOT NULL" if what == "retried" else ""
    fit = ledger.dialect.fetch(
        connection,
        "SELECT v.event_no FROM source_events v JOIN stage_chosen s "  # noqa: S608 - own names
        f"ON s.event_no = v.event_no WHERE v.state IN ({marks}){named}",
        {"event_no": pl.Int64},
        states,
    )
    others = sorted(set(chosen) - set(fit["event_no"]))
    if others:
        raise EventsNotOpen(what, others, expected)


def _change(connection: Connection, chosen: list[int], values: dict[str, object]) -> int:
    if not chosen:
        return 0
    statement = update(source_events).where(source_events.c.event_no == bindparam("number"))
    connection.execute(statement.values(values), [{"number": number} for number in chosen])
    return len(chosen)
