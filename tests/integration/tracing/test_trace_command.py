"""`tallybook trace`: any record, sampled or not, and clear errors."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pipeline_assets.cli.app import main
from pipeline_assets.tracing.export import export_traces
from resources.context import Context
from resources.ledger.schema import records
from resources.settings import Settings
from tests.integration.recovery.support import Retries
from tests.integration.stages.support import KEY, ON_ONE_DATABASE
from tests.integration.tracing.test_export import with_settings
from tests.support.command import one_json

pytestmark = ON_ONE_DATABASE
Trace = Callable[..., tuple[int, str, str]]


@pytest.fixture
def trace(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Trace:
    """Return the command, on the shop's ledger."""
    assert settings.ledger_url is not None
    monkeypatch.setenv("TALLYBOOK_LEDGER_URL", settings.ledger_url)
    monkeypatch.setenv("TALLYBOOK_STATE", str(settings.state_folder))

    def run(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        status = main(["trace", *arguments, "--version", KEY])
        said = capsys.readouterr()
        return status, said.out, said.err

    return run


def test_a_waterfall_of_eighty_columns(retries: Retries, trace: Trace) -> None:
    retries.walk(["busy", "good"])
    status, out, _ = trace("m00.txt")
    assert status == 0
    assert "\x1b" not in out
    head, _, shown = out.partition("\n\n")
    assert max(map(len, shown.splitlines())) <= 80
    assert "equipment_manuals:shop/m00.txt@" in head
    names = [line.split("  ")[0] for line in shown.splitlines()]
    assert names[0] == "record"[: len(names[0])]
    for word in ("attempt", "wait for retry", "overloaded", "published"):
        assert word in shown


def test_a_record_that_is_open_and_not_sampled(retries: Retries, trace: Trace) -> None:
    retries.walk(["doubtful"])
    record_id = retries.shop.rows(records)[0]["record_id"]
    status, out, _ = trace(record_id, "--json")
    assert status == 0
    told = one_json(out)
    assert told["record_id"] == record_id
    root = told["spans"][0]
    assert root["attributes"]["tallybook.open"] is True
    assert root["attributes"]["tallybook.state"] == "awaiting_review"
    assert told["spans"][-1]["name"] == "review"


def test_the_file_has_what_was_chosen(retries: Retries, trace: Trace, context: Context) -> None:
    retries.walk(["refused"], *([["good"]] * 3))
    status, _, err = trace("m00.txt", "--file")
    assert (status, "TALLYBOOK_TRACES" in err) == (1, True)
    export_traces(with_settings(context, traces="file", trace_share=0.0), KEY)
    status, out, _ = trace("m00.txt", "--file", "--json")
    _, live, _ = trace("m00.txt", "--json")
    assert status == 0
    written, shown = one_json(out), one_json(live)
    assert written["spans"][0]["attributes"].pop("tallybook.chosen") == "failing"
    assert written == shown
    # One of the good ones is the slowest of a hundred; the others were not chosen.
    told = [trace(f"m0{number}.txt", "--file")[0] for number in (1, 2, 3)]
    assert sorted(told) == [1, 1, 1]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        pytest.param("nothing.txt", "there is no document 'nothing.txt'", id="unknown"),
        pytest.param("%", "there is no document '%'", id="no wildcard"),
        pytest.param("M00.TXT", "there is no document 'M00.TXT'", id="letters as they are"),
        pytest.param(".txt", "documents end with '.txt'", id="several"),
        pytest.param("of a", "tallybook explain 'shop/of a' --version", id="excluded"),
    ],
)
def test_what_cannot_be_shown_is_told(
    retries: Retries, trace: Trace, given: str, told: str
) -> None:
    retries.shop.write("of a", b"")
    retries.walk(["good"], ["good"])
    status, out, err = trace(given)
    assert (status, out) == (1, "")
    assert told in err
    assert "Traceback" not in err
