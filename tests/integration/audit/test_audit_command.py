"""`tallybook audit`, `prove` and `verify` as they are typed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from sqlalchemy import text

from pipeline_assets.cli.app import main
from tests.faults.tampering.states import State
from tests.support.small_archive import FAN, KEY
from tests.unit.audit.test_proof import outsider_says

pytestmark = pytest.mark.slow


@pytest.fixture
def here(state: State, monkeypatch: pytest.MonkeyPatch) -> State:
    """Return a state whose ledger the commands find."""
    if state.ledger_url is not None:
        monkeypatch.setenv("TALLYBOOK_LEDGER_URL", state.ledger_url)
    return state


def folder(state: State) -> str:
    return str(state.folder / "state")


def test_a_clean_audit_says_so(here: State, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", "--state", folder(here)]) == 0
    said = capsys.readouterr().out
    assert "nothing is wrong" in said
    assert "replaying reconciliation and delivery writes nothing" in said


def test_findings_are_lines_and_the_status_is_1(
    here: State, capsys: pytest.CaptureFixture[str]
) -> None:
    with here.opened() as context, context.ledger.write() as connection:
        connection.execute(text("DELETE FROM dispositions WHERE attempt_no = 1"))
    assert main(["audit", "--state", folder(here), "--version", KEY, "--json"]) == 1
    *findings, last = map(json.loads, capsys.readouterr().out.splitlines())
    assert {each["kind"] for each in findings} == {"finding"}
    assert any(each["subject"].startswith("attempt 1 ") for each in findings)
    assert (last["kind"], last["clean"], last["findings"]) == ("audit", False, len(findings))
    assert main(["audit", "--state", folder(here)]) == 1
    assert "attempt 1 of batch" in capsys.readouterr().out


def test_what_is_open_has_a_status_of_its_own(
    here: State, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with here.opened() as context, context.ledger.write() as connection:
        connection.execute(text("UPDATE processing_versions SET digest = :d"), {"d": "0" * 64})
    assert main(["audit", "--state", folder(here)]) == 3
    assert "Left out: the answers of version" in capsys.readouterr().out


def test_a_proof_is_made_and_verified_without_a_ledger(
    here: State, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    proof = tmp_path / "proof.json"
    assert main(["audit", "prove", FAN, "--state", folder(here), "--out", str(proof)]) == 0
    assert "by ada" in capsys.readouterr().out
    page = json.loads(proof.read_text(encoding="utf-8"))
    assert page["outcome"]["document_id"].endswith(FAN)
    assert page["closing"]["closed_by"] == "ada"
    assert outsider_says(page, page["root"])
    monkeypatch.setenv("TALLYBOOK_STATE", str(tmp_path / "nowhere"))
    monkeypatch.delenv("TALLYBOOK_LEDGER_URL", raising=False)
    assert main(["audit", "verify", str(proof), "--root", page["root"]]) == 0
    assert capsys.readouterr().out.startswith("PROVEN")
    assert not (tmp_path / "nowhere").exists()
    assert main(["audit", "verify", str(proof), "--root", "0" * 64, "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["holds"] is False
    proof.write_text(json.dumps(page | {"index": page["index"] + 1}), encoding="utf-8")
    assert main(["audit", "verify", str(proof)]) == 1
    assert capsys.readouterr().out.startswith("NOT PROVEN")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        pytest.param(["nothing-like-it.txt"], "no document", id="unknown"),
        pytest.param([FAN, "--report", "99"], "no outcomes", id="no such report"),
    ],
)
def test_what_cannot_be_proven_is_told_in_one_line(
    here: State, words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["audit", "prove", *words, "--state", folder(here)]) == 1
    told = capsys.readouterr().err
    assert said in told
    assert told.count("\n") == 1


def test_a_file_that_is_no_proof(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x").write_text("hello")
    assert main(["audit", "verify", str(tmp_path / "x")]) == 1
    assert "this is no proof" in capsys.readouterr().err
    assert main(["audit", "verify", str(tmp_path / "none")]) == 1
    assert capsys.readouterr().err.count("\n") == 1
