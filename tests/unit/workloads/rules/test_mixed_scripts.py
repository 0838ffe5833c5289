"""Words that mix look-alikes of several alphabets."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline_assets.workloads.rules.mixed_scripts import make_rule, mixes
from tests.unit.workloads.rules.placed import notes, placed
from tests.unit.workloads.rules.support import TITLE, answer, field

RULE = make_rule(("title", "description"), "product_identifiers")
NOTE = "mixes letters that look alike, of different alphabets, in one word"


@pytest.mark.parametrize(
    ("text", "whole", "expected"),
    [
        pytest.param("Dust Extractor", False, [], id="latin"),
        pytest.param("Пылесос", False, [], id="cyrillic"),
        pytest.param("Насос DX-20", False, [], id="a-word-each"),
        pytest.param("Du\u0455t", False, ["Du\u0455t"], id="cyrillic-in-latin"),
        pytest.param("\u0391ir pump", False, ["\u0391ir"], id="greek-in-latin"),
        pytest.param("10 μF, 5 kΩ, 3 μm", False, [], id="units"),
        pytest.param("取扱説明書DX", False, [], id="signs"),
        pytest.param("\u0410-DX", False, [], id="joined-are-two-words"),
        pytest.param("\u0410-DX", True, ["\u0410-DX"], id="joined-are-one-identifier"),
        pytest.param("DX-2\u041e", True, ["DX-2\u041e"], id="letter-for-a-digit"),
        pytest.param("ПМ-01", True, [], id="cyrillic-identifier"),
    ],
)
def test_mixed_words(text: str, whole: bool, expected: list[str]) -> None:
    assert mixes(text, whole=whole) == expected


@pytest.mark.parametrize(
    ("changes", "page", "told"),
    [
        pytest.param({}, TITLE, [], id="nothing"),
        pytest.param(
            {"title": field("Du\u0455t Extractor", TITLE)},
            TITLE,
            [("title", "review")],
            id="value",
        ),
        pytest.param(
            {"title": field("Du\u0455t Extractor", "Du\u0455t Extractor")},
            "Du\u0455t Extractor",
            [("title", "note")],
            id="printed-so",
        ),
        pytest.param(
            {"product_identifiers": [field("D\u0425-20", "the D\u0425-20")]},
            "the D\u0425-20",
            [("product_identifiers", "review")],
            id="identifier-printed-so",
        ),
        pytest.param(
            {"title": field(TITLE, "Du\u0455t Extractor DX-20")},
            TITLE,
            [("title", "review")],
            id="quote",
        ),
    ],
)
def test_findings(changes: dict[str, Any], page: str, told: list[tuple[str, str]]) -> None:
    found = notes(RULE, placed(answer(**changes), pages=(page,)))
    assert found == [(name, NOTE, severity) for name, severity in told]
