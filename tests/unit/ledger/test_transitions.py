"""The transition tables: what is legal, that they are whole, and that the page says the same."""

from __future__ import annotations

from itertools import pairwise, product
from pathlib import Path

import pytest

from resources.ledger.schema import batches, canaries, moves, processing_versions, record_state
from resources.ledger.transitions import (
    MACHINES,
    START,
    IllegalTransition,
    Machine,
    as_markdown,
    require_legal,
)

PAIRS = [
    pytest.param(machine, before, after, id=f"{machine}:{before or 'nothing'}-{after or 'nothing'}")
    for machine, table in MACHINES.items()
    for before, after in product([*table, "no_such_state"], repeat=2)
]

# What DESIGN says a thing may live through, told apart from the tables.
LIVES = [
    pytest.param("record", [START, "queued", "prepared", "submitted", "collected", "accepted",
                            "published"], id="record, straight through"),
    pytest.param("record", ["submitted", "retry_wait", "prepared", "submitted"],
                 id="record, retry"),
    pytest.param("record", ["collected", "awaiting_review", "accepted"], id="record, reviewed"),
    pytest.param("record", ["awaiting_review", "rejected"], id="record, rejected"),
    pytest.param("record", ["submitted", "dead_letter", "prepared"], id="record, requeued"),
    pytest.param("record", ["dead_letter", "discarded"], id="record, discarded"),
    pytest.param("record", ["accepted", "superseded"], id="record, superseded"),
    pytest.param("record", ["published", "withdrawn", "queued"], id="record, withdrawn and back"),
    pytest.param("record", ["queued", "cancelled"], id="record, cancelled"),
    pytest.param("batch", [START, "prepared", "submitting", "submitted", "running",
                           "results_available", "reconciling", "completed"],
                 id="batch, straight through"),
    pytest.param("batch", ["submitted", "reconciling", "completed_with_errors"],
                 id="batch, ended early with nothing to fetch"),
    pytest.param("batch", ["running", "results_available", "reconciling", "retry_required"],
                 id="batch, partial output first"),
    pytest.param("batch", ["submitting", "quarantined", "submitted"], id="batch, attached"),
    pytest.param("batch", ["submitting", "quarantined", "cancelled"], id="batch, discarded"),
    pytest.param("batch", ["submitting", "prepared", "submitting"], id="batch, proven absent"),
    pytest.param("batch", ["reconciling", "incident", "reconciling"], id="batch, incident"),
    pytest.param("version", [START, "active", "held", "active", "retired"], id="version"),
    pytest.param("canary", [START, "prepared", "submitting", "submitted", "running",
                            "results_available", "passed", "expired"],
                 id="canary, vouches for a while"),
    pytest.param("canary", ["submitted", "results_available", "failed", "expired"],
                 id="canary, failed and asked for anew"),
    pytest.param("canary", ["submitting", "quarantined", "submitted"], id="canary, attached"),
    pytest.param("canary", ["quarantined", "cancelled"], id="canary, discarded"),
    pytest.param("canary", ["submitting", "prepared", "submitting"], id="canary, proven absent"),
]  # fmt: skip

NEVER = [
    pytest.param("record", START, "published", id="published from nowhere"),
    pytest.param("record", "queued", "submitted", id="submitted without frozen bytes"),
    pytest.param("record", "submitted", "accepted", id="accepted without a reconciled result"),
    pytest.param("record", "collected", "published", id="published without acceptance"),
    pytest.param("record", "awaiting_review", "published", id="published without a review"),
    pytest.param("record", "rejected", "published", id="published although rejected"),
    pytest.param("record", "superseded", "published", id="published although superseded"),
    pytest.param("batch", "prepared", "submitted", id="submitted without a durable intent"),
    pytest.param("batch", "quarantined", "submitting", id="submitted again while in doubt"),
    pytest.param("batch", "running", "completed", id="completed without reconciling"),
    pytest.param("batch", "incident", "completed", id="completed although it does not add up"),
    pytest.param("batch", "completed", "submitting", id="submitted twice"),
    pytest.param("version", START, "held", id="held before its first use"),
    pytest.param("canary", START, "passed", id="a canary that vouches for a call never made"),
    pytest.param("canary", "prepared", "submitted", id="a canary without a durable intent"),
    pytest.param("canary", "running", "passed", id="a canary that passed without its answers"),
    pytest.param("canary", "failed", "passed", id="a canary that passed after it failed"),
    pytest.param("canary", "expired", "passed", id="a canary that vouches again"),
    pytest.param("canary", "quarantined", "submitting", id="a canary sent again while in doubt"),
]

