"""A reader sees one state of the ledger, whatever writers commit meanwhile."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

from sqlalchemy import func, select

from resources.ledger.engine import Ledger
from resources.ledger.journal import verify_all
from resources.ledger.moves import move_records
from resources.ledger.schema import move_members, moves, record_state
from tests.integration.ledger.support import CAUSE, numbers, seeded, states

LIMIT_S = 30
RECORDS = 20


def test_a_reader_keeps_its_snapshot_while_a_writer_commits(ledger: Ledger) -> None:
    chain = seeded(ledger, [1, 2])
    with ledger.read() as reader:
        before = reader.execute(select(func.count()).select_from(moves)).scalar_one()
        with ledger.write() as writer:
            move_records(writer, ledger.dialect, numbers(1), "queued", "prepared", CAUSE, chain)
        assert reader.execute(select(func.count()).select_from(moves)).scalar_one() == before
        # Also a table that it did not look at before.
        seen = reader.execute(select(record_state.c.state)).scalars().all()
        assert seen == ["queued", "queued"]
        through_the_driver = ledger.dialect.fetch(
            reader, "SELECT record_no FROM move_members", {"record_no": numbers().dtype}
        )
        assert through_the_driver.height == 2
    assert states(ledger) == {1: "prepared", 2: "queued"}


def test_a_reader_does_not_see_what_is_not_committed(ledger: Ledger) -> None:
    chain = seeded(ledger, [1])
    with ledger.write() as writer:
        move_records(writer, ledger.dialect, numbers(1), "queued", "prepared", CAUSE, chain)
        assert states(ledger) == {1: "queued"}
    assert states(ledger) == {1: "prepared"}


def test_state_and_journal_agree_in_every_snapshot(ledger: Ledger) -> None:
    chain = seeded(ledger, range(RECORDS))
    done = threading.Event()

    def write() -> None:
        try:
            for number in range(RECORDS):
                with ledger.write() as connection:
                    move_records(
                        connection, ledger.dialect, numbers(number), "queued", "prepared",
                        CAUSE, chain,
                    )  # fmt: skip
        finally:
            done.set()

    prepared = select(func.count()).where(record_state.c.state == "prepared")
    journaled = select(func.count()).select_from(move_members)
    with ThreadPoolExecutor(1) as pool:
        end = pool.submit(write)
        seen = set()
        while not done.is_set():
            with ledger.read() as reader:
                state = reader.execute(prepared).scalar_one()
                journal = reader.execute(journaled).scalar_one() - RECORDS
                verdict = verify_all(reader, ledger.dialect)
            assert verdict.holds
            assert state == journal
            seen.add(state)
        end.result(LIMIT_S)
    assert len(seen) > 1
    assert set(states(ledger).values()) == {"prepared"}
