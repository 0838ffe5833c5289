"""`tallybook report`: kept reports, their files, and closing, as a person types it."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from pipeline_assets.cli.app import main
from tests.support.command import json_lines, one_json
from tests.support.small_shop import make_documents


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a state folder after one run; tests keep nothing in it but files of their own."""
    place = tmp_path_factory.mktemp("shop")
    documents = make_documents(place / "documents")
    assert main(["run", "--source", str(documents), "--state", str(place / "state")]) == 3
    return place / "state"


def said(capsys: pytest.CaptureFixture[str], *arguments: str, status: int) -> str:
    capsys.readouterr()
    assert main(["report", *arguments]) == status
    return capsys.readouterr().out


def test_a_run_keeps_a_report(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = ("--state", str(state))
    (row,) = json_lines(said(capsys, "list", *place, "--json", status=0))
    assert (row["report_no"], row["closed"], row["leaves"], row["page"]) == (1, False, 3, None)
    assert row["key"] in said(capsys, "list", *place, status=0)
    now = one_json(said(capsys, *place, "--json", status=3))
    kept = one_json(said(capsys, *place, "--number", "1", "--json", status=0))
    assert now["content_digest"] == kept["content_digest"] == row["digest"]
    assert now["outcomes"] == kept["outcomes"]
    assert now["baseline"] is None
    assert "Not closed" in said(capsys, *place, status=3)


def test_files_are_written_whole_and_never_over_others(
    state: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page, table = tmp_path / "report.html", tmp_path / "outcomes.parquet"
    files = ("--html", str(page), "--outcomes", str(table), "--state", str(state))
    assert str(page) in said(capsys, *files, status=3)
    first = page.read_text(encoding="utf-8")
    assert first.startswith("<!doctype html>")
    states = pl.read_parquet(table)["state"].to_list()
    assert sorted(states) == ["awaiting_review", "excluded", "published"]
    said(capsys, *files, status=1)
    said(capsys, *files, "--force", "--number", "1", status=0)
    kept = page.read_text(encoding="utf-8")
    assert "Report digest" in kept


def test_what_is_in_the_way_of_closing_is_listed(
    state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = ("--state", str(state))
    capsys.readouterr()
    assert main(["report", "close", "--by", "Ada", *place]) == 1
    told = capsys.readouterr().err
    assert "cannot be closed" in told
    assert "tallybook review next" in told
    refused = one_json(said(capsys, "close", "--by", "Ada", *place, "--json", status=1))
    assert refused["closed"] is False
    assert {"awaiting_review"} <= {each["kind"] for each in refused["obstacles"]}


def test_a_batch_has_an_account_of_its_own(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = ("--state", str(state))
    batch = one_json(said(capsys, *place, "--json", status=3))["batches"][0]["batch_id"]
    assert "Dispositions" in said(capsys, *place, "--batch", batch, status=3)
    found = one_json(said(capsys, *place, "--batch", batch, "--json", status=3))
    assert (found["scope"], found["outcomes"]["rows"]) == (batch, 2)


@pytest.mark.parametrize(
    ("arguments", "status", "told"),
    [
        pytest.param(("--number", "9"), 1, "no kept report 9", id="no-such-report"),
        pytest.param(("--batch", "nope"), 1, "no batch 'nope'", id="no-such-batch"),
        pytest.param(("--number", "1", "--batch", "b"), 2, "--number goes with", id="both"),
        pytest.param(("--number", "0"), 2, "--number", id="zero"),
        pytest.param(("--json", "list"), 2, "behind it", id="options-before-the-command"),
        pytest.param(("--by", "reason", "--html", "x"), 2, "--by goes with", id="by-and-html"),
        pytest.param(("close",), 2, "--by", id="nobody"),
        pytest.param(("close", "--by", " "), 1, "found no name", id="no-name"),
    ],
)
def test_what_cannot_be_is_told(
    arguments: tuple[str, ...],
    status: int,
    told: str,
    state: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    capsys.readouterr()
    assert main(["report", *arguments, "--state", str(state)]) == status
    assert told in capsys.readouterr().err


def test_json_is_json(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(said(capsys, "--state", str(state), "--json", status=3))
    assert found["contract"] == "reconciliation/1"
    assert {"steps", "kinds", "batches", "quality", "configuration", "cost", "ages"} <= set(found)
    assert found["journal"]["heads"]
