"""One archive with entries of two workloads, and of one that was taken away since.

Manuals and made-up notes are written as the archive's own transactions write them; readers and
writers are the real ones.
"""

from __future__ import annotations

import csv
import io
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow.parquet as pq
import pytest

from pipeline_assets.account.export import export_entries, exported_workload
from pipeline_assets.account.known_workload import SeveralWorkloads, WorkloadNeverUsed
from pipeline_assets.account.published import published_entry
from pipeline_assets.account.representations import rebuild_search_entries
from pipeline_assets.account.search import search
from pipeline_assets.cli.app import main
from pipeline_assets.compare.compare import (
    OtherWorkload,
    UnclearCondition,
    compare_versions,
)
from pipeline_assets.compare.html import page_of
from pipeline_assets.outlets.payload import message_of
from pipeline_assets.publish.rollback import rollback_document
from pipeline_assets.workloads.fields import searched_of
from pipeline_assets.workloads.registry import UnknownWorkload
from resources.context import Context, open_context
from resources.ledger.archive_changes import record_change
from resources.ledger.archive_visibility import hide_records
from resources.ledger.schema import record_state
from resources.settings import Settings, load_settings
from tests.support.archive_shelf import FIRST, Shelf, content
from tests.support.clock import FrozenClock
from tests.support.command import json_lines, one_json
from tests.support.made_up_workload import NOTES, Installed, install, note

MANUALS = "equipment_manuals"
V1, V2 = "notes-1", "notes-2"
PUMP, LUNCH, TALK = "manuals/pump", "notes/lunch", "notes/talk"


@pytest.fixture
def notes(monkeypatch: pytest.MonkeyPatch) -> Installed:
    """Return whether the workload of the notes can be found; at first it can."""
    return install(monkeypatch)


def fill(shelf: Shelf) -> None:
    """A manual, a note that was corrected by a second version, and one of the first alone."""
    shelf.put(PUMP, content("Pump manual", ("WP-100",), description="Pumps water at lunch"))
    shelf.put(LUNCH, note("Lunch at noon", people=("Ada", "Kim")), version=V1, workload=NOTES)
    shelf.put(LUNCH, note("Lunch at one", "memo", ("Ada",)), version=V2, workload=NOTES)
    shelf.put(TALK, note("Talk", "call", ("Kim",)), version=V1, workload=NOTES)
    publish_all(shelf.context)


def publish_all(context: Context) -> None:
    """Only what is published is shown again."""
    with context.ledger.write() as connection:
        for (number,) in connection.exec_driver_sql("SELECT record_no FROM records").all():
            connection.execute(
                record_state.insert().values(
                    record_no=number, state="published", version=1, shard=0
                )
            )
    rebuild_search_entries(context)


@pytest.fixture
def shelf(ledger_url: str, tmp_path: Path, notes: Installed) -> Iterator[Shelf]:
    """Return the archive; the test may change it."""
    clock = FrozenClock()
    settings = Settings(state=tmp_path / "state", ledger_url=ledger_url)
    with open_context(settings, clock=clock, rng=random.Random(3)) as context:
        made = Shelf(context, clock)
        fill(made)
        yield made


@pytest.fixture
def state(tmp_path: Path, notes: Installed) -> Path:
    """Return the state folder of the same archive."""
    folder, clock = tmp_path / "state", FrozenClock()
    with open_context(load_settings(state=folder), clock=clock) as context:
        fill(Shelf(context, clock))
    return folder


def found(context: Context, text: str, **more: Any) -> list[str]:
    return sorted(hit.document_id for hit in search(context, text, **more))


def test_entries_of_each_workload_are_found_by_their_own_fields(shelf: Shelf) -> None:
    context = shelf.context
    assert found(context, "lunch") == [PUMP, LUNCH]
    assert found(context, "lunch", workload=NOTES) == [LUNCH]
    assert found(context, "manual", product="wp 100") == [PUMP]
    assert found(context, "lunch", product="wp 100") == [PUMP]
    assert found(context, "lunch", language="DE") == [LUNCH]
    assert found(context, "call") == [], "the kind of a note is not searched"
    with pytest.raises(WorkloadNeverUsed, match=f"used so far: {MANUALS}, {NOTES}"):
        search(context, "lunch", workload="invoices")
    (hit,) = search(context, "talk")
    assert (hit.workload, hit.label, hit.title) == (NOTES, "Subject", "Talk")
    assert (hit.identifiers, hit.language, hit.snippet) == ((), "de", "[Talk]")


