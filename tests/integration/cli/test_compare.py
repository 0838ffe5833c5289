"""`tallybook compare` as a person types it."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline_assets.cli.app import main
from resources.context import open_context
from resources.settings import load_settings
from tests.integration.compare.conftest import fill
from tests.support.archive_shelf import FIRST, SECOND, Shelf
from tests.support.clock import FrozenClock
from tests.support.command import one_json


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """Return a state folder with values of two versions."""
    folder, clock = tmp_path / "state", FrozenClock()
    with open_context(load_settings(state=folder), clock=clock) as context:
        fill(Shelf(context, clock))
    return folder


def test_tables_json_and_page(
    state: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = ("--state", str(state))
    file = tmp_path / "page.html"
    assert main(["compare", FIRST, SECOND, "--html", str(file), *place]) == 0
    shown = capsys.readouterr().out
    assert "Documents with values of both: 6; of these, 4 (66.7%)" in shown
    assert f"4 documents with both values written to {file}" in shown
    assert "By slice" in shown
    assert "older, and corrected" not in shown, "values stand in the page and in JSON alone"
    assert "older, and corrected" in file.read_text(encoding="utf-8")
    assert main(["compare", FIRST, SECOND, "--html", str(file), *place]) == 1
    assert "--force" in capsys.readouterr().err
    where = ("--where", "title=form", "--json")
    assert main(["compare", FIRST, SECOND, *where, *place]) == 0
    found = one_json(capsys.readouterr().out)
    assert (found["both"], found["matching"]) == (6, 1)
    assert [entry["document_id"] for entry in found["listed"]] == ["b form"]


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        ([FIRST, FIRST], "is given twice"),
        ([FIRST, "never-1"], "nothing was processed under"),
        ([FIRST, SECOND, "--where", "colour=red"], "is no condition"),
    ],
    ids=["the same", "never used", "condition"],
)
def test_mistakes_are_told(
    state: Path, arguments: list[str], hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", *arguments, "--state", str(state)]) == 1
    assert hint in capsys.readouterr().err
