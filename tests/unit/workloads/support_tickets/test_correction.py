"""Corrected values in the published shape, and those that could not be published."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pipeline_assets.workloads.support_tickets.columns import FIELDS
from pipeline_assets.workloads.workload import CorrectedValue, CorrectionRefused
from tests.unit.workloads.support_tickets.support import ABSENT, WORKLOAD, answer, field

CONTENT = {name: part for name, part in answer().items() if name != "document"} | {
    "category": field("other", status="uncertain")
}
Changes = dict[str, tuple[CorrectedValue, ...]]


def corrected(changes: Changes) -> dict[str, Any]:
    text = json.dumps(CONTENT, separators=(",", ":"))
    return json.loads(WORKLOAD.correct(text, changes, WORKLOAD.acceptances["1"].thresholds))


def one(value: str, *evidence: tuple[int, str]) -> tuple[CorrectedValue, ...]:
    return (CorrectedValue(value, evidence),)


@pytest.mark.parametrize(
    ("changes", "published"),
    [
        pytest.param(
            {"category": one("defect", (1, "stopped working"))},
            {"category": field("defect", "stopped working")},
            id="with-evidence",
        ),
        pytest.param({"category": one(" billing ")}, {"category": field("billing")}, id="vouched"),
        pytest.param({"product": ()}, {"product": ABSENT}, id="absent"),
        pytest.param(
            {"priority": one("low"), "language": one("de")},
            {"priority": field("low"), "language": field("de")},
            id="two-fields",
        ),
    ],
)
def test_a_correction_replaces_its_fields(changes: Changes, published: dict[str, Any]) -> None:
    made = corrected(changes)
    assert made == CONTENT | published
    assert tuple(made) == FIELDS


@pytest.mark.parametrize(
    ("changes", "name", "said"),
    [
        pytest.param({"mood": one("bad")}, "mood", "no such field", id="unknown"),
        pytest.param({"document": one("doc-1")}, "document", "no such field", id="reference"),
        pytest.param({"category": one("sports")}, "category", "one of billing", id="category"),
        pytest.param({"priority": one("asap")}, "priority", "one of low, normal", id="priority"),
        pytest.param({"language": one("english")}, "language", "two small", id="language"),
        pytest.param({"summary": one("x" * 301)}, "summary", "8 to 300", id="too-long"),
        pytest.param({"summary": one("a\x1b[31mbcdefgh")}, "summary", "control", id="control"),
        pytest.param({"product": (*one("A-1"), *one("B-2"))}, "product", "found 2", id="two"),
        pytest.param({"product": one("KT-1", (0, "KT-1"))}, "product", "page", id="page-zero"),
    ],
)
def test_what_could_not_be_published_is_refused(changes: Changes, name: str, said: str) -> None:
    with pytest.raises(CorrectionRefused, match=said) as refused:
        corrected(changes)
    assert refused.value.field == name
