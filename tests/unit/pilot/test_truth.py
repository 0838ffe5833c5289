"""Answers held against known values."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from pipeline_assets.pilot.errors import TruthUnreadable
from pipeline_assets.pilot.truth import FieldScore, judge, read_truth, score
from pipeline_assets.workloads.workload import PublishedField

FIELDS = (PublishedField("title", "Title"), PublishedField("parts", "Parts", many=True))


@pytest.mark.parametrize(
    ("wanted", "got", "expected"),
    [
        pytest.param(("A",), ("A",), "exact", id="exact"),
        pytest.param(("Pump X-1",), ("PUMP  X‐1",), "form", id="form"),
        pytest.param(("A",), ("B",), "wrong", id="wrong"),
        pytest.param(("A",), (), "missing", id="missing"),
        pytest.param((), ("A",), "invented", id="invented"),
        pytest.param((), (), "exact", id="rightly-absent"),
        pytest.param(("A", "B"), ("B", "A"), "exact", id="a-list-is-a-set"),
        pytest.param(("A", "B"), ("A",), "wrong", id="a-list-counts-whole"),
    ],
)
def test_judge(wanted: tuple[str, ...], got: tuple[str, ...], expected: str) -> None:
    assert judge(wanted, got) == expected


def test_json_and_table_say_the_same(tmp_path: Path) -> None:
    lines, table = tmp_path / "t.jsonl", tmp_path / "t.csv"
    lines.write_text(
        '{"document_id": "s/1", "title": "Pump", "parts": ["A", "B"], "other": 1}\n\n'
        '{"document_id": "s/2", "parts": ["C"]}\n'
    )
    table.write_text("document_id,title,parts,other\ns/1,Pump,A|B,1\ns/2,,C,\n")
    expected = {"s/1": {"title": ("Pump",), "parts": ("A", "B")}, "s/2": {"parts": ("C",)}}
    assert read_truth(lines, FIELDS) == expected
    assert read_truth(table, FIELDS) == expected


def test_null_is_known_to_be_absent(tmp_path: Path) -> None:
    file = tmp_path / "t.jsonl"
    file.write_text('{"document_id": "s/1", "title": null, "parts": []}\n')
    assert read_truth(file, FIELDS) == {"s/1": {"title": (), "parts": ()}}


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        pytest.param("t.jsonl", '{"title": "x"}', "row 1 has no document_id", id="no-id"),
        pytest.param("t.jsonl", "[1]", "line 1 is no JSON object", id="no-object"),
        pytest.param("t.jsonl", "nonsense", "line 1 is no JSON", id="no-json"),
        pytest.param("t.jsonl", '{"document_id": "a", "other": 1}', "none of the", id="no-field"),
        pytest.param("t.jsonl", '{"document_id": "a", "title": 7}', "no text", id="a-number"),
        pytest.param("t.csv", "document_id,title\na,x\na,y\n", "a second time", id="named-twice"),
        pytest.param("t.csv", "", "none of the fields", id="empty"),
        pytest.param("t.csv", 'document_id,title\na,"x', "no UTF-8 table", id="open-quote"),
    ],
)
def test_what_cannot_be_used(tmp_path: Path, name: str, text: str, problem: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(TruthUnreadable, match=problem):
        read_truth(tmp_path / name, FIELDS)


def content(title: str | None, *parts: str) -> str:
    def one(value: str | None) -> dict[str, Any]:
        return {"value": value, "status": "found", "evidence": []}

    return json.dumps({"title": one(title), "parts": [one(part) for part in parts]})


def test_scores_of_accepted_documents_alone() -> None:
    truth = {
        "s/1": {"title": ("Pump",), "parts": ("A", "B")},
        "s/2": {"title": ("Fan",)},
        "s/3": {"title": (), "parts": ()},
        "s/4": {"title": ("Saw",)},
        "s/elsewhere": {"title": ("never taken",)},
    }
    answers = pl.DataFrame(
        {
            "document_id": ["s/1", "s/2", "s/3", "s/unknown"],
            "content": [
                content("PUMP", "B", "A"),
                content("Drill", "X"),
                content("Title"),
                content("no truth"),
            ],
        }
    )
    found = score(truth, answers, ["s/1", "s/2", "s/3", "s/4", "s/unknown"], FIELDS)
    assert (found.documents, found.unanswered) == (3, 1)
    assert found.fields == (
        FieldScore("title", 3, exact=0, form=1, wrong=1, missing=0, invented=1),
        FieldScore("parts", 2, exact=2),
    )
    assert [one.right for one in found.fields] == [1, 2]
