"""The verifier: a whole journal holds, and every way to tamper with it shows."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from sqlalchemy import Connection, delete, insert, select, text, update

from resources.ledger import journal
from resources.ledger.engine import Ledger
from resources.ledger.journal import ChainFault, chains, verify_all, verify_chain
from resources.ledger.moves import GENESIS, batch_chain, move_batch, move_digest, move_records
from resources.ledger.schema import move_members, moves
from tests.integration.ledger.support import CAUSE, numbers, seeded

CHAIN = batch_chain(1)
COVERED = ("chain", "machine", "subject_no", "from_state", "to_state", "reason", "actor", "cause",
           "moved_at", "members", "members_digest", "previous_digest")  # fmt: skip


@pytest.fixture
def written(ledger: Ledger) -> Ledger:
    """Return a ledger with five moves on its chain.

    In order: batch prepared, records queued, two prepared, batch submitting, one cancelled.
    """
    seeded(ledger, [1, 2, 3])
    seeded(ledger, [4], batch=2)
    with ledger.write() as connection:
        move_records(connection, ledger.dialect, numbers(1, 2), "queued", "prepared", CAUSE, CHAIN)
        move_batch(connection, ledger.dialect, 1, "prepared", "submitting", CAUSE)
        move_records(connection, ledger.dialect, numbers(3), "queued", "cancelled", CAUSE, CHAIN)
    return ledger


def rows_of_chain(connection: Connection) -> list[dict]:
    found = connection.execute(
        select(moves).where(moves.c.chain == CHAIN).order_by(moves.c.move_no)
    )
    return [dict(row) for row in found.mappings()]


def sealed(row: dict) -> dict:
    """Return `row` with the digest that fits it."""
    return row | {"digest": move_digest({name: row[name] for name in COVERED})}


def test_a_whole_journal_holds(written: Ledger) -> None:
    with written.read() as connection:
        rows = rows_of_chain(connection)
        verdict = verify_chain(connection, written.dialect, CHAIN)
        whole = verify_all(connection, written.dialect)
        names = chains(connection)
    assert verdict.holds
    assert (verdict.moves, verdict.members, verdict.head) == (5, 6, rows[-1]["digest"])
    assert whole.holds
    assert verdict in whole.chains
    assert names == [chain.chain for chain in whole.chains]
    assert names == ["batch:1", "batch:2", "version:1", "version:2"]


def test_an_empty_journal_holds(ledger: Ledger) -> None:
    with ledger.read() as connection:
        assert verify_all(connection, ledger.dialect).holds
        assert chains(connection) == []
        verdict = verify_chain(connection, ledger.dialect, "batch:77")
    assert verdict.holds
    assert (verdict.moves, verdict.members, verdict.head) == (0, 0, GENESIS)


def test_numbers_of_moves_need_not_follow_the_links(written: Ledger) -> None:
    with written.write() as connection:
        first = rows_of_chain(connection)[0]["move_no"]
        connection.execute(update(moves).where(moves.c.move_no == first).values(move_no=900))
        assert verify_chain(connection, written.dialect, CHAIN).holds


def test_members_of_many_pages(written: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    with written.read() as connection:
        at_once = verify_all(connection, written.dialect)
        monkeypatch.setattr(journal, "MEMBERS_A_PAGE", 2)
        assert verify_all(connection, written.dialect) == at_once
        assert verify_chain(connection, written.dialect, CHAIN) in at_once.chains


@pytest.mark.parametrize("column", ["reason", "actor", "cause", "moved_at", "to_state"])
def test_a_changed_row_shows(written: Ledger, column: str) -> None:
    with written.write() as connection:
        row = rows_of_chain(connection)[2]
        connection.execute(
            update(moves).where(moves.c.move_no == row["move_no"]).values({column: "changed"})
        )
        verdict = verify_chain(connection, written.dialect, CHAIN)
        whole = verify_all(connection, written.dialect)
    assert verdict.faults == (ChainFault(row["move_no"], "digest does not match the row"),)
    assert not whole.holds
    assert [chain.chain for chain in whole.chains if not chain.holds] == [CHAIN]


def test_a_changed_row_with_a_digest_to_match_breaks_the_link(written: Ledger) -> None:
    with written.write() as connection:
        rows = rows_of_chain(connection)
        forged = sealed(rows[2] | {"reason": "changed"})
        connection.execute(update(moves).where(moves.c.move_no == forged["move_no"]).values(forged))
        verdict = verify_chain(connection, written.dialect, CHAIN)
    assert verdict.faults == tuple(
        ChainFault(row["move_no"], "not linked to the start of its chain") for row in rows[3:]
    )
    assert verdict.head == forged["digest"]


def test_a_removed_row_shows(written: Ledger) -> None:
    with written.write() as connection:
        rows = rows_of_chain(connection)
        connection.execute(delete(moves).where(moves.c.move_no == rows[2]["move_no"]))
        verdict = verify_chain(connection, written.dialect, CHAIN)
        whole = verify_all(connection, written.dialect)
    assert [fault.move_no for fault in verdict.faults] == [row["move_no"] for row in rows[3:]]
    assert verdict.head == rows[1]["digest"]
    assert whole.orphans == 2


def test_a_cut_off_end_shows_in_the_head(written: Ledger) -> None:
    with written.write() as connection:
        rows = rows_of_chain(connection)
        last = rows[-1]["move_no"]
        connection.execute(delete(moves).where(moves.c.move_no == last))
        connection.execute(delete(move_members).where(move_members.c.move_no == last))
        verdict = verify_chain(connection, written.dialect, CHAIN)
    assert verdict.holds
    assert verdict.head == rows[-2]["digest"] != rows[-1]["digest"]


def swap(connection: Connection, move_no: int) -> None:
    connection.execute(
        update(move_members)
        .where(move_members.c.move_no == move_no, move_members.c.record_no == 1)
        .values(record_no=3)
    )


def drop(connection: Connection, move_no: int) -> None:
    connection.execute(
        delete(move_members).where(move_members.c.move_no == move_no, move_members.c.record_no == 1)
    )


def drop_all(connection: Connection, move_no: int) -> None:
    connection.execute(delete(move_members).where(move_members.c.move_no == move_no))


def add(connection: Connection, move_no: int) -> None:
    connection.execute(insert(move_members).values(move_no=move_no, record_no=3))


@pytest.mark.parametrize(
    ("tamper", "counted"),
    [
        pytest.param(swap, False, id="another member"),
        pytest.param(drop, True, id="one less"),
        pytest.param(drop_all, True, id="none left"),
        pytest.param(add, True, id="one more"),
    ],
)
def test_changed_members_show(
    written: Ledger, tamper: Callable[[Connection, int], None], counted: bool
) -> None:
    with written.write() as connection:
        move_no = rows_of_chain(connection)[2]["move_no"]
        tamper(connection, move_no)
        verdict = verify_chain(connection, written.dialect, CHAIN)
    expected = [ChainFault(move_no, "members do not match their digest")]
    if counted:
        expected.insert(0, ChainFault(move_no, "member count does not match"))
    assert verdict.faults == tuple(expected)


def test_members_of_a_move_without_any_show(written: Ledger) -> None:
    with written.write() as connection:
        batch_move = rows_of_chain(connection)[3]
        assert batch_move["machine"] == "batch"
        add(connection, batch_move["move_no"])
        verdict = verify_chain(connection, written.dialect, CHAIN)
    assert verdict.faults == (ChainFault(batch_move["move_no"], "member count does not match"),)


def test_another_subject_shows(written: Ledger) -> None:
    with written.write() as connection:
        row = rows_of_chain(connection)[3]
        connection.execute(
            update(moves).where(moves.c.move_no == row["move_no"]).values(subject_no=2)
        )
        verdict = verify_chain(connection, written.dialect, CHAIN)
    assert {fault.problem for fault in verdict.faults} == {
        "digest does not match the row",
        "members do not match their digest",
    }


def test_members_without_a_move_show(written: Ledger) -> None:
    with written.write() as connection:
        add(connection, 12_345)
        verdict = verify_all(connection, written.dialect)
    assert verdict.orphans == 1
    assert not verdict.holds
    assert all(chain.holds for chain in verdict.chains)


@pytest.fixture
def forkable(written: Ledger) -> Iterator[Ledger]:
    """Return the ledger without the constraint that forbids a fork, inside a test's database."""
    if written.dialect.name == "sqlite":
        pytest.skip("SQLite cannot drop a constraint of a table")
    drop_it = "ALTER TABLE moves DROP CONSTRAINT uq_moves_chain_previous_digest"
    with written.write() as connection:
        connection.execute(text(drop_it))
    yield written
    with written.write() as connection:
        connection.execute(moves.delete())
        connection.execute(text(
            "ALTER TABLE moves ADD CONSTRAINT uq_moves_chain_previous_digest "
            "UNIQUE (chain, previous_digest)"
        ))  # fmt: skip


def test_a_fork_shows_even_where_the_constraint_is_gone(forkable: Ledger) -> None:
    with forkable.write() as connection:
        row = rows_of_chain(connection)[3]
        rival = sealed(row | {"move_no": 999, "reason": "a rival"})
        connection.execute(insert(moves).values(rival))
        verdict = verify_chain(connection, forkable.dialect, CHAIN)
    assert verdict.faults == (ChainFault(999, "two moves follow the same one"),)
