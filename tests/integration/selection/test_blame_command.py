"""`tallybook blame`: what it prints, and its exit statuses."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from pipeline_assets.cli import app
from pipeline_assets.known_version import known_version
from pipeline_assets.selection.parse import parse_where
from pipeline_assets.selection.select import select_records
from tests.support.small_archive import FAN, KEY, SAW, Archive
from tests.support.widened_archive import DOUBLE


@pytest.fixture
def state(made: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the state folder of the archive; `blame` only reads it."""
    monkeypatch.setenv("TALLYBOOK_LEDGER_URL", f"sqlite:///{made / 'ledger.sqlite3'}")
    return made / "state"


def _run(capsys: pytest.CaptureFixture[str], state: Path, *words: str) -> tuple[int, str, str]:
    status = app.main(["blame", "--state", str(state), *words])
    shown = capsys.readouterr()
    return status, shown.out, shown.err


def test_some(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, shown, _ = _run(capsys, state, "--where", "identifiers > 1 or corrected = true")
    assert status == 3
    assert "2 of 4 visible records came from it. Replay them with:" in shown
    assert "rules-1" in shown


def test_none(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, shown, _ = _run(capsys, state, "--where", "model_revision = other")
    assert (status, shown) == (0, "None of 4 visible records came from it.\n")


def test_ids_alone(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, shown, _ = _run(capsys, state, "--documents", "--where", "document like '*[!p]*'")
    assert (status, shown) == (0, "")
    status, shown, _ = _run(capsys, state, "--documents", "--where", "identifiers > 1")
    assert (status, shown) == (3, f"manuals/{DOUBLE}\n")


def test_json_and_its_replay(
    state: Path, capsys: pytest.CaptureFixture[str], archive: Archive
) -> None:
    words = ("--json", "--documents", "--where", "(identifiers = 1 or title like 'x y') and size>1")
    status, shown, _ = _run(capsys, state, *words)
    told = json.loads(shown)
    assert status == 3
    assert told["records"] == 3
    assert sum(group["records"] for group in told["groups"]) == 3
    assert {entry["version"] for entry in told["documents"]} == {KEY}
    (command,) = told["replay"]
    given = shlex.split(command)
    assert given[1:6] == ["replay", "--from", KEY, "--to", "NEW_VERSION"]
    where = parse_where(given[given.index("--where") + 1])
    found = select_records(archive.context, known_version(archive.context, KEY), where)
    assert found["document_id"].to_list() == [entry["document_id"] for entry in told["documents"]]
    assert {f"manuals/{FAN}", f"manuals/{SAW}"} <= set(found["document_id"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("identifiers >", "cannot be read at its end", id="syntax"),
        pytest.param("identifers > 1", "is one of these meant: identifiers", id="unknown"),
        pytest.param("checksum > 3", "`checksum` at column 12: found > '3'", id="type"),
        pytest.param("x" * 5_000, "at most 4000 are read", id="long"),
    ],
)
def test_a_filter_that_cannot_be_used(
    text: str, message: str, state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, shown, errors = _run(capsys, state, "--where", text)
    assert (status, shown) == (1, "")
    assert message in errors
    assert errors.count("\n") == 1


def test_an_empty_ledger(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, _, errors = _run(capsys, tmp_path / "state", "--where", "state = published")
    assert status == 1
    assert "there is no ledger" in errors
