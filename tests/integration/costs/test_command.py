"""`tallybook cost`, as people and programs read it."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest

from pipeline_assets.cli.app import main
from resources.context import Context
from resources.settings import Settings
from tests.integration.costs.test_account import example
from tests.support.charged_ledger import KEY, ChargedLedger


@pytest.fixture(autouse=True)
def example_ledger(context: Context, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    example(ChargedLedger(context).begin())
    monkeypatch.setenv("TALLYBOOK_STATE", str(settings.state_folder))
    assert settings.ledger_url is not None
    monkeypatch.setenv("TALLYBOOK_LEDGER_URL", str(settings.ledger_url))


def told(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["cost", "--version", KEY, *words]) == 0
    return capsys.readouterr().out


def test_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    text = told(capsys)
    assert "accepted items            3" in text
    assert "0.152267 US dollars" in text
    assert "recovery paths" in text


def test_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(told(capsys, "--json"))
    assert found["provider_usd"].rstrip("0") == "0.4568"
    assert found["unknown"] == {}
    assert found["prices"][0]["package"] == "a list 1.0"


@pytest.mark.parametrize(
    "words", [("--attempts",), ("--by", "record", "--json"), ("--by", "batch", "--json")]
)
def test_lines_add_up(capsys: pytest.CaptureFixture[str], words: tuple[str, ...]) -> None:
    lines = [json.loads(line) for line in told(capsys, *words).splitlines()]
    assert sum(Decimal(line["usd"]) for line in lines) == Decimal("0.4568")


@pytest.mark.parametrize("by", ["slice", "class", "batch", "record"])
def test_by(capsys: pytest.CaptureFixture[str], by: str) -> None:
    assert "US dollars" in told(capsys, "--by", by)


def test_wrong_use(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cost", "--version", KEY, "--attempts", "--by", "slice"]) == 2
    assert "--by" in capsys.readouterr().err
    assert main(["cost", "--version", "nobody-1"]) == 1
    assert "nobody-1" in capsys.readouterr().err