def test_what_comes_back_is_found_again(shelf: Shelf) -> None:
    """A note goes back to its earlier values, once by command and once because of a rejection."""
    context = shelf.context
    assert found(context, "noon") == []
    report = rollback_document(context, _document(context, LUNCH), LUNCH, "a test", trial=False)
    assert report.put_back == 1
    assert (found(context, "noon"), found(context, "one")) == ([LUNCH], [])
    assert published_entry(context, LUNCH)["subject"]["value"] == "Lunch at noon"
    shelf.put(LUNCH, note("Lunch at two"), version=V2, workload=NOTES)
    rebuild_search_entries(context)
    with context.ledger.write() as connection:
        change = record_change(
            connection, "removal", None, "wrong", "a test", context.ledger.now(), 0, 0
        )
        records = pl.Series([_record(context, LUNCH, V2)])
        searched = searched_of(context.settings)
        assert hide_records(connection, context.ledger, records, change, searched) == 1
    assert (found(context, "noon"), found(context, "two")) == ([LUNCH], [])


def _document(context: Context, document_id: str) -> int:
    return _number(context, "SELECT document_no FROM documents WHERE document_id = ?", document_id)


def _record(context: Context, document_id: str, version: str) -> int:
    return _number(
        context,
        "SELECT r.record_no FROM records r JOIN documents d ON d.document_no = r.document_no "
        "JOIN processing_versions v ON v.version_no = r.version_no "
        "WHERE d.document_id = ? AND v.key = ?",
        document_id,
        version,
    )


def _number(context: Context, query: str, *values: str) -> int:
    with context.ledger.read() as connection:
        rows = context.ledger.dialect.fetch(connection, query, {"number": pl.Int64}, values)
    return int(rows.item())


def test_rows_carry_the_fields_of_their_own_workload(shelf: Shelf) -> None:
    rows = {row["document_id"]: row for row in export_entries(shelf.context)}
    before, behind = ["document_id", "archive_version", "record_id", "workload"], ["thumbnail"]
    for document, workload, fields in (
        (PUMP, MANUALS, ["title", "product_identifiers", "language", "description"]),
        (TALK, NOTES, ["subject", "kind", "people", "tongue"]),
    ):
        row = rows[document]
        assert list(row)[: 5 + len(fields)] == [*before, *fields, *behind]
        assert row["workload"] == row["provenance"]["workload"] == workload
    assert [row["document_id"] for row in export_entries(shelf.context, workload=NOTES)] == [
        LUNCH,
        TALK,
    ]
    with pytest.raises(WorkloadNeverUsed):
        list(export_entries(shelf.context, workload="invoices"))


def test_a_table_is_of_one_workload(shelf: Shelf) -> None:
    context = shelf.context
    with pytest.raises(SeveralWorkloads, match=f"{MANUALS}, {NOTES}.*--workload"):
        exported_workload(context)
    assert exported_workload(context, workload=NOTES) == NOTES
    assert exported_workload(context, V1) == NOTES
    assert exported_workload(context, FIRST) == MANUALS
    shelf.remove(PUMP)
    assert exported_workload(context) == NOTES, "the only one that is shown"
    shelf.remove(LUNCH)
    shelf.remove(TALK)
    assert exported_workload(context) == MANUALS, "nothing is shown: the source folder's"


def test_outlets_are_told_the_fields_and_their_workload(shelf: Shelf) -> None:
    rows = {row["document_id"]: row for row in export_entries(shelf.context)}
    due = {
        "idempotency_key": "k",
        "effect": "put",
        "change": "publish",
        "document_id": TALK,
        "archive_version": 1,
        "record_id": "r",
    }
    told = json.loads(message_of(due, rows[TALK]).body)
    assert (told["workload"], told["fields"]) == (NOTES, note("Talk", "call", ("Kim",)))
    removal = json.loads(message_of(due | {"effect": "remove", "valid_to": "t"}, rows[TALK]).body)
    assert (removal["workload"], "fields" in removal) == (NOTES, False)


def test_versions_of_one_workload_are_compared_by_its_fields(shelf: Shelf) -> None:
    context = shelf.context
    result = compare_versions(context, V1, V2, where=["people=changed"])
    assert (result.workload, result.both, result.changed) == (NOTES, 1, 1)
    assert {name: counts["changed"] for name, counts in result.fields.items()} == {
        "subject": 1,
        "kind": 0,
        "people": 1,
        "tongue": 0,
    }
    (listed,) = result.listed
    assert (listed.first["people"], listed.second["people"]) == (["Ada", "Kim"], ["Ada"])
    page = "".join(page_of(result, "today"))
    assert "Kind of note" in page
    assert "Product identifiers" not in page
    with pytest.raises(UnclearCondition, match=r"\(subject, kind, people, tongue\)"):
        compare_versions(context, V1, V2, where=["title=changed"])
    with pytest.raises(OtherWorkload, match=f"{FIRST} is of workload {MANUALS}"):
        compare_versions(context, FIRST, V2)


