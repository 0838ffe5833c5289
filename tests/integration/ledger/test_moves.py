"""Moves: all or nothing, journaled in the same transaction, on chains that cannot fork."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import polars as pl
import pytest
from sqlalchemy import insert, select
from sqlalchemy.exc import IntegrityError

from resources.ledger.engine import Ledger
from resources.ledger.frames import digest_of_members
from resources.ledger.journal import verify_all, verify_chain
from resources.ledger.moves import (
    GENESIS,
    MoveRefused,
    StateChanged,
    batch_chain,
    create_records,
    move_batch,
    move_digest,
    move_records,
    move_version,
    version_chain,
)
from resources.ledger.schema import batches, move_members, moves, processing_versions, record_state
from resources.ledger.transitions import IllegalTransition
from tests.integration.ledger.support import (
    CAUSE,
    count,
    make_records,
    numbers,
    seeded,
    states,
)

WRITERS = 4
MOVES_A_WRITER = 5
LIMIT_S = 30
ROW = ("chain", "machine", "subject_no", "from_state", "to_state", "reason", "actor", "cause",
       "moved_at", "members", "members_digest", "previous_digest")  # fmt: skip


def test_a_move_changes_the_state_and_is_journaled(ledger: Ledger) -> None:
    chain = seeded(ledger, [1, 2, 3])
    with ledger.write() as connection:
        receipt = move_records(
            connection, ledger.dialect, numbers(3, 1), "queued", "prepared", CAUSE, chain
        )
    assert receipt is not None
    assert receipt.members == 2
    with ledger.read() as connection:
        row = (
            connection.execute(select(moves).where(moves.c.move_no == receipt.move_no))
            .mappings()
            .one()
        )
        moved = (
            connection.execute(
                select(move_members.c.record_no)
                .where(move_members.c.move_no == receipt.move_no)
                .order_by(move_members.c.record_no)
            )
            .scalars()
            .all()
        )
        versions = {r.record_no: r.version for r in connection.execute(select(record_state))}
    assert states(ledger) == {1: "prepared", 2: "queued", 3: "prepared"}
    assert versions == {1: 1, 2: 0, 3: 1}
    assert moved == [1, 3]
    assert row["members"] == len(moved)
    assert row["members_digest"] == digest_of_members(numbers(1, 3))
    assert (row["reason"], row["actor"], row["cause"], row["moved_at"]) == (
        CAUSE.reason, CAUSE.actor, CAUSE.cause, CAUSE.at,
    )  # fmt: skip
    assert row["digest"] == receipt.digest == move_digest({name: row[name] for name in ROW})


def test_a_move_clears_the_time_to_wait_for(ledger: Ledger) -> None:
    chain = seeded(ledger, [1])
    with ledger.write() as connection:
        connection.execute(record_state.update().values(not_before="2031", state="retry_wait"))
        move_records(connection, ledger.dialect, numbers(1), "retry_wait", "prepared", CAUSE, chain)
        assert connection.execute(select(record_state.c.not_before)).scalar_one() is None


@pytest.mark.parametrize(
    ("asked", "refused"),
    [
        pytest.param([1, 2, 3], [(3, "prepared")], id="one in another state"),
        pytest.param([3, 4], [(3, "prepared"), (4, "prepared")], id="all in another state"),
        pytest.param([99, 1], [(99, None)], id="no such record"),
        pytest.param([98, 4, 2], [(4, "prepared"), (98, None)], id="both"),
    ],
)
def test_a_refused_move_reports_exactly_the_refused_rows_and_changes_nothing(
    ledger: Ledger, asked: list[int], refused: list[tuple[int, str | None]]
) -> None:
    chain = seeded(ledger, [1, 2, 3, 4])
    with ledger.write() as connection:
        move_records(connection, ledger.dialect, numbers(3, 4), "queued", "prepared", CAUSE, chain)
    before = states(ledger), count(ledger, moves), count(ledger, move_members)
    with ledger.write() as connection:
        with pytest.raises(MoveRefused) as refusal:
            move_records(
                connection, ledger.dialect, numbers(*asked), "queued", "cancelled", CAUSE, chain
            )
        # Even when the caller goes on and commits, the refused move has left nothing.
        connection.execute(record_state.update().values(shard=5))
    assert refusal.value.refused.rows() == refused
    assert f"{len(refused)} of {len(asked)} records" in str(refusal.value)
    assert (states(ledger), count(ledger, moves), count(ledger, move_members)) == before


@pytest.mark.parametrize(
    "members",
    [
        pytest.param(numbers(1, 2, 1), id="repeat"),
        pytest.param(pl.Series([1, None], dtype=pl.Int64), id="null"),
    ],
)
def test_a_set_with_repeats_or_nulls_is_refused(ledger: Ledger, members: pl.Series) -> None:
    chain = seeded(ledger, [1, 2])
    with ledger.write() as connection, pytest.raises(ValueError, match="repeats or nulls"):
        move_records(connection, ledger.dialect, members, "queued", "prepared", CAUSE, chain)
    with ledger.write() as connection, pytest.raises(ValueError, match="repeats or nulls"):
        create_records(connection, ledger.dialect, members, CAUSE, chain)
    assert set(states(ledger).values()) == {"queued"}


def test_an_empty_set_is_not_journaled(ledger: Ledger) -> None:
    chain = seeded(ledger)
    journaled = count(ledger, moves)
    with ledger.write() as connection:
        empty = move_records(
            connection, ledger.dialect, numbers(), "queued", "prepared", CAUSE, chain
        )
        assert empty is None
        assert create_records(connection, ledger.dialect, numbers(), CAUSE, chain) is None
    assert count(ledger, moves) == journaled


def test_an_illegal_move_is_refused_even_for_an_empty_set(ledger: Ledger) -> None:
    chain = seeded(ledger, [1])
    for members in (numbers(1), numbers()):
        with ledger.write() as connection, pytest.raises(IllegalTransition):
            move_records(connection, ledger.dialect, members, "queued", "published", CAUSE, chain)
    assert states(ledger) == {1: "queued"}


def test_journal_members_and_state_are_one_transaction(ledger: Ledger) -> None:
    chain = seeded(ledger, [1, 2])
    before = count(ledger, moves), count(ledger, move_members)
    with pytest.raises(ZeroDivisionError), ledger.write() as connection:
        move_records(connection, ledger.dialect, numbers(1), "queued", "prepared", CAUSE, chain)
        move_batch(connection, ledger.dialect, 1, "prepared", "submitting", CAUSE)
        move_version(connection, ledger.dialect, 1, "active", "held", CAUSE)
        make_records(connection, ledger, [3], chain)
        raise ZeroDivisionError
    assert (count(ledger, moves), count(ledger, move_members)) == before
    assert states(ledger) == {1: "queued", 2: "queued"}
    with ledger.read() as connection:
        assert connection.execute(select(batches.c.state)).scalar_one() == "prepared"
        assert connection.execute(select(processing_versions.c.state)).scalar_one() == "active"


def test_a_batch_or_version_that_was_moved_by_another_is_not_moved(ledger: Ledger) -> None:
    seeded(ledger)
    journaled = count(ledger, moves)
    with ledger.write() as connection:
        with pytest.raises(StateChanged, match="batch 1 is no longer 'submitting'"):
            move_batch(connection, ledger.dialect, 1, "submitting", "submitted", CAUSE)
        with pytest.raises(StateChanged, match="version 1 is no longer 'held'"):
            move_version(connection, ledger.dialect, 1, "held", "active", CAUSE)
        with pytest.raises(StateChanged, match="batch 9"):
            move_batch(connection, ledger.dialect, 9, "prepared", "submitting", CAUSE)
    assert count(ledger, moves) == journaled


def test_a_version_keeps_the_reason_of_its_state(ledger: Ledger) -> None:
    seeded(ledger)
    with ledger.write() as connection:
        move_version(connection, ledger.dialect, 1, "active", "held", CAUSE)
        row = connection.execute(select(processing_versions)).one()
    assert (row.state, row.state_reason) == ("held", CAUSE.reason)


def test_every_digest_can_be_recomputed_and_links_to_the_one_before(ledger: Ledger) -> None:
    chain = seeded(ledger, [1, 2, 3])
    with ledger.write() as connection:
        for before, after in pairwise(["queued", "prepared", "submitted", "collected"]):
            move_records(connection, ledger.dialect, numbers(1, 2), before, after, CAUSE, chain)
        move_batch(connection, ledger.dialect, 1, "prepared", "submitting", CAUSE)
        seen = connection.execute(
            select(moves).where(moves.c.chain == chain).order_by(moves.c.move_no)
        )
        rows = seen.mappings().all()
    assert [row["previous_digest"] for row in rows] == [
        GENESIS, *(row["digest"] for row in rows[:-1])
    ]  # fmt: skip
    assert all(row["digest"] == move_digest({name: row[name] for name in ROW}) for row in rows)


def test_the_digest_covers_everything_that_a_row_says(ledger: Ledger) -> None:
    seeded(ledger, [1])
    with ledger.read() as connection:
        stored = connection.execute(select(moves).order_by(moves.c.move_no)).mappings().all()[-1]
    row = {name: stored[name] for name in ROW}
    assert set(row) | {"move_no", "digest"} == set(stored)
    changed = {
        name: move_digest({**row, name: 7 if name in ("subject_no", "members") else "other"})
        for name in ROW
    }
    assert stored["digest"] not in changed.values()
    assert len(set(changed.values())) == len(ROW)


def test_a_chain_cannot_fork(ledger: Ledger) -> None:
    chain = seeded(ledger, [1])
    with ledger.read() as connection:
        head = (
            connection.execute(
                select(moves).where(moves.c.chain == chain).order_by(moves.c.move_no.desc())
            )
            .mappings()
            .first()
        )
    assert head is not None
    rival = {name: head[name] for name in ROW} | {"reason": "a rival of the newest move"}
    with pytest.raises(IntegrityError), ledger.write() as connection:
        connection.execute(insert(moves).values(**rival, digest=move_digest(rival)))
    second_start = rival | {"previous_digest": GENESIS}
    with pytest.raises(IntegrityError), ledger.write() as connection:
        connection.execute(insert(moves).values(**second_start, digest=move_digest(second_start)))


def test_chains_are_told_apart(ledger: Ledger) -> None:
    for batch in (1, 2):
        seeded(ledger, [batch * 10], batch=batch)
    with ledger.read() as connection:
        verdict = verify_all(connection, ledger.dialect)
    assert verdict.holds
    assert {(chain.chain, chain.moves) for chain in verdict.chains} == {
        (batch_chain(1), 2), (batch_chain(2), 2), (version_chain(1), 1), (version_chain(2), 1),
    }  # fmt: skip


def test_concurrent_writers_to_one_chain_take_turns(ledger: Ledger) -> None:
    per_writer = [[w * 100 + n for n in range(MOVES_A_WRITER)] for w in range(WRITERS)]
    chain = seeded(ledger, [n for own in per_writer for n in own])
    start = threading.Barrier(WRITERS)

    def write(own: list[int]) -> None:
        start.wait(LIMIT_S)
        for number in own:
            with ledger.write() as connection:
                move_records(
                    connection, ledger.dialect, numbers(number), "queued", "prepared", CAUSE, chain
                )

    with ThreadPoolExecutor(WRITERS) as pool:
        for end in [pool.submit(write, own) for own in per_writer]:
            end.result(LIMIT_S)
    with ledger.read() as connection:
        verdict = verify_chain(connection, ledger.dialect, chain)
    assert verdict.holds
    assert verdict.moves == 2 + WRITERS * MOVES_A_WRITER
    assert set(states(ledger).values()) == {"prepared"}


def test_writers_to_one_chain_that_want_each_others_records_do_not_deadlock(
    ledger: Ledger,
) -> None:
    chain = seeded(ledger, [1, 2])
    first_has_moved = threading.Event()

    def second() -> MoveRefused | None:
        first_has_moved.wait(LIMIT_S)
        try:
            with ledger.write() as connection:
                move_records(
                    connection, ledger.dialect, numbers(2), "queued", "cancelled", CAUSE, chain
                )
        except MoveRefused as refusal:
            return refusal
        return None

    with ThreadPoolExecutor(1) as pool:
        end = pool.submit(second)
        with ledger.write() as connection:
            move_records(connection, ledger.dialect, numbers(1), "queued", "prepared", CAUSE, chain)
            first_has_moved.set()
            wait_a_moment()
            move_records(connection, ledger.dialect, numbers(2), "queued", "prepared", CAUSE, chain)
        refusal = end.result(LIMIT_S)
    assert refusal is not None
    assert refusal.refused.rows() == [(2, "prepared")]


def wait_a_moment() -> None:
    """Give another thread the time to run into the lock that it must wait at."""
    threading.Event().wait(0.2)
