"""What decisions say: counts, weights, and what is left out."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pipeline_assets.quality.error_rates import changed_fields, summarise

AT = "2030-01-02T03:04:05.000000Z"


def field(value: Any, status: str = "found", page: int = 1) -> dict[str, Any]:
    return {"value": value, "status": status, "evidence": [{"page": page, "quote": "q"}]}


BEFORE = {
    "title": field("A manual"),
    "product_identifiers": [field("A-1"), field("A-2")],
    "language": field("en"),
}


def test_errors_are_what_was_corrected_or_rejected_and_the_undecided_are_neither() -> None:
    found = summarise(AT, {"a": 1_000}, {"a": {"accept": 16, "correct": 3, "reject": 1, "": 30}})
    (entry,) = found.by_slice
    assert (entry.drawn, entry.waiting, entry.decided, entry.errors) == (50, 30, 20, 4)
    assert entry.rate == found.rate == 0.2
    assert found.low is not None
    assert found.high is not None
    assert 0 < found.low < 0.2 < found.high < 0.5


@pytest.mark.parametrize(
    "decisions", [{}, {"": 5}, {"overtaken": 5}], ids=["none", "waiting", "overtaken"]
)
def test_nothing_decided_is_no_rate(decisions: dict[str, int]) -> None:
    found = summarise(AT, {"a": 10}, {"a": decisions})
    assert (found.rate, found.low, found.high, found.decided, found.looked_at) == (
        None,
        None,
        None,
        0,
        0,
    )
    assert found.population == 10


def test_slices_weigh_their_records() -> None:
    found = summarise(
        AT,
        {"large": 900, "small": 100, "unseen": 500},
        {"large": {"accept": 10}, "small": {"correct": 10}, "unseen": {"": 5}},
    )
    assert found.rate == 0.1
    assert (found.population, found.looked_at) == (1_500, 1_000)
    assert [entry.slice for entry in found.by_slice] == ["large", "small", "unseen"]


def test_json_holds_the_sums_too() -> None:
    told = summarise(AT, {"a": 10}, {"a": {"accept": 1, "reject": 1}}).as_json()
    assert (told["decided"], told["errors"]) == (2, 1)
    assert (told["by_slice"][0]["decided"], told["by_slice"][0]["errors"]) == (2, 1)
    assert json.loads(json.dumps(told)) == told


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        pytest.param({}, [], id="nothing"),
        pytest.param({"title": field("A manual", page=7)}, [], id="only-evidence"),
        pytest.param({"title": field("Another")}, ["title"], id="value"),
        pytest.param({"language": field(None, "absent")}, ["language"], id="taken-out"),
        pytest.param({"product_identifiers": [field("A-1")]}, ["product_identifiers"], id="list"),
        pytest.param(
            {"title": field("B"), "language": field("de"), "more": field(1)},
            ["language", "more", "title"],
            id="several",
        ),
    ],
)
def test_changed_fields(change: dict[str, Any], expected: list[str]) -> None:
    assert changed_fields(json.dumps(BEFORE), json.dumps({**BEFORE, **change})) == expected