WIDTHS = [
    pytest.param("record", record_state.c.state, id="record"),
    pytest.param("batch", batches.c.state, id="batch"),
    pytest.param("version", processing_versions.c.state, id="version"),
    pytest.param("canary", canaries.c.state, id="canary"),
]


@pytest.mark.parametrize(("machine", "before", "after"), PAIRS)
def test_a_move_is_legal_if_and_only_if_the_table_has_it(
    machine: Machine, before: str, after: str
) -> None:
    if after in MACHINES[machine].get(before, {}):
        require_legal(machine, before, after)
        return
    with pytest.raises(IllegalTransition) as refusal:
        require_legal(machine, before, after)
    assert repr(before or "nothing") in str(refusal.value)
    assert repr(after) in str(refusal.value)
    for allowed in MACHINES[machine].get(before, {}):
        assert allowed in str(refusal.value)


@pytest.mark.parametrize(("machine", "life"), LIVES)
def test_every_life_of_the_design_is_possible(machine: Machine, life: list[str]) -> None:
    for before, after in pairwise(life):
        require_legal(machine, before, after)


@pytest.mark.parametrize(("machine", "before", "after"), NEVER)
def test_short_cuts_are_impossible(machine: Machine, before: str, after: str) -> None:
    with pytest.raises(IllegalTransition):
        require_legal(machine, before, after)


@pytest.mark.parametrize("machine", MACHINES)
def test_every_state_has_a_row_a_reason_and_a_way_to_it(machine: Machine) -> None:
    table = MACHINES[machine]
    reached, waiting = {START}, [START]
    while waiting:
        for after in table[waiting.pop()]:
            if after not in reached:
                reached.add(after)
                waiting.append(after)
    assert reached == set(table)
    assert all(when for targets in table.values() for when in targets.values())
    assert all(START not in targets for targets in table.values())


@pytest.mark.parametrize(
    ("machine", "ends"),
    [
        pytest.param("record", set(), id="record"),
        pytest.param("batch", {"completed", "completed_with_errors", "cancelled"}, id="batch"),
        pytest.param("version", set(), id="version"),
        pytest.param("canary", {"expired", "cancelled"}, id="canary"),
    ],
)
def test_only_these_states_are_final(machine: Machine, ends: set[str]) -> None:
    assert {state for state, targets in MACHINES[machine].items() if not targets} == ends


@pytest.mark.parametrize(("machine", "column"), WIDTHS)
def test_every_state_fits_its_columns(machine: Machine, column: object) -> None:
    for column_of in (column, moves.c.from_state, moves.c.to_state):
        width = column_of.type.length  # pyright: ignore[reportAttributeAccessIssue]
        assert max(map(len, MACHINES[machine])) <= width


def test_the_page_says_what_the_tables_say(repository: Path) -> None:
    page = (repository / "docs" / "transitions.md").read_text(encoding="utf-8")
    assert page == as_markdown(), "docs/transitions.md is out of date: run `make docs`"


def test_the_page_has_every_move() -> None:
    page = as_markdown()
    for table in MACHINES.values():
        for before, targets in table.items():
            for after, when in targets.items():
                assert f"| {before or '–'} | {after} | {when} |" in page
