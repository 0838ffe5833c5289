"""`tallybook dead-letter` and what `doctor` says of dead letters, as a person reads them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import delete

from pipeline_assets.ingest import parse_documents
from resources.context import open_context
from resources.ledger.schema import dead_letters
from resources.settings import load_settings
from tests.integration.stages.support import InProcessPool, Shop
from tests.support.given_up import walk_to_dead_letters
from tests.support.terminal import StateTerminal

SCRIPT = ["well", "refused", "refused", "conflict"]


@pytest.fixture
def given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a state folder with three dead letters."""
    monkeypatch.setattr(parse_documents, "ParserPool", InProcessPool)
    (tmp_path / "documents").mkdir()
    settings = load_settings(
        state=tmp_path / "state",
        source=tmp_path / "documents",
        source_name="shop",
        parser_workers=1,
    )
    with open_context(settings) as context:
        walk_to_dead_letters(Shop(settings.source_folder, context), monkeypatch, SCRIPT)
    return tmp_path / "state"


class Terminal(StateTerminal):
    """Runs commands on one state folder and keeps what they print."""

    def letters(self, *words: str, status: int = 0) -> str:
        """Run a `dead-letter` command."""
        return self.run("dead-letter", *words, status=status)

    def rows(self, *words: str) -> list[dict[str, Any]]:
        """Run a `dead-letter` command with --json; return the objects."""
        return [json.loads(line) for line in self.letters(*words, "--json").splitlines()]


@pytest.fixture
def terminal(given_up: Path, capsys: pytest.CaptureFixture[str]) -> Terminal:
    """Return a terminal at the state folder with three dead letters."""
    return Terminal(given_up, capsys)


def test_the_list_says_which_why_whose_and_how_old(terminal: Terminal) -> None:
    shown = terminal.letters("list")
    assert "3 dead letters of manuals-baseline-2" in shown
    (line,) = [row for row in shown.splitlines() if row.strip().startswith("shop/m3.txt")]
    for part in ("duplicate_conflict", "several lines with different bytes", "operators", "0.0 h"):
        assert part in line
    assert "dead-letter show shop/m1.txt" in shown
    one_class = terminal.letters("list", "--class", "duplicate_conflict")
    assert "shop/m1.txt" not in one_class
    assert "1 dead letter of manuals-baseline-2" in one_class


def test_groups_show_the_largest_cause_first(terminal: Terminal) -> None:
    shown = terminal.letters("list", "--group").splitlines()
    (first, second) = [row for row in shown if "shop/" in row]
    assert "invalid_request" in first
    assert "shop/m1.txt, shop/m2.txt" in first
    assert "duplicate_conflict" in second
    counts = [(row["letters"], row["failure_class"]) for row in terminal.rows("list", "--group")]
    assert counts == [(2, "invalid_request"), (1, "duplicate_conflict")]


def test_the_list_for_machines_points_at_the_answer(terminal: Terminal) -> None:
    rows = terminal.rows("list")
    assert [row["document_id"] for row in rows] == ["shop/m1.txt", "shop/m2.txt", "shop/m3.txt"]
    assert rows[0]["failure_class"] == "invalid_request"
    assert (rows[0]["owner"], rows[0]["attempts"]) == ("operators", 1)
    assert len(rows[0]["result_artifact"]) == 64
    assert rows[0]["line_length"] > 0


def test_one_of_them_in_full(terminal: Terminal) -> None:
    shown = terminal.letters("show", "m3.txt")
    for part in (
        "shop/m3.txt",
        "Given up",
        "Attempt 1",
        "duplicate_conflict",
        "(duplicate_conflict)",
        "bytes from",
        "explain shop/m3.txt",
    ):
        assert part in shown
    assert "Grinder" not in shown
    (row,) = terminal.rows("show", "m3.txt")
    assert len(row["lines"]) == 2
    assert terminal.rows("show", row["record_id"]) == [row]


