"""`promote`, `rollback` and `show --as-of` as an operator types them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

import pytest

from pipeline_assets.cli.app import main
from resources.clock import to_text
from tests.integration.publish.support import FAN, ONE, PUMP, TWO, Stall
from tests.integration.stages.support import ON_ONE_DATABASE

pytestmark = ON_ONE_DATABASE
PUMP_ID, FAN_ID = f"shop/{PUMP}", f"shop/{FAN}"
REASON = ("--reason", "for the test")
Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def command(
    stall: Stall, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Command:
    """Return a function that runs a command on the stall: exit status, output, errors."""
    settings = stall.context.settings
    monkeypatch.setenv("TALLYBOOK_LEDGER_URL", settings.ledger_place)
    monkeypatch.setenv("TALLYBOOK_SPECS", str(settings.specs))

    def run(*words: str) -> tuple[int, str, str]:
        status = main([*words, "--state", str(settings.state_folder)])
        told = capsys.readouterr()
        return status, " ".join(told.out.split()), told.err

    return run


def test_there_and_back(stall: Stall, command: Command) -> None:
    stall.run(ONE)
    stall.run(TWO)
    status, out, _ = command("rollback", TWO, *REASON, "--dry-run")
    assert (status, stall.shown()[PUMP_ID]) == (0, TWO)
    assert "Nothing is changed" in out and "2 documents shown with earlier values again" in out
    status, out, _ = command("rollback", TWO, *REASON)
    assert (status, stall.shown()[PUMP_ID]) == (0, ONE)
    assert "publishes by command only from now on" in out and f"promote {TWO}" in out
    status, out, _ = command("rollback", TWO, *REASON)
    assert (status, out) == (0, f"Nothing to do: no document shows values of {TWO}.")
    status, out, _ = command("promote", TWO, *REASON, "--document", PUMP, "--json")
    assert (status, json.loads(out)["shown_again"], json.loads(out)["manual"]) == (0, 1, True)
    assert stall.shown() == {PUMP_ID: TWO, FAN_ID: ONE}
    status, out, _ = command("promote", TWO, *REASON)
    assert f"1 document shown with the values of {TWO} again. 1 earlier entry replaced." in out
    status, out, _ = command("promote", TWO, *REASON)
    assert (status, out.startswith("Nothing to do")) == (0, True)


def test_one_document(stall: Stall, command: Command) -> None:
    stall.run(ONE)
    moment = to_text(stall.clock())
    stall.run(TWO)
    status, out, _ = command("rollback", "--document", PUMP, *REASON, "--json")
    assert (status, json.loads(out)) == (
        0,
        {
            "document_id": PUMP_ID,
            "dry_run": False,
            "put_back": 1,
            "removed": 0,
            "made_manual": False,
        },
    )
    assert command("rollback", "--document", PUMP, "--to", "2", *REASON)[0] == 0
    assert stall.shown()[PUMP_ID] == TWO
    _, out, _ = command("rollback", "--document", PUMP, "--to", "2", *REASON)
    assert out == f"Nothing to do: {PUMP_ID} shows nothing, or these values already."
    status, out, _ = command("show", PUMP, "--as-of", moment, "--json")
    shown = json.loads(out)
    assert (status, shown["provenance"]["processing_version"]) == (0, ONE)
    assert shown["published_at"] == moment < shown["visible_until"]
    assert "visible until" in command("show", PUMP, "--as-of", moment)[1]


@pytest.mark.parametrize(
    ("words", "status", "told"),
    [
        pytest.param(("promote", TWO), 2, "--reason", id="promote-without-reason"),
        pytest.param(("promote", ONE, "--reason", " "), 1, "empty reason", id="empty-reason"),
        pytest.param(("promote", TWO, *REASON), 1, "nothing was processed", id="never-used"),
        pytest.param(
            ("promote", ONE, *REASON, "--document", "x.txt"), 1, "no document", id="no-document"
        ),
        pytest.param(("rollback", *REASON), 2, "either a VERSION or", id="neither"),
        pytest.param(
            ("rollback", ONE, "--document", PUMP, *REASON), 2, "either a VERSION or", id="both"
        ),
        pytest.param(("rollback", ONE, "--to", "1", *REASON), 2, "--document", id="to-alone"),
        pytest.param(
            ("rollback", "--document", PUMP, "--to", "9", *REASON),
            1,
            "no archive version 9; it has 1 to 1",
            id="no-such-archive-version",
        ),
        pytest.param(("rollback", "none-such-1", *REASON), 1, "nothing was", id="no-version"),
        pytest.param(("show", PUMP, "--as-of", "soon"), 1, "is no time", id="no-time"),
        pytest.param(
            ("show", PUMP, "--as-of", "1999-01-01"), 1, "was not published at", id="too-early"
        ),
        pytest.param(
            ("show", PUMP, "--as-of", "2026-01-01", "--page", "1"), 2, "--page", id="page-then"
        ),
    ],
)
def test_what_is_refused(
    stall: Stall, command: Command, words: Sequence[str], status: int, told: str
) -> None:
    stall.run(ONE)
    before = stall.facts()
    found, _, err = command(*words)
    assert (found, err.count("\n")) == (status, 1)
    assert told in err
    assert stall.facts() == before
