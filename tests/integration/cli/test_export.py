"""`tallybook export` in its forms, now and as it was."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from pipeline_assets.cli.app import main
from resources.context import open_context
from resources.settings import load_settings
from tests.support.archive_shelf import SECOND, Shelf, content
from tests.support.clock import START, FrozenClock
from tests.support.command import json_lines


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """Return a state folder: `a` was corrected after two seconds, and `c` left after four."""
    folder, clock = tmp_path / "state", FrozenClock()
    with open_context(load_settings(state=folder), clock=clock) as context:
        shelf = Shelf(context, clock)
        shelf.put("a", content("=1+1", ("X-1", "X-2")))
        shelf.put("a", content("second"), kind="correction")
        shelf.put("c", content("gone"), version=SECOND)
        shelf.remove("c")
    return folder


class Export:
    """Runs `tallybook export` here and gives exit status, output and errors."""

    def __init__(self, state: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._state = state
        self._capsys = capsys

    def __call__(self, *arguments: object) -> tuple[int, str, str]:
        words = [str(argument) for argument in arguments]
        status = main(["export", *words, "--state", str(self._state)])
        shown = self._capsys.readouterr()
        return status, shown.out, shown.err


@pytest.fixture
def export(state: Path, capsys: pytest.CaptureFixture[str]) -> Export:
    """Return the command on that folder."""
    return Export(state, capsys)


@pytest.mark.parametrize(
    ("second", "titles"),
    [
        (0, {}),
        (1, {"a": "=1+1"}),
        (2, {"a": "second"}),
        (3, {"a": "second", "c": "gone"}),
        (4, {"a": "second"}),
    ],
)
def test_as_of(export: Export, second: int, titles: dict[str, str]) -> None:
    """An entry is visible from its first moment up to, and without, its last."""
    moment = START.replace(second=START.second + second)
    _, shown, _ = export("--as-of", moment.isoformat())
    assert {row["document_id"]: row["title"]["value"] for row in json_lines(shown)} == titles


def test_the_three_forms_hold_the_same(export: Export, tmp_path: Path) -> None:
    moment = START.replace(second=START.second + 3).isoformat()
    for name in ("x.jsonl", "x.parquet", "x.csv"):
        status, said, _ = export("--out", tmp_path / name, "--as-of", moment)
        assert (status, said) == (0, f"2 documents written to {tmp_path / name}\n")
    rows = [json.loads(line) for line in (tmp_path / "x.jsonl").read_text().splitlines()]
    assert {row.pop("workload") for row in rows} == {"equipment_manuals"}
    assert pq.read_table(tmp_path / "x.parquet").to_pylist() == rows
    with (tmp_path / "x.csv").open(newline="", encoding="utf-8") as stream:
        flat = list(csv.DictReader(stream))
    assert [row["title"] for row in flat] == [row["title"]["value"] for row in rows]


def test_csv_on_standard_output(export: Export) -> None:
    moment = START.replace(second=START.second + 1).isoformat()
    status, shown, _ = export("--format", "csv", "--as-of", moment)
    assert status == 0
    head, line = shown.split("\r\n")[:2]
    assert head.startswith("document_id,archive_version,title,")
    assert line.startswith("a,1,'=1+1,found,X-1 | X-2,found,en,")
    assert export("--format", "csv", "--as-of", moment, "--raw")[1].count("'") == 0


def test_a_file_is_not_replaced_by_accident(export: Export, tmp_path: Path) -> None:
    file = tmp_path / "x.jsonl"
    file.write_text("mine")
    status, _, errors = export("--out", file)
    assert (status, file.read_text()) == (1, "mine")
    assert "--force" in errors
    assert export("--out", file, "--force")[0] == 0
    assert json_lines(file.read_text())


@pytest.mark.parametrize(
    ("arguments", "status", "hint"),
    [
        (["--format", "parquet"], 2, "needs --out FILE"),
        (["--format", "xlsx"], 2, "xlsx"),
        (["--format", "csv", "--json"], 2, "--json means --format jsonl"),
        (["--raw"], 2, "--raw goes with --format csv"),
        (["--as-of", "yesterday"], 1, "is no time"),
        (["--version", "never-1"], 1, "nothing was processed"),
        (["--workload", "invoices"], 1, "used so far: equipment_manuals"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_wrong_usage_is_told(export: Export, arguments: list[str], status: int, hint: str) -> None:
    found, _, errors = export(*arguments)
    assert (found, hint in errors) == (status, True), errors