def test_discarding_says_how_many_and_leaves_the_list(terminal: Terminal) -> None:
    shown = terminal.letters(
        "discard", "--class", "invalid_request", "--reason", "scans of nothing"
    )
    assert shown == "2 dead letters discarded: shop/m1.txt, shop/m2.txt\n"
    assert [row["document_id"] for row in terminal.rows("list")] == ["shop/m3.txt"]
    history = terminal.letters("show", "m1.txt")
    for part in ("Given up, and settled", "discarded", "scans of nothing"):
        assert part in history
    assert terminal.rows("discard", "--all", "--reason", "the rest") == [
        {"discarded": 1, "documents": ["shop/m3.txt"]}
    ]
    assert terminal.letters("list") == "manuals-baseline-2 has no such dead letter.\n"


def test_assigning_changes_the_owner(terminal: Terminal) -> None:
    shown = terminal.letters("assign", "m1.txt", "m2.txt", "--owner", "Ada")
    assert shown == "2 dead letters assigned: shop/m1.txt, shop/m2.txt\n"
    owners = [row["owner"] for row in terminal.rows("list")]
    assert owners == ["Ada", "Ada", "operators"]


def test_requeueing_says_where_they_went_and_how_to_send_them(terminal: Terminal) -> None:
    shown = terminal.letters("requeue", "m1.txt", "--reason", "the limit was raised")
    assert "1 dead letter requeued in 1 batch of manifest manuals-baseline-2-m2." in shown
    assert "run --version manuals-baseline-2" in shown
    assert [row["document_id"] for row in terminal.rows("list")] == ["shop/m2.txt", "shop/m3.txt"]
    history = terminal.letters("show", "m1.txt")
    assert "Attempt 2" in history
    assert "the limit was raised" in history


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        pytest.param(
            ["discard", "--all", "--reason", " "], 1, "found an empty reason", id="empty-reason"
        ),
        pytest.param(
            ["requeue", "--all", "--reason", ""], 1, "why they are requeued", id="requeue-no-reason"
        ),
        pytest.param(["discard", "--all"], 2, "Missing option '--reason'", id="no-reason"),
        pytest.param(
            ["discard", "--reason", "x"], 1, "found nothing to choose by", id="no-selection"
        ),
        pytest.param(
            ["requeue", "m1.txt", "--all", "--reason", "x"],
            1,
            "found documents and --all to choose by",
            id="two-selections",
        ),
        pytest.param(
            ["discard", "m0.txt", "--reason", "x"],
            1,
            "'m0.txt': not among the dead letters of manuals-baseline-2",
            id="not-a-dead-letter",
        ),
        pytest.param(
            ["requeue", "--class", "timeout", "--reason", "x"],
            1,
            "the classes here are duplicate_conflict, invalid_request",
            id="unknown-class",
        ),
        pytest.param(
            ["assign", "m1.txt", "--owner", " "], 1, "found an owner of 0 characters", id="no-owner"
        ),
        pytest.param(["show", "m0.txt"], 1, "tallybook explain DOCUMENT", id="show-another"),
        pytest.param(
            ["list", "--version", "other-1"], 1, "nothing was processed under", id="other-version"
        ),
    ],
)
def test_what_is_refused_is_one_line(
    words: list[str], status: int, said: str, terminal: Terminal
) -> None:
    before = terminal.rows("list")
    assert terminal.letters(*words, status=status) == ""
    assert said in terminal.told
    assert terminal.told.count("\n") == 1
    assert terminal.rows("list") == before


def test_doctor_tells_of_dead_letters_and_stays_at_zero(
    terminal: Terminal, given_up: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipeline_assets.cli.doctor._parser", list)
    monkeypatch.setattr("pipeline_assets.cli.doctor._leftover_runs", lambda _: [])
    shown = terminal.run("doctor")
    assert shown.startswith("Nothing is broken.\n\nNot broken, and to be looked at:\n")
    assert "dead_letters: 3 dead letters of manuals-baseline-2 wait for their owner" in shown
    with (
        open_context(load_settings(state=given_up)) as context,
        context.ledger.write() as connection,
    ):
        connection.execute(delete(dead_letters))
    assert "3 dead letters have no entry of their own" in terminal.run("doctor", status=1)
    assert "mended: manuals-baseline-2: 3 dead letters have no entry" in terminal.run(
        "doctor", "--fix"
    )
    (problem,) = [json.loads(line) for line in terminal.run("doctor", "--json").splitlines()]
    assert (problem["kind"], problem["broken"], problem["mended"]) == ("dead_letters", False, False)
