"""`tallybook report`: kept reports, their files, and closing, as a person types it."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import polars as pl
import pytest

from pipeline_assets.account.violations import pending_sentence
from pipeline_assets.cli.app import main
from pipeline_assets.cli.report import _batch_status, _kept_status
from tests.support.command import json_lines, one_json
from tests.support.small_shop import make_documents

if TYPE_CHECKING:
    from pipeline_assets.account.reconciliation.facts import FullReport
    from pipeline_assets.account.report import Report


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
    assert (row["report_no"], row["closed"], row["leaves"], row["page"]) == (2, False, 3, None)
    told = said(capsys, "list", *place, status=0)
    assert row["key"] in told
    assert "1 report of single batches: --batches" in told
    now = one_json(said(capsys, *place, "--json", status=3))
    kept = one_json(said(capsys, *place, "--number", "2", "--json", status=0))
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


def test_a_run_keeps_a_report_of_each_batch(
    state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = ("--state", str(state))
    batch, whole = json_lines(said(capsys, "list", "--batches", *place, "--json", status=0))
    assert (batch["report_no"], batch["leaves"], whole["batch_id"]) == (1, 2, None)
    assert batch["batch_id"] in said(capsys, "list", "--batches", *place, status=0)
    assert "Dispositions" in said(capsys, *place, "--number", "1", status=0)
    # It says the same still, so nothing more is kept.
    again = said(capsys, *place, "--batch", batch["batch_id"], "--keep", status=3)
    assert "Kept as report 1, which says the same." in again
    found = one_json(said(capsys, *place, "--keep", "--json", status=3))
    assert (found["report_no"], found["new"]) == (2, False)


def test_a_report_is_kept_by_hand(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    documents = make_documents(tmp_path / "documents")
    place = ("--state", str(tmp_path / "state"))
    assert main(["run", "--source", str(documents), *place]) == 3
    set_budget = ["settings", "set", "budget_usd", "5", "--reason", "a trial", *place]
    assert main(set_budget) == 0
    told = said(capsys, "--keep", *place, status=3)
    assert "Configuration: setting budget_usd was not set, is 5" in told
    assert "Kept as report 3." in told


@pytest.mark.parametrize(
    ("violations", "status"),
    [
        pytest.param((), 0, id="adds-up"),
        pytest.param((pending_sentence(2),), 3, id="unfinished"),
        pytest.param((pending_sentence(2), "a thing"), 1, id="unfinished-and-wrong"),
        pytest.param(("a thing",), 1, id="wrong"),
    ],
)
def test_the_exit_status_of_a_kept_report(violations: tuple[str, ...], status: int) -> None:
    account = SimpleNamespace(invariant_holds=not violations, pending=2, violations=violations)
    assert _kept_status(cast("Report", account)) == status


@pytest.mark.parametrize(
    ("records", "batch", "holds", "status"),
    [
        pytest.param({"published": 2, "rejected": 1}, "completed", True, 0, id="done"),
        pytest.param({"published": 2, "retry_wait": 1}, "completed", True, 3, id="record-open"),
        pytest.param({"dead_letter": 1}, "completed_with_errors", True, 3, id="for-a-person"),
        pytest.param({"published": 1}, "quarantined", True, 3, id="batch-open"),
        pytest.param({"published": 1}, "completed", False, 1, id="does-not-add-up"),
    ],
)
def test_the_exit_status_of_a_batch_is_its_own(
    records: dict[str, int], batch: str, holds: bool, status: int
) -> None:
    report = SimpleNamespace(
        account=SimpleNamespace(invariant_holds=holds),
        details=SimpleNamespace(
            outcomes=SimpleNamespace(states=records), batches=(SimpleNamespace(state=batch),)
        ),
    )
    assert _batch_status(cast("FullReport", report)) == status


@pytest.mark.parametrize(
    ("arguments", "status", "told"),
    [
        pytest.param(("--number", "9"), 1, "no kept report 9", id="no-such-report"),
        pytest.param(("--batch", "nope"), 1, "no batch 'nope'", id="no-such-batch"),
        pytest.param(("--number", "1", "--batch", "b"), 2, "--number goes with", id="both"),
        pytest.param(("--number", "0"), 2, "--number", id="zero"),
        pytest.param(("--json", "list"), 2, "behind it", id="options-before-the-command"),
        pytest.param(("--by", "reason", "--html", "x"), 2, "--by goes with", id="by-and-html"),
        pytest.param(("--by", "reason", "--keep"), 2, "--by goes with", id="by-and-keep"),
        pytest.param(("--number", "1", "--keep"), 2, "--number goes with", id="number-and-keep"),
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
