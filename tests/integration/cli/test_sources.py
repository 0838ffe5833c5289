"""`tallybook sources`: list, scan, waiting, approve, refuse and events, as people type them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from pipeline_assets.cli.app import main
from resources.context import open_context
from resources.ledger.alerts import open_alerts
from resources.ledger.source_events import list_events, record_events
from resources.ledger.source_snapshots import register_source
from resources.settings import load_settings
from tests.support.command import json_lines, one_json

SOURCES = """
sources:
  inbox:
    kind: folder
    path: inbox
    workload: equipment_manuals
    version: manuals-baseline-2
    removed: withdraw
    approval: true
  shelf:
    kind: folder
    path: nowhere
    workload: equipment_manuals
    version: nowhere-1
  drop:
    kind: queue
    transport: folder
    path: events
    workload: equipment_manuals
    documents: {kind: folder, path: inbox}
"""


class Command:
    """Runs commands here and gives exit status, output and errors."""

    def __init__(self, state: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.state = state
        self._capsys = capsys

    def __call__(self, *arguments: str) -> tuple[int, str, str]:
        status = main(["sources", *arguments, "--state", str(self.state)])
        shown = self._capsys.readouterr()
        return status, shown.out, shown.err

    def rows(self, *arguments: str) -> list[dict[str, Any]]:
        """The lines of JSON that a command prints."""
        status, out, err = self(*arguments, "--json")
        assert status == 0, err
        return json_lines(out)


@pytest.fixture
def sources(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Command:
    """Return `tallybook sources` in a folder with three declared sources, one of them there."""
    (tmp_path / "sources.yaml").write_text(SOURCES, encoding="utf-8")
    (tmp_path / "inbox").mkdir()
    (tmp_path / "events").mkdir()
    for name in ("a.txt", "b.txt"):
        (tmp_path / "inbox" / name).write_text(name, encoding="utf-8")
    monkeypatch.setenv("TALLYBOOK_SOURCES", str(tmp_path / "sources.yaml"))
    return Command(tmp_path / "state", capsys)


def test_sources_are_listed_before_anything_was_scanned(sources: Command) -> None:
    rows = {row["name"]: row for row in sources.rows("list")}
    assert list(rows) == ["drop", "inbox", "shelf"]
    assert rows["inbox"]["problems"] == []
    assert (rows["inbox"]["removed"], rows["inbox"]["approval"]) == ("withdraw", True)
    assert (rows["inbox"]["documents"], rows["inbox"]["snapshot_at"]) == (0, None)
    version, place = rows["shelf"]["problems"]
    assert "nowhere-1" in version
    assert place.endswith("nowhere is not there")
    status, out, _ = sources("list")
    assert status == 0
    assert "never scanned" in out
    assert "nowhere is not there" in out


def test_a_file_that_cannot_be_used_is_one_line(sources: Command) -> None:
    sources.state.parent.joinpath("sources.yaml").write_text("sources: {a: {kind: folder}}")
    status, out, err = sources("list")
    assert (status, out) == (1, "")
    assert err.count("\n") == 1
    assert "sources.yaml" in err


def test_a_scan_is_told_and_listed(sources: Command) -> None:
    (report,) = sources.rows("scan", "inbox")
    assert (report["source"], report["snapshot"]["added"], report["read"]) == ("inbox", 2, 2)
    status, out, _ = sources("scan", "inbox")
    assert status == 0
    assert "inbox" in out
    row = next(row for row in sources.rows("list") if row["name"] == "inbox")
    assert (row["documents"], row["waiting"]) == (2, 2)
    assert row["snapshot_at"] is not None


def test_what_was_scanned_and_is_not_declared_any_more_is_listed(sources: Command) -> None:
    sources.rows("scan", "inbox")
    file = sources.state.parent / "sources.yaml"
    file.write_text(SOURCES.replace("  inbox:", "  other:"))
    row = next(row for row in sources.rows("list") if row["name"] == "inbox")
    assert (row["declared"], row["documents"], row["removed"]) == (False, 2, "keep")


def test_a_source_that_does_not_exist_cannot_be_scanned(sources: Command) -> None:
    status, _, err = sources("scan", "elsewhere")
    assert status == 1
    assert "elsewhere" in err


def test_documents_wait_and_are_decided_on(sources: Command) -> None:
    sources.rows("scan", "inbox")
    assert [row["document_id"] for row in sources.rows("waiting")] == ["inbox/a.txt", "inbox/b.txt"]
    status, out, _ = sources("waiting", "--limit", "1")
    assert status == 0
    assert "1 more document not shown" in out
    status, out, _ = sources("approve", "a.txt", "--reason", "read it", "--by", "ann", "--yes")
    assert (status, out) == (0, "1 document approved: inbox/a.txt\n")
    rows = sources.rows(
        "refuse", "--source", "inbox", "--all", "--reason", "r", "--by", "ann", "--yes"
    )
    assert rows == [{"refused": 1, "documents": ["inbox/b.txt"], "with_records": 0}]
    assert sources.rows("waiting") == []
    status, out, _ = sources("waiting")
    assert (status, out) == (0, "No document waits for approval.\n")


def test_a_selection_is_shown_before_it_is_decided(sources: Command) -> None:
    sources.rows("scan", "inbox")
    wish = ("approve", "--source", "inbox", "--all", "--reason", "r")
    status, out, _ = sources(*wish)
    assert status == 3
    assert "2 documents to approve" in out
    status, out, _ = sources(*wish, "--json")
    assert status == 3
    shown = one_json(out)
    assert [name.partition("@")[0] for name in shown["documents"]] == ["inbox/a.txt", "inbox/b.txt"]
    assert len(sources.rows("waiting")) == 2
    status, _, err = sources(*wish, "--confirm", "0" * 12)
    assert status == 1
    assert shown["selection"] in err
    status, _, _ = sources(*wish, "--confirm", shown["selection"])
    assert status == 0
    assert sources.rows("waiting") == []


def test_a_file_of_documents(sources: Command, tmp_path: Path) -> None:
    sources.rows("scan", "inbox")
    file = tmp_path / "list.txt"
    file.write_text("inbox/b.txt\n")
    status, out, _ = sources("refuse", "--documents", str(file), "--reason", "r", "--yes")
    assert (status, out) == (0, "1 document refused: inbox/b.txt\n")


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param((), id="nothing"),
        pytest.param(("a.txt", "--source", "inbox", "--all"), id="two ways"),
        pytest.param(("--source", "inbox"), id="a source without all"),
        pytest.param(("a.txt", "--all"), id="all without a source"),
    ],
)
def test_which_documents_are_meant_must_be_clear(
    sources: Command, arguments: tuple[str, ...]
) -> None:
    status, _, err = sources("approve", *arguments, "--reason", "r", "--yes")
    assert status == 1
    assert "expected one of" in err


def _give_up(sources: Command) -> None:
    """Store an event that was given up, and one that waits."""
    with open_context(load_settings(state=sources.state)) as context:
        ledger = context.ledger
        number = register_source(ledger, "drop", "queue", "events", workload="equipment_manuals")
        events = pl.DataFrame(
            {
                "event_key": ["one", "two"],
                "document_id": ["drop/a.txt", "drop/b.txt"],
                "problem": ["the place cannot be read", None],
            },
            schema={"event_key": pl.String, "document_id": pl.String, "problem": pl.String},
        )
        with ledger.write() as connection:
            record_events(connection, ledger, number, events, "ann")


def _events(sources: Command) -> list[tuple[str, str | None]]:
    with open_context(load_settings(state=sources.state)) as context:
        with context.ledger.read() as connection:
            found = list_events(
                connection, context.ledger, states=("dead", "waiting", "done", "discarded")
            )
        return list(found.select("state", "closed_by").iter_rows())


def test_events_are_listed_tried_again_and_let_go(sources: Command) -> None:
    _give_up(sources)
    rows = sources.rows("events")
    assert [(row["event_no"], row["state"], row["owner"]) for row in rows] == [
        (1, "dead", "ann"),
        (2, "waiting", None),
    ]
    status, out, _ = sources("events", "--source", "drop")
    assert status == 0
    assert "the place cannot be read" in out
    status, out, _ = sources("events", "retry", "1", "--reason", "it is back", "--by", "ann")
    assert (status, out) == (0, "1 event retried.\n")
    assert _events(sources) == [("waiting", "ann"), ("waiting", None)]
    status, out, _ = sources("events", "discard", "1", "2", "--reason", "old", "--by", "bob")
    assert (status, out) == (0, "2 events discarded.\n")
    assert _events(sources) == [("discarded", "bob"), ("discarded", "bob")]
    status, out, _ = sources("events")
    assert (status, out) == (0, "No event waits, and none was given up.\n")
    with open_context(load_settings(state=sources.state)) as context:
        assert open_alerts(context.ledger) == []


def test_all_events_of_a_source_that_were_given_up(sources: Command) -> None:
    _give_up(sources)
    status, out, _ = sources(
        "events", "discard", "--source", "drop", "--all", "--reason", "old", "--json"
    )
    assert (status, json.loads(out)) == (0, {"discarded": 1, "events": [1]})


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(("retry",), id="nothing"),
        pytest.param(("retry", "2"), id="one that waits"),
        pytest.param(("discard", "7"), id="one that does not exist"),
        pytest.param(("discard", "1", "--all"), id="two ways"),
        pytest.param(("discard", "--source", "drop"), id="a source without all"),
        pytest.param(("discard", "--source", "inbox", "--all"), id="a source without events"),
    ],
)
def test_which_events_are_meant_must_be_clear(sources: Command, arguments: tuple[str, ...]) -> None:
    _give_up(sources)
    before = _events(sources)
    status, _, err = sources("events", *arguments, "--reason", "r")
    assert status == 1
    assert "Nothing was changed" in err
    assert _events(sources) == before
