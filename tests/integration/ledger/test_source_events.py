"""Events of queues on both databases: counted, closed with a snapshot, given up, taken up again."""

from __future__ import annotations

import polars as pl
import pytest
from sqlalchemy import insert

from resources.ledger.engine import Ledger
from resources.ledger.schema import documents, snapshots, source_entries, sources
from resources.ledger.source_events import (
    LOOKED_SCHEMA,
    RECEIVED_SCHEMA,
    EventsNotOpen,
    dead_event_counts,
    discard_events,
    list_events,
    record_events,
    retry_events,
    settle_events,
    waiting_events,
)
from tests.integration.ledger.support import AT

Row = tuple[str, str | None, str | None]


@pytest.fixture
def queue(ledger: Ledger) -> Ledger:
    with ledger.write() as connection:
        for number in (1, 2):
            connection.execute(
                insert(sources).values(
                    source_no=number,
                    name=f"q{number}",
                    kind="queue",
                    location="/",
                    registered_at=AT,
                )
            )
    return ledger


def record(ledger: Ledger, *rows: Row, source_no: int = 1) -> None:
    frame = pl.DataFrame(list(rows), schema=RECEIVED_SCHEMA, orient="row")
    with ledger.write() as connection:
        record_events(connection, ledger, source_no, frame, "clerks")


def settle(ledger: Ledger, *rows: tuple[object, ...], tries: int = 3) -> None:
    frame = pl.DataFrame(list(rows), schema=LOOKED_SCHEMA, orient="row")
    with ledger.write() as connection:
        settle_events(connection, ledger, frame, tries=tries, owner="clerks")


def entry(ledger: Ledger, number: int, document_id: str, size: int, mark: str | None) -> None:
    with ledger.write() as connection:
        if number == 1:
            connection.execute(
                insert(snapshots).values(
                    snapshot_no=1, source_no=1, taken_at=AT, digest="d", documents=1, excluded=0,
                    added=1, changed=0, removed=0, complete=1,
                )
            )  # fmt: skip
        connection.execute(
            insert(documents).values(
                document_no=number, document_id=document_id, source_no=1, first_seen_at=AT
            )
        )
        connection.execute(
            insert(source_entries).values(
                entry_no=number, document_no=number, from_snapshot=1, size=size, mtime_ns=7,
                device="0", inode="0", scanned_at_ns=9, excluded="empty", detail="", mark=mark,
            )
        )  # fmt: skip


def shown(ledger: Ledger, *columns: str, states: tuple[str, ...] | None = None) -> list[tuple]:
    every = states or ("waiting", "done", "dead", "discarded")
    with ledger.read() as connection:
        frame = list_events(connection, ledger, states=every)
    return frame.select(columns).rows()


def test_an_event_that_comes_again_is_counted(queue: Ledger) -> None:
    record(queue, ("e1", "q1/a", None), ("e2", "q1/b", None), ("e1", "q1/a", None))
    record(queue, ("e2", "q1/b", None), ("e3", "q1/a", None))
    record(queue, ("e1", "q2/a", None), source_no=2)
    record(queue)
    assert shown(queue, "source", "event_key", "times", "state") == [
        ("q1", "e1", 2, "waiting"),
        ("q1", "e2", 2, "waiting"),
        ("q1", "e3", 1, "waiting"),
        ("q2", "e1", 1, "waiting"),
    ]
    assert waiting_events(queue, 1).rows() == [(1, "q1/a"), (3, "q1/a"), (2, "q1/b")]


def test_what_cannot_be_acted_on_is_dead_and_what_says_nothing_is_done(queue: Ledger) -> None:
    record(queue, ("bad", None, "the message is not JSON"), ("nothing", None, None))
    assert shown(queue, "event_key", "state", "problem", "owner") == [
        ("bad", "dead", "the message is not JSON", "clerks"),
        ("nothing", "done", None, None),
    ]
    with queue.read() as connection:
        counts = dead_event_counts(connection, queue)
    assert counts.select("source", "events").rows() == [("q1", 1)]


