"""What the ledger says of documents that a version has not dealt with; what looks cost."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import cast

import pytest

from pipeline_assets.automation import source_work
from pipeline_assets.automation.new_files import Remembered, Waiting, decide_sources
from pipeline_assets.automation.source_work import look_at_sources
from pipeline_assets.ingest.scan import scan_declared
from resources.ledger.approvals import Decision, record, standing_of
from resources.ledger.moves import Cause
from resources.ledger.versions import set_operating
from tests.integration.automation.support import Desk
from tests.integration.replay.support import ONE, TWO

CAUSE = Cause("for the test", "tester", "2030-01-02T03:04:05.000000Z", "test")


def decide(desk: Desk, decision: str, *documents: str) -> None:
    """Approve or refuse what the documents hold now."""
    ledger = desk.context.ledger
    with ledger.write() as connection:
        numbers = standing_of(connection, ledger, documents)["source_version_no"]
        record(connection, ledger, numbers, cast(Decision, decision), "for the test", "tester")


def test_what_was_scanned_by_hand_is_pending(desk: Desk) -> None:
    desk.drop("pump.txt", "WP-100")
    desk.drop("fan.txt", "VF-20")
    scan_declared(desk.context)
    found = desk.found()
    assert found.look is not None
    assert not found.look.anything
    assert found.pending.documents == 2
    desk.process()
    assert desk.found().pending == Waiting()


def test_what_the_version_excludes_is_dealt_with(desk: Desk) -> None:
    desk.drop("pump.txt", "WP-100")
    desk.drop("copy.txt", "WP-100")
    (desk.folder / "empty.txt").write_bytes(b"")
    desk.process()
    assert desk.found().pending == Waiting()


def test_another_version_in_the_declaration_has_everything_before_it(desk: Desk) -> None:
    desk.drop("pump.txt", "WP-100")
    desk.process()
    desk.declare("shop", version=TWO)
    assert desk.found().pending.documents == 1


def test_the_mark_is_that_of_the_documents(desk: Desk) -> None:
    desk.drop("pump.txt", "WP-100")
    scan_declared(desk.context)
    before = desk.found().pending
    assert desk.found().pending == before
    desk.drop("fan.txt", "VF-20")
    scan_declared(desk.context)
    assert desk.found().pending.mark != before.mark


def test_documents_that_need_approval(desk: Desk) -> None:
    desk.declare("shop", approval=True)
    desk.drop("pump.txt", "WP-100")
    desk.drop("fan.txt", "VF-20")
    desk.process()
    assert desk.found().pending == Waiting(), "they wait for a person"
    decide(desk, "refused", "shop/fan.txt")
    assert desk.found().pending == Waiting()
    decide(desk, "approved", "shop/pump.txt")
    assert desk.found().pending.documents == 1
    desk.process()
    assert desk.found().pending == Waiting()
    desk.declare("shop", approval=False)
    assert desk.found().pending.documents == 1, "nobody has to approve it any more"


def test_documents_outside_of_the_scope(desk: Desk) -> None:
    desk.drop("pump.txt", "WP-100")
    version = desk.version(ONE)
    set_operating(desk.context.ledger, version.version_no, "scope", "replays", CAUSE)
    desk.process()
    assert desk.found().pending == Waiting()
    set_operating(desk.context.ledger, version.version_no, "scope", "all", CAUSE)
    assert desk.found().pending.documents == 1


def test_removed_documents_that_are_still_shown(desk: Desk) -> None:
    desk.declare("shop", removed="withdraw")
    path = desk.drop("pump.txt", "WP-100")
    desk.process()
    assert desk.found().withdrawal == Waiting()
    path.unlink()
    scan_declared(desk.context)
    assert desk.found().withdrawal.documents == 1
    desk.declare("shop", removed="keep")
    assert desk.found().withdrawal == Waiting()


def test_the_ledger_is_not_asked_again_while_nothing_was_written(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.drop("pump.txt", "WP-100")
    desk.process()
    memory = decide_sources(desk.look().found, {}, 1.0, busy=()).memory
    asked: list[str] = []
    whole = source_work._sums

    def counted(connection: object, ledger: object, rest: str, parameters: object) -> Waiting:
        asked.append(rest)
        return whole(connection, ledger, rest, parameters)  # type: ignore[arg-type]

    monkeypatch.setattr(source_work, "_sums", counted)
    assert desk.look(memory).found[0].pending == Waiting()
    assert asked == []
    desk.declare("shop", approval=True)
    desk.look(memory)
    assert len(asked) == 1, "declared otherwise"
    desk.declare("shop")
    desk.drop("fan.txt", "VF-20")
    scan_declared(desk.context)
    assert desk.look(memory).found[0].pending.documents == 1


def test_who_was_looked_at_longest_ago_comes_first_and_the_rest_is_left(desk: Desk) -> None:
    desk.declare("shop", "north", "south")
    (desk.root / "north").mkdir()
    (desk.root / "south").mkdir()
    memory = {
        "shop": Remembered(looked_at=3.0),
        "north": Remembered(looked_at=1.0),
        "south": Remembered(looked_at=2.0),
    }
    seconds = iter(float(second) for second in range(100))
    work = look_at_sources(desk.context, memory, budget_seconds=3, monotonic=lambda: next(seconds))
    assert [found.source for found in work.found] == ["north"]
    assert work.left == ["south", "shop"]


def test_a_table_has_to_hold_still_as_a_whole(desk: Desk) -> None:
    file = desk.root / "rows.csv"
    file.write_text("id,text\n1,first\n2,second\n")
    desk.context.settings.sources_file.write_text(
        "sources:\n  rows:\n    kind: table\n    path: rows.csv\n    key: id\n    text: [text]\n"
        f"    workload: equipment_manuals\n    version: {ONE}\n"
    )
    then = time.time() - 30
    memory = {"rows": Remembered(looked_at=then, listed_at=then)}

    def asked() -> bool:
        return bool(decide_sources(desk.look(memory).found, memory, 1.0, busy=()).runs)

    desk.age(file, 20)
    assert not asked(), "its rows have no age, and the file changed since the look before"
    desk.age(file, 40)
    assert asked()


def test_a_version_of_another_workload_is_told(desk: Desk) -> None:
    text = desk.context.settings.sources_file.read_text()
    desk.context.settings.sources_file.write_text(
        text.replace("workload: equipment_manuals", "workload: support_tickets")
    )
    work = desk.look()
    assert work.found == []
    assert "is of workload 'equipment_manuals'" in work.unusable["shop"]


def test_a_retired_version_is_told(desk: Desk) -> None:
    from resources.ledger.moves import move_version

    version = desk.version(ONE)
    ledger = desk.context.ledger
    with ledger.write() as connection:
        move_version(connection, ledger.dialect, version.version_no, "active", "retired", CAUSE)
    assert "is retired" in desk.look().unusable["shop"]


def test_what_a_look_remembers_is_not_lost_by_a_failure(desk: Desk) -> None:
    before = {"gone": Remembered(looked_at=1.0, listed_at=1.0, mark="m")}
    desk.declare("gone")
    work = desk.look(before)
    after = decide_sources(work.found, before, 9.0, (), work.unreadable).memory
    assert after == {"gone": replace(before["gone"], looked_at=9.0)}


def test_events_of_a_queue(desk: Desk) -> None:
    events = desk.root / "events"
    events.mkdir()
    desk.context.settings.sources_file.write_text(
        "sources:\n  drop:\n    kind: queue\n    transport: folder\n    path: events\n"
        "    documents:\n      kind: folder\n      path: documents\n"
        f"    workload: equipment_manuals\n    version: {ONE}\n"
    )
    path = desk.drop("pump.txt", "WP-100", age=1)

    def why() -> list[tuple[str, ...]]:
        return [run.why for run in decide_sources(desk.look().found, {}, 1.0, busy=()).runs]

    assert why() == []
    (events / "1.json").write_text('{"document": "pump.txt"}')
    assert why() == [], "the event waits with its document, which is still being written"
    desk.age(path, 60)
    assert why() == [("event", "new")]
    desk.process()
    assert desk.shown() == {"drop/pump.txt": ONE}
    assert why() == []
    (events / "2.json").write_text('{"document": "pump.txt"}')
    assert why() == [("event",)], "it names what is known, and is closed by a scan"
    desk.process()
    assert why() == []
    assert look_at_sources(desk.context, {}, budget_seconds=10).left == ["drop"], "too little time"
