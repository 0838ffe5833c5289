"""`tallybook quality`, and what `status` and `report` say of the sample."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update

from pipeline_assets.ingest import parse_documents
from resources.context import open_context
from resources.ledger.schema import reviews
from resources.settings import load_settings
from tests.integration.stages.support import InProcessPool, Shop
from tests.support.terminal import StateTerminal


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a state folder with two published documents."""
    monkeypatch.setattr(parse_documents, "ParserPool", InProcessPool)
    (tmp_path / "documents").mkdir()
    settings = load_settings(
        state=tmp_path / "state",
        source=tmp_path / "documents",
        source_name="shop",
        parser_workers=1,
    )
    with open_context(settings) as context:
        Shop(settings.source_folder, context).fill().walk()
    return tmp_path / "state"


class Terminal(StateTerminal):
    """Runs commands on one state folder."""

    def json(self, *words: str) -> dict[str, Any]:
        """Run a command with --json; return the object."""
        return json.loads(self.run(*words, "--json"))

    def decide(self, decision: str | None) -> None:
        """Decide every sampled answer."""
        settings = load_settings(state=self._state)
        with open_context(settings) as context, context.ledger.write() as connection:
            connection.execute(update(reviews).values(decision=decision))


@pytest.fixture
def terminal(state: Path, capsys: pytest.CaptureFixture[str]) -> Terminal:
    """Return a terminal at the state folder."""
    return Terminal(state, capsys)


def test_draw_and_show(terminal: Terminal) -> None:
    assert "No quality sample of manuals-baseline-2 was drawn" in terminal.run("quality", "show")
    shown = terminal.run("quality", "draw", "--reason", "a first look")
    assert "2 records drawn for sample 1" in shown
    assert "hold 2 of 2 accepted records now" in shown
    assert "review next --kind quality_sample" in shown
    again = terminal.run("quality", "draw", "--reason", "a second look")
    assert "Nothing was drawn" in again
    waiting = terminal.run("quality", "show")
    assert "nothing is decided yet" in waiting
    assert "Review what waits:" in waiting
    terminal.decide("accept")
    decided = terminal.run("quality", "show")
    assert "2: 2 right, 0 corrected, 0 rejected" in decided
    assert "0.0% (every record was looked at)" in decided


def test_json(terminal: Terminal) -> None:
    before = terminal.json("quality", "show")
    assert before == {
        "processing_version": "manuals-baseline-2",
        "sampled": False,
        "corrected_fields": {},
    }
    drawn = terminal.json("quality", "draw", "--reason", "a look", "--seed", "7")
    assert (drawn["sample_no"], drawn["drawn"], drawn["sampled"], drawn["seed"]) == (1, 2, 2, 7)
    assert sum(drawn["by_slice"].values()) == 2
    terminal.decide("reject")
    after = terminal.json("quality", "show")
    assert (after["sampled"], after["decided"], after["errors"], after["rate"]) == (True, 2, 2, 1)
    nothing = terminal.json("quality", "draw", "--reason", "a look")
    assert (nothing["sample_no"], nothing["drawn"], nothing["seed"]) == (None, 0, None)


def test_status_and_report_tell_of_the_sample(terminal: Terminal) -> None:
    assert "Quality sample" not in terminal.run("status")
    assert terminal.json("status")["sample"] is None
    terminal.run("quality", "draw", "--reason", "a look")
    # The records are accepted: their sample keeps nothing from being done.
    assert "quality sample: 2 of 2 records wait" in _in_one_line(terminal.run("status"))
    terminal.decide("accept")
    told = "quality sample: 0 of 2 records wait, error rate 0.0%"
    assert told in _in_one_line(terminal.run("status"))
    assert "0 of 2 wrong: error rate 0.0%" in terminal.run("report")
    for command in ("status", "report"):
        assert terminal.json(command)["sample"] == {
            "drawn": 2,
            "waiting": 0,
            "decided": 2,
            "errors": 0,
            "rate": 0.0,
            "low": 0.0,
            "high": 0.0,
        }


def _in_one_line(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize(
    ("words", "status", "expected"),
    [
        pytest.param(("draw",), 2, "--reason", id="no-reason"),
        pytest.param(("draw", "--reason", " "), 1, "found an empty reason", id="empty-reason"),
        pytest.param(("draw", "--reason", "r", "--seed", "-1"), 2, "--seed", id="bad-seed"),
        pytest.param(("show", "--version", "never-used"), 1, "never-used", id="unused-version"),
        pytest.param(
            ("draw", "--reason", "r", "--version", "never-used"), 1, "never-used", id="unused-draw"
        ),
    ],
)
def test_what_is_refused(
    terminal: Terminal, words: tuple[str, ...], status: int, expected: str
) -> None:
    terminal.run("quality", *words, status=status)
    assert expected in terminal.told
    assert terminal.json("quality", "show")["sampled"] is False