@pytest.mark.parametrize(
    ("outcome", "size", "mark", "state"),
    [
        pytest.param("found", 5, "m", "done", id="as-listed"),
        pytest.param("found", 6, "m", "waiting", id="another-size"),
        pytest.param("found", 5, "n", "waiting", id="another-mark"),
        pytest.param("found", 5, None, "waiting", id="no-mark"),
        pytest.param("gone", 0, None, "waiting", id="still-held"),
        pytest.param("failed", 0, None, "waiting", id="failed"),
    ],
)
def test_an_event_is_done_when_the_snapshot_holds_what_was_listed(
    queue: Ledger, outcome: str, size: int, mark: str | None, state: str
) -> None:
    entry(queue, 1, "q1/a", 5, "m")
    record(queue, ("e1", "q1/a", None), ("e2", "q1/a", None))
    row = ("q1/a", outcome, size, 7, mark, None)
    settle(queue, (1, *row), (2, *row))
    tries = 1 if outcome == "failed" else 0
    assert shown(queue, "state", "tries") == [(state, tries)] * 2


def test_a_document_without_entry(queue: Ledger) -> None:
    entry(queue, 1, "q1/other", 5, None)
    record(queue, ("e1", "q1/a", None), ("e2", "q1/b", None), ("e3", "q1/other", None))
    settle(
        queue,
        (1, "q1/a", "gone", 0, 0, None, None),
        (2, "q1/b", "found", 5, 7, None, None),
        (3, "q1/other", "found", 5, 7, None, None),
    )
    # What the scan left for later has no entry yet: its event must wait.
    assert shown(queue, "event_key", "state") == [
        ("e1", "done"),
        ("e2", "waiting"),
        ("e3", "done"),
    ]


def test_after_so_many_failed_looks_an_event_is_given_up(queue: Ledger) -> None:
    record(queue, ("e1", "q1/a", None))
    for _ in range(2):
        settle(queue, (1, "q1/a", "failed", 0, 0, None, "access denied"))
    assert shown(queue, "state", "tries", "owner") == [("waiting", 2, None)]
    settle(queue, (1, "q1/a", "failed", 0, 0, None, "access denied"))
    assert shown(queue, "state", "tries", "owner", "problem") == [
        ("dead", 3, "clerks", "access denied")
    ]
    # The same event again does not raise it; another one about the document looks again.
    record(queue, ("e1", "q1/a", None), ("e2", "q1/a", None))
    assert shown(queue, "event_key", "state") == [("e1", "dead"), ("e2", "waiting")]
    with queue.write() as connection:
        assert retry_events(connection, queue, [1], reason="disk is back", actor="kim") == 1
    assert shown(queue, "event_key", "state", "tries", "closing_reason", "closed_by") == [
        ("e1", "waiting", 0, "disk is back", "kim"),
        ("e2", "waiting", 0, None, None),
    ]


def test_what_was_done_stays_done(queue: Ledger) -> None:
    record(queue, ("e1", "q1/a", None))
    settle(queue, (1, "q1/a", "gone", 0, 0, None, None))
    record(queue, ("e1", "q1/a", None))
    assert shown(queue, "state", "times") == [("done", 2)]
    settle(queue, (1, "q1/a", "failed", 0, 0, None, "x"))
    assert shown(queue, "state", "tries") == [("done", 0)]


def test_discarding_and_what_is_refused(queue: Ledger) -> None:
    record(queue, ("e1", "q1/a", None), ("bad", None, "the message is not JSON"))
    with queue.write() as connection:
        with pytest.raises(EventsNotOpen, match="events 2, 9 cannot be retried"):
            retry_events(connection, queue, [2, 9], reason="r", actor="kim")
        assert discard_events(connection, queue, [2, 1, 2], reason="old", actor="kim") == 2
        with pytest.raises(EventsNotOpen, match="events 1 cannot be discarded"):
            discard_events(connection, queue, [1], reason="r", actor="kim")
        assert discard_events(connection, queue, [], reason="r", actor="kim") == 0
    assert (
        shown(queue, "state", "closing_reason", "closed_by", states=("discarded",))
        == [("discarded", "old", "kim")] * 2
    )
    with queue.read() as connection, pytest.raises(ValueError, match="expected some of"):
        list_events(connection, queue, states=("lost",))
