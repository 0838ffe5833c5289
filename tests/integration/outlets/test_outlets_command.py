"""`tallybook outlets`: list, send, show and retry, in the state folder of a person."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline_assets.cli.app import main
from resources.context import open_context
from resources.settings import load_settings
from tests.support.archive_shelf import Shelf
from tests.support.clock import FrozenClock
from tests.support.command import json_lines, one_json
from tests.support.outlet_receiver import OutletReceiver

SECRET = "open-sesame"


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """Return a state folder whose archive shows two documents."""
    folder, clock = tmp_path / "state", FrozenClock()
    with open_context(load_settings(state=folder), clock=clock) as context:
        shelf = Shelf(context, clock)
        shelf.put("manuals/a.pdf", "A very private title")
        shelf.put("manuals/b.pdf", "B")
    return folder


@pytest.fixture
def configured(receiver: OutletReceiver, monkeypatch: pytest.MonkeyPatch) -> OutletReceiver:
    """Return the receiver that the environment names."""
    monkeypatch.setenv("TALLYBOOK_OUTLET_WEBHOOK_URL", f"{receiver.url}?token={SECRET}")
    monkeypatch.setenv("TALLYBOOK_OUTLET_WEBHOOK_SECRET", SECRET)
    return receiver


class Command:
    """Runs commands here and gives exit status, output and errors."""

    def __init__(self, state: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._state = state
        self._capsys = capsys

    def __call__(self, *arguments: str) -> tuple[int, str, str]:
        status = main(["outlets", *arguments, "--state", str(self._state)])
        shown = self._capsys.readouterr()
        assert SECRET not in shown.out + shown.err
        assert "private" not in shown.out + shown.err
        return status, shown.out, shown.err


@pytest.fixture
def outlets(state: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    """Return `tallybook outlets` on that folder."""
    return Command(state, capsys)


def test_without_an_outlet(outlets: Command) -> None:
    status, shown, _ = outlets("list")
    assert (status, shown) == (0, "No outlet is configured, and none was told anything.\n")
    status, _, errors = outlets("send")
    assert status == 1
    assert "TALLYBOOK_OUTLET_WEBHOOK_URL" in errors


def test_send_then_list_and_show(outlets: Command, configured: OutletReceiver) -> None:
    status, shown, _ = outlets("send")
    assert (status, shown) == (0, "webhook: 2 changes delivered\n")
    assert set(configured.holder.held) == {"manuals/a.pdf", "manuals/b.pdf"}
    _, shown, _ = outlets("list", "--json")
    row = one_json(shown)
    assert (row["outlet"], row["configured"], row["delivered"], row["due"]) == (
        "webhook",
        True,
        2,
        0,
    )
    _, shown, _ = outlets("show", "b.pdf", "--json")
    (delivery,) = json_lines(shown)
    assert (delivery["state"], delivery["effect"], delivery["current"]) == (
        "delivered",
        "put",
        True,
    )
    assert outlets("send")[:2] == (0, "webhook: 0 changes delivered\n")


def test_refused_then_retried(outlets: Command, configured: OutletReceiver) -> None:
    configured.answer = lambda number, _message: 422 if number == 1 else 204
    status, shown, _ = outlets("send")
    assert status == 3
    assert "1 change refused; `tallybook outlets list` shows them (it answered 422)" in shown
    _, shown, _ = outlets("list")
    assert "Not taken by webhook" in shown
    assert "outlets retry --all" in shown
    assert outlets("retry")[0] == 1
    assert outlets("retry", "a.pdf", "--all")[0] == 1
    refused = next(
        name for name in ("a.pdf", "b.pdf") if f"manuals/{name}" not in configured.holder.held
    )
    status, shown, _ = outlets("retry", refused, "--json")
    assert one_json(shown) == {"outlet": "webhook", "due_again": 1}
    assert outlets("send")[0] == 0
    assert len(configured.holder.held) == 2
    assert "nothing of that was refused" in outlets("retry", "--all")[1]


def test_an_outlet_that_is_down(outlets: Command, configured: OutletReceiver) -> None:
    configured.answer = lambda _number, _message: 503
    status, shown, _ = outlets("send", "--json")
    assert status == 3
    report = one_json(shown)
    assert (report["delivered"], report["refused"]) == (0, 0)
    assert report["problem"] == "it answered 503"