def test_what_was_taken_away_is_still_read(shelf: Shelf, notes: Installed) -> None:
    context = shelf.context
    notes.there = False
    (hit,) = search(context, "talk")
    assert (hit.label, hit.title, hit.identifiers, hit.language) == ("Subject", "Talk", (), None)
    assert hit.snippet == "[Talk]"
    rows = {row["document_id"]: row for row in export_entries(context)}
    assert rows[TALK]["people"][0]["value"] == "Kim"
    assert published_entry(context, LUNCH)["subject"]["value"] == "Lunch at one"


def test_what_was_taken_away_is_not_written(shelf: Shelf, notes: Installed) -> None:
    context = shelf.context
    notes.there = False
    with pytest.raises(UnknownWorkload):
        rollback_document(context, _document(context, LUNCH), LUNCH, "a test")
    with pytest.raises(UnknownWorkload):
        compare_versions(context, V1, V2)
    with context.ledger.write() as connection:
        connection.exec_driver_sql("DELETE FROM archive_search")
    with pytest.raises(UnknownWorkload):
        rebuild_search_entries(context)
    assert published_entry(context, LUNCH)["subject"]["value"] == "Lunch at one"
    notes.there = True
    assert rebuild_search_entries(context) == 3


def test_an_erased_content_has_no_fields(shelf: Shelf) -> None:
    """Nothing is left of it but its place; readers take it for an entry without values."""
    context = shelf.context
    shelf.put("notes/erased", {}, version=V1, workload=NOTES)
    rebuild_search_entries(context)
    row = published_entry(context, "notes/erased")
    assert not set(row) & {"subject", "kind", "people", "tongue"}


class Command:
    """Runs `tallybook` here on the mixed archive."""

    def __init__(self, state: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._state = state
        self._capsys = capsys

    def __call__(self, *words: object, status: int = 0) -> str:
        found = main([*map(str, words), "--state", str(self._state)])
        shown = self._capsys.readouterr()
        assert found == status, shown.err
        return shown.out if status == 0 else shown.err


@pytest.fixture
def tallybook(state: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    """Return the command on the mixed archive."""
    return Command(state, capsys)


def test_search_and_show_on_a_terminal(tallybook: Command, notes: Installed) -> None:
    assert "Talk\n  notes/talk  de\n" in tallybook("search", "talk")
    hits = json_lines(tallybook("search", "lunch", "--workload", NOTES, "--json"))
    assert [(hit["document_id"], hit["workload"]) for hit in hits] == [(LUNCH, NOTES)]
    assert "used so far" in tallybook("search", "lunch", "--workload", "invoices", status=1)
    shown = tallybook("show", TALK)
    assert shown.startswith("\nTalk\n")
    assert "Kind of note\n  call  (found)" in shown
    assert "People\n  Kim  (found)" in shown
    assert one_json(tallybook("show", TALK, "--json"))["workload"] == NOTES
    notes.there = False
    assert "Kind\n  call  (found)" in tallybook("show", TALK)


def test_tables_on_the_command_line(tallybook: Command, notes: Installed, tmp_path: Path) -> None:
    assert "--workload" in tallybook("export", "--format", "csv", status=1)
    shown = tallybook("export", "--format", "csv", "--workload", NOTES)
    rows = list(csv.DictReader(io.StringIO(shown, newline="")))
    assert [(row["subject"], row["people"]) for row in rows] == [
        ("Lunch at one", "Ada"),
        ("Talk", "Kim"),
    ]
    assert rows[0]["kind_status"] == "found"
    file = tmp_path / "x.parquet"
    tallybook("export", "--out", file, "--workload", NOTES)
    table = pq.read_table(file)
    assert table.column_names[3:7] == ["subject", "kind", "people", "tongue"]
    assert table.column("people").to_pylist()[1][0]["value"] == "Kim"
    assert len(json_lines(tallybook("export"))) == 3
    notes.there = False
    assert len(json_lines(tallybook("export", "--workload", NOTES))) == 2
    assert NOTES in tallybook("export", "--format", "csv", "--workload", NOTES, status=1)
