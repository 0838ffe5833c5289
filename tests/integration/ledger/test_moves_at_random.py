"""Moves in any order, by several batches, against a model that is nothing but dictionaries.

After every step the ledger's states equal the model's, every change has its journal row with its
members, and every chain verifies.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import polars as pl
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from sqlalchemy import Connection, select

from resources.ledger.engine import Ledger
from resources.ledger.journal import verify_all
from resources.ledger.moves import (
    MoveRefused,
    StateChanged,
    batch_chain,
    move_batch,
    move_canary,
    move_records,
    move_version,
    version_chain,
)
from resources.ledger.schema import (
    batches,
    canaries,
    manifests,
    move_members,
    moves,
    processing_versions,
    record_state,
)
from resources.ledger.transitions import MACHINES, START, IllegalTransition
from tests.integration.ledger.support import (
    CAUSE,
    make_batch,
    make_canary,
    make_records,
    make_version,
    numbers,
)

MOVERS = {"batch": move_batch, "version": move_version, "canary": move_canary}
MAX_NEW_RECORDS = 6
UNKNOWN = 1_000_000


@dataclass(frozen=True)
class Journaled:
    """What the model expects of one journal row."""

    chain: str
    machine: str
    before: str
    after: str
    members: frozenset[int]


class Crash(Exception):
    """A worker dies after its move and before its commit."""


class LedgerMachine(RuleBasedStateMachine):
    """The rules; `ledger` is set by `machine_on`."""

    ledger: Ledger

    def __init__(self) -> None:
        super().__init__()
        self.versions: dict[int, str] = {}
        self.batches: dict[int, str] = {}
        self.canaries: dict[int, str] = {}
        self.records: dict[int, str] = {}
        self.moves_of: dict[int, int] = {}
        self.journal: list[Journaled] = []
        with self.ledger.write() as connection:
            for table in (
                move_members, moves, record_state, batches, canaries, manifests,
                processing_versions,
            ):  # fmt: skip
                connection.execute(table.delete())

    # Rules that make things.

    @rule()
    def make_a_version(self) -> None:
        """A new processing version is used for the first time."""
        number = len(self.versions) + 1
        with self.ledger.write() as connection:
            make_version(connection, self.ledger, number)
        self.versions[number] = "active"
        self._journaled(version_chain(number), "version", START, "active", {number})

    @precondition(lambda self: self.versions)
    @rule(data=st.data())
    def make_a_batch(self, data: st.DataObject) -> None:
        """A batch is prepared, with its records in the same transaction, or without any."""
        number = len(self.batches) + 1
        version = data.draw(st.sampled_from(sorted(self.versions)))
        size = data.draw(st.integers(0, MAX_NEW_RECORDS))
        made = set(range(len(self.records) + 1, len(self.records) + size + 1))
        with self.ledger.write() as connection:
            make_batch(connection, self.ledger, number, version)
            make_records(connection, self.ledger, sorted(made), batch_chain(number))
        self.batches[number] = "prepared"
        self._journaled(batch_chain(number), "batch", START, "prepared", {number})
        self.records.update(dict.fromkeys(made, "queued"))
        self.moves_of.update(dict.fromkeys(made, 0))
        if made:
            self._journaled(batch_chain(number), "record", START, "queued", made)

    @precondition(lambda self: self.versions)
    @rule(data=st.data())
    def make_a_canary(self, data: st.DataObject) -> None:
        """A canary is prepared, on a chain of its own."""
        number = len(self.canaries) + 1
        with self.ledger.write() as connection:
            make_canary(
                connection, self.ledger, number, data.draw(st.sampled_from(sorted(self.versions)))
            )
        self.canaries[number] = "prepared"
        self._journaled(f"canary:{number}", "canary", START, "prepared", {number})

    # Rules that move.

    @precondition(lambda self: self.records)
    @rule(data=st.data(), steps=st.integers(1, 3))
    def move_some_records(self, data: st.DataObject, steps: int) -> None:
        """One transaction moves a set once or several times; each move is a row."""
        before = data.draw(st.sampled_from(sorted(set(self.records.values()))), label="from")
        members = self._subset(data, self._in_state(before))
        with self.ledger.write() as connection:
            for _ in range(steps):
                targets = sorted(MACHINES["record"][before])
                if not targets:
                    break
                after = data.draw(st.sampled_from(targets), label="to")
                chain = self._some_chain(data)
                receipt = self._move(connection, members, before, after, chain)
                assert receipt is not None
                assert receipt.members == len(members)
                self.records.update(dict.fromkeys(members, after))
                for number in members:
                    self.moves_of[number] += 1
                self._journaled(chain, "record", before, after, members)
                before = after

    @precondition(lambda self: self.batches)
    @rule(data=st.data())
    def move_no_records(self, data: st.DataObject) -> None:
        """An empty set leaves no trace."""
        chain = self._some_chain(data)
        with self.ledger.write() as connection:
            assert self._move(connection, set(), "queued", "prepared", chain) is None

    @precondition(lambda self: self.records)
    @rule(data=st.data())
    def move_a_set_that_is_partly_elsewhere(self, data: st.DataObject) -> None:
        """The whole set is refused, and exactly the wrong rows are reported."""
        before, after = self._legal_pair(data)
        asked = self._subset(data, {*self.records, UNKNOWN})
        wrong = {n: self.records.get(n) for n in asked if self.records.get(n) != before}
        if not wrong:
            return
        with self.ledger.write() as connection, pytest.raises(MoveRefused) as refusal:
            self._move(connection, asked, before, after, self._some_chain(data))
        assert dict(refusal.value.refused.rows()) == wrong

    @precondition(lambda self: self.records)
    @rule(data=st.data())
    def move_where_the_table_has_no_move(self, data: st.DataObject) -> None:
        """An illegal move is refused whatever the state is."""
        states = sorted(MACHINES["record"])
        before = data.draw(st.sampled_from(states))
        after = data.draw(st.sampled_from(states))
        if after in MACHINES["record"][before]:
            return
        members = self._subset(data, set(self.records))
        with self.ledger.write() as connection, pytest.raises(IllegalTransition):
            self._move(connection, members, before, after, self._some_chain(data))

    @precondition(lambda self: self.records)
    @rule(data=st.data())
    def crash_before_the_commit(self, data: st.DataObject) -> None:
        """State, journal row and members go together, or not at all."""
        before = data.draw(st.sampled_from(sorted(set(self.records.values()))))
        targets = sorted(MACHINES["record"][before])
        if not targets:
            return
        members = self._subset(data, self._in_state(before))
        after = data.draw(st.sampled_from(targets))
        with pytest.raises(Crash), self.ledger.write() as connection:
            self._move(connection, members, before, after, self._some_chain(data))
            raise Crash

    @precondition(lambda self: self.batches)
    @rule(data=st.data())
    def move_a_batch(self, data: st.DataObject) -> None:
        """A batch moves if it is where the move starts, else the move is refused."""
        self._move_one(data, "batch", self.batches)

    @precondition(lambda self: self.versions)
    @rule(data=st.data())
    def move_a_version(self, data: st.DataObject) -> None:
        """A version moves if it is where the move starts, else the move is refused."""
        self._move_one(data, "version", self.versions)

    @precondition(lambda self: self.canaries)
    @rule(data=st.data())
    def move_a_canary(self, data: st.DataObject) -> None:
        """A canary moves if it is where the move starts, else the move is refused."""
        self._move_one(data, "canary", self.canaries)

    # What holds after every rule.

    @invariant()
    def ledger_and_model_agree(self) -> None:
        """States, counters of moves, journal rows and members."""
        with self.ledger.read() as connection:
            assert self._stored(connection, record_state, "record_no") == self.records
            assert self._stored(connection, batches, "batch_no") == self.batches
            assert self._stored(connection, processing_versions, "version_no") == self.versions
            assert self._stored(connection, canaries, "canary_no") == self.canaries
            counted = connection.execute(select(record_state.c.record_no, record_state.c.version))
            assert {row.record_no: row.version for row in counted} == self.moves_of
            assert self._stored_journal(connection) == self.journal

    @invariant()
    def every_chain_verifies(self) -> None:
        """Links, digests and membership sums."""
        with self.ledger.read() as connection:
            verdict = verify_all(connection, self.ledger.dialect)
        assert verdict.holds
        assert sum(chain.moves for chain in verdict.chains) == len(self.journal)
        assert sum(chain.members for chain in verdict.chains) == sum(
            len(row.members) for row in self.journal if row.machine == "record"
        )

    # Shared by the rules.

    def _move(
        self, connection: Connection, members: set[int], before: str, after: str, chain: str
    ) -> Any:
        return move_records(
            connection, self.ledger.dialect, numbers(*members), before, after, CAUSE, chain
        )

    def _move_one(self, data: st.DataObject, machine: Any, known: dict[int, str]) -> None:
        number = data.draw(st.sampled_from(sorted(known)))
        table = MACHINES[machine]
        # Mostly from where it is, sometimes from where somebody else believes it to be.
        now = known[number]
        starts = [state for state in sorted(table) if state != START and table[state]]
        if table[now] and data.draw(st.integers(0, 3)) > 0:
            starts = [now]
        before = data.draw(st.sampled_from(starts))
        after = data.draw(st.sampled_from(sorted(table[before])))
        mover = MOVERS[machine]
        with self.ledger.write() as connection:
            if before != now:
                with pytest.raises(StateChanged):
                    mover(connection, self.ledger.dialect, number, before, after, CAUSE)
                return
            mover(connection, self.ledger.dialect, number, before, after, CAUSE)
        known[number] = after
        self._journaled(f"{machine}:{number}", machine, before, after, {number})

    def _legal_pair(self, data: st.DataObject) -> tuple[str, str]:
        starts = [s for s, targets in MACHINES["record"].items() if s != START and targets]
        before = data.draw(st.sampled_from(sorted(starts)))
        return before, data.draw(st.sampled_from(sorted(MACHINES["record"][before])))

    def _in_state(self, state: str) -> set[int]:
        return {number for number, now in self.records.items() if now == state}

    def _subset(self, data: st.DataObject, choices: set[int]) -> set[int]:
        return data.draw(st.sets(st.sampled_from(sorted(choices)), min_size=1), label="members")

    def _some_chain(self, data: st.DataObject) -> str:
        return batch_chain(data.draw(st.sampled_from(sorted(self.batches)), label="chain"))

    def _journaled(
        self, chain: str, machine: str, before: str, after: str, members: set[int]
    ) -> None:
        self.journal.append(Journaled(chain, machine, before, after, frozenset(members)))

    @staticmethod
    def _stored(connection: Connection, table: Any, key: str) -> dict[int, str]:
        rows = connection.execute(select(table.c[key], table.c.state))
        return {row[0]: row[1] for row in rows}

    def _stored_journal(self, connection: Connection) -> list[Journaled]:
        members = self.ledger.dialect.fetch(
            connection,
            "SELECT move_no, record_no FROM move_members",
            {"move_no": pl.Int64, "record_no": pl.Int64},
        )
        of_move: dict[int, set[int]] = {}
        for move_no, record_no in members.rows():
            of_move.setdefault(move_no, set()).add(record_no)
        return [
            Journaled(
                row.chain,
                row.machine,
                row.from_state,
                row.to_state,
                frozenset(
                    of_move.get(row.move_no, ()) if row.machine == "record" else [row.subject_no]
                ),
            )
            for row in connection.execute(select(moves).order_by(moves.c.move_no))
        ]


def machine_on(ledger: Ledger) -> type[LedgerMachine]:
    """The machine, bound to a database."""
    return type("BoundLedgerMachine", (LedgerMachine,), {"ledger": ledger})


EXAMPLES = {"sqlite": 20, "postgresql": 6}
STEPS = 25


def test_moves_at_random(ledger: Ledger) -> None:
    run_state_machine_as_test(
        machine_on(ledger),
        settings=settings(
            max_examples=EXAMPLES[ledger.dialect.name],
            stateful_step_count=STEPS,
            deadline=None,
        ),
    )
