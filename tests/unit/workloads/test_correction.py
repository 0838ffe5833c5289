"""Corrected values in the published shape, and those that could not be published."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pipeline_assets.workloads.equipment_manuals.columns import FIELDS
from pipeline_assets.workloads.equipment_manuals.workload import load
from pipeline_assets.workloads.workload import CorrectedValue, CorrectionRefused

WORKLOAD = load()
ABSENT = {"value": None, "status": "absent", "evidence": []}
CONTENT: dict[str, Any] = {
    "title": {
        "value": "Dust Extractor",
        "status": "uncertain",
        "evidence": [{"page": 1, "quote": "Dust Extractor"}],
    },
    "product_identifiers": [
        {"value": "DX-20", "status": "found", "evidence": [{"page": 1, "quote": "DX-20"}]}
    ],
    "language": {"value": "english", "status": "found", "evidence": []},
    "description": ABSENT,
}
Changes = dict[str, tuple[CorrectedValue, ...]]


def _correct(changes: Changes, acceptance: str = "1") -> dict[str, Any]:
    thresholds = WORKLOAD.acceptances[acceptance].thresholds
    text = json.dumps(CONTENT, separators=(",", ":"), ensure_ascii=False)
    return json.loads(WORKLOAD.correct(text, changes, thresholds))


def _one(value: str, *evidence: tuple[int, str]) -> tuple[CorrectedValue, ...]:
    return (CorrectedValue(value, evidence),)


@pytest.mark.parametrize("acceptance", sorted(WORKLOAD.acceptances))
@pytest.mark.parametrize(
    ("changes", "field", "published"),
    [
        pytest.param(
            {"title": _one(" Staubsauger Ä ", (2, "Staubsauger Ä"))},
            "title",
            {
                "value": "Staubsauger Ä",
                "status": "found",
                "evidence": [{"page": 2, "quote": "Staubsauger Ä"}],
            },
            id="with-evidence",
        ),
        pytest.param(
            {"language": _one("de")},
            "language",
            {"value": "de", "status": "found", "evidence": []},
            id="vouched-for",
        ),
        pytest.param({"title": ()}, "title", ABSENT, id="absent"),
        pytest.param({"product_identifiers": ()}, "product_identifiers", [], id="no-identifier"),
        pytest.param(
            {"product_identifiers": (*_one("DX-21"), *_one("DX-22", (1, "the DX-22")))},
            "product_identifiers",
            [
                {"value": "DX-21", "status": "found", "evidence": []},
                {
                    "value": "DX-22",
                    "status": "found",
                    "evidence": [{"page": 1, "quote": "the DX-22"}],
                },
            ],
            id="several",
        ),
    ],
)
def test_a_correction_replaces_one_field(
    changes: Changes, field: str, published: object, acceptance: str
) -> None:
    made = _correct(changes, acceptance)
    assert made == CONTENT | {field: published}
    assert tuple(made) == FIELDS


@pytest.mark.parametrize(
    ("changes", "field", "said"),
    [
        pytest.param({"colour": _one("red")}, "colour", "no such field", id="unknown-field"),
        pytest.param({"document": _one("doc-1")}, "document", "no such field", id="reference"),
        pytest.param({"language": _one("xx1")}, "language", "two small letters", id="language"),
        pytest.param({"language": _one("English")}, "language", "two small", id="language-name"),
        pytest.param({"title": _one("x" * 201)}, "title", "3 to 200 characters", id="too-long"),
        pytest.param({"title": _one("ab")}, "title", "3 to 200 characters", id="too-short"),
        pytest.param({"title": _one("  ")}, "title", "characters", id="blank"),
        pytest.param({"title": _one("— — —")}, "title", "no letter", id="no-letter"),
        pytest.param({"title": _one("a\x1b[31mb")}, "title", "control characters", id="control"),
        pytest.param({"title": _one("a\ud800bc")}, "title", "characters", id="surrogate"),
        pytest.param({"title": (*_one("abc"), *_one("def"))}, "title", "found 2", id="two-titles"),
        pytest.param(
            {"product_identifiers": (*_one("DX-1"), *_one("DX-1"))},
            "product_identifiers",
            "repeated",
            id="repeated",
        ),
        pytest.param(
            {"product_identifiers": _one("extractor")},
            "product_identifiers",
            "shape of an identifier",
            id="a-word",
        ),
        pytest.param(
            {"product_identifiers": tuple(CorrectedValue(f"DX-{n}") for n in range(31))},
            "product_identifiers",
            "too many",
            id="a-catalogue",
        ),
        pytest.param(
            {"product_identifiers": _one("DX-20", (1, "the DX-200"))},
            "product_identifiers",
            "its own quote",
            id="another-quote",
        ),
        pytest.param({"title": _one("A title", (0, "A title"))}, "title", "page", id="page-zero"),
    ],
)
def test_what_could_not_be_published_is_refused(changes: Changes, field: str, said: str) -> None:
    with pytest.raises(CorrectionRefused, match=said) as refused:
        _correct(changes)
    assert refused.value.field == field
    for values in changes.values():
        assert all(len(v.value.strip()) < 5 or v.value not in str(refused.value) for v in values)


def test_what_is_not_corrected_is_not_judged() -> None:
    assert _correct({"title": _one("Another title")})["language"] == CONTENT["language"]
