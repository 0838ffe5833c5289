"""A process that dies at any statement leaves all of its work or nothing, and is started again."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from pipeline_assets.publish.completeness import incomplete_entries
from resources.ledger.leases import LEASE_SECONDS
from resources.ledger.schema import archive_entries, deliveries
from tests.integration.publish.killing import (
    OPERATIONS,
    Executioner,
    Killed,
    watched,
)
from tests.integration.publish.support import BOTH, FAN, ONE, PUMP, TWO, Stall
from tests.integration.stages.support import manual
from tests.support.dying_forks import DyingForks, dying_forks

PUMP_ID, FAN_ID = f"shop/{PUMP}", f"shop/{FAN}"
ALL_ONE: dict[str, str] = dict.fromkeys(BOTH, ONE)
ALL_TWO: dict[str, str] = dict.fromkeys(BOTH, TWO)
LEAST_STATEMENTS = 25
"""Far below what each operation sends: a count that fell under it would miss the bulk ones."""


@pytest.fixture(scope="module")
def killer() -> Iterator[DyingForks]:
    """Return a program whose forks are killed."""
    with dying_forks("tests.integration.publish.killing") as program:
        yield program


def _ready(stall: Stall, operation: str) -> None:
    """Everything that the operation needs, so that it has something of each kind to do."""
    stall.run(ONE)
    if operation == "publish":
        # One document has an earlier entry, of another version; the other has none.
        stall.rollback_document(FAN_ID)
        stall.accept(TWO)
        return
    stall.run(TWO)
    if operation == "promote":
        stall.rollback(TWO)
        stall.write("saw.txt", manual("Band Saw", "BS-300"))
        stall.accept(TWO)
        stall.decide(
            stall.record_of(PUMP_ID, TWO), "correct", title="Corrected", kind="quality_sample"
        )
        return
    # The second document showed nothing before.
    stall.rollback_document(FAN_ID, to=1)
    stall.rollback_document(FAN_ID)
    stall.rollback_document(FAN_ID, to=2)
    stall.write("saw.txt", manual("Band Saw", "BS-300"))
    stall.run(TWO)


EXPECTED = {
    "publish": (ALL_TWO, [(2, 1)]),
    "promote": (ALL_TWO | {"shop/saw.txt": TWO}, [(4, 3)]),
    "rollback": ({PUMP_ID: ONE, FAN_ID: ONE}, [(2, 2), (0, 1)]),
}
"""What is shown in the end, and how much each new change showed and ended."""


@pytest.mark.parametrize("operation", list(OPERATIONS))
def test_dying_at_every_statement(stall: Stall, operation: str) -> None:
    _ready(stall, operation)
    stall.clock.advance(1)
    before, changes = stall.facts(), len(stall.changes())
    version = stall.version(TWO)
    die_at = 0
    while True:
        die_at += 1
        try:
            with watched(stall.context, Executioner(die_at)):
                OPERATIONS[operation](stall.context, version)
        except Killed:
            facts = stall.facts()
            if facts != before:
                assert stall.shown() == EXPECTED[operation][0]
                assert incomplete_entries(stall.context).is_empty()
        else:
            break
    assert die_at > LEAST_STATEMENTS
    _require_once(stall, operation, changes)


def _require_once(stall: Stall, operation: str, changes_before: int) -> None:
    shown, changes = EXPECTED[operation]
    assert stall.shown() == shown
    assert [(show, hide) for _, show, hide in stall.changes()[changes_before:]] == changes
    stall.require_whole()
    with stall.context.ledger.read() as connection:
        entries = connection.execute(archive_entries.select()).all()
        keys = connection.execute(deliveries.select()).all()
    assert len({key.entry_no for key in keys}) == len(keys) == len(entries)
    after = stall.facts()
    OPERATIONS[operation](stall.context, stall.version(TWO))
    assert stall.facts() == after


@pytest.mark.slow
@pytest.mark.parametrize("operation", list(OPERATIONS))
def test_a_process_that_is_killed(stall: Stall, killer: DyingForks, operation: str) -> None:
    _ready(stall, operation)
    stall.clock.advance(1)
    before, changes = stall.facts(), len(stall.changes())
    for statement in (LEAST_STATEMENTS // 4 * part for part in (1, 2, 3, 4)):
        assert _killed_at(killer, stall, operation, statement) == signal.SIGKILL
        assert stall.facts() == before or stall.shown() == EXPECTED[operation][0]
        assert incomplete_entries(stall.context).is_empty()
        # Nobody gave the dead process's lease back.
        stall.clock.advance(LEASE_SECONDS + 1)
    OPERATIONS[operation](stall.context, stall.version(TWO))
    _require_once(stall, operation, changes)


def _killed_at(reaper: DyingForks, stall: Stall, operation: str, statement: int) -> int:
    """Let another process do it, and kill it at a statement; returns the signal."""
    settings = stall.context.settings
    return reaper.die(
        operation=operation,
        die_at=statement,
        now=stall.clock().isoformat(),
        state=str(settings.state_folder),
        specs=str(settings.specs),
        ledger_url=settings.ledger_url,
    )
