"""Identifiers that are a piece of what the page prints."""

from __future__ import annotations

import polars as pl
import pytest

from pipeline_assets.workloads.equipment_manuals.rules.identifier_whole import RULE
from tests.unit.workloads.rules.placed import notes, placed
from tests.unit.workloads.rules.support import answer, field

CUT = [("product_identifiers", "is a piece of a longer number on the page", "review")]


@pytest.mark.parametrize(
    ("value", "page", "quote", "cut"),
    [
        pytest.param("XT-100", "Pump XT-100 Manual", "XT-100", False, id="a-word"),
        pytest.param("XT-100", "PUMP\nXT-100\nManual", "XT-100", False, id="a-line"),
        pytest.param("XT-100", "Pump XT-1000 Manual", "XT-100", True, id="quote-cut-behind"),
        pytest.param("T-100", "Pump XT-100 Manual", "T-100", True, id="quote-cut-before"),
        pytest.param("XT-100", "Pump XT-100-B2", "Pump XT-100-B2", True, id="suffix-with-digit"),
        pytest.param("XT-100", "Pump XT-100-XL", "Pump XT-100-XL", True, id="suffix-of-capitals"),
        pytest.param("XT-100", "XT-100-Serie", "XT-100-Serie", False, id="word-as-suffix"),
        pytest.param("100-B2", "Pump XT-100-B2", "Pump XT-100-B2", True, id="prefix"),
        pytest.param("XT-100", "XT-100+", "XT-100+", True, id="plus"),
        pytest.param("XT-100+", "XT-100+ pump", "XT-100+", False, id="with-its-plus"),
        pytest.param("XT-100", "XT-100+filter", "XT-100+filter", False, id="plus-another"),
        pytest.param("XT-100", "XT-100/XT-200", "XT-100/XT-200", False, id="slash-another"),
        pytest.param("XT-200", "XT-100/XT-200", "XT-100/XT-200", False, id="behind-a-slash"),
        pytest.param("XT-100", "XT-100/2", "XT-100/2", True, id="slash-digit"),
        pytest.param("XT-1", "XT-1.5 pump", "XT-1.5", True, id="decimal"),
        pytest.param("XT-1", "The XT-1. 5 are new", "XT-1.", False, id="end-of-a-sentence"),
        pytest.param("XT-100", "XT-1000, later XT-100", "XT-1000, later XT-100", False, id="both"),
        pytest.param("XT-100", "ポンプXT-100取扱", "XT-100", False, id="signs-without-spaces"),
        pytest.param("XT 100", "Pump XT\n100", "XT\n100", False, id="line-break"),
        pytest.param("xt\u2011100", "Pump XT-100.", "XT-100", False, id="case-and-hyphen"),
        pytest.param("XT-100", "another page", "XT-100", False, id="quote-astray"),
        pytest.param("YY-1", "Pump XT-100", "Pump XT-100", False, id="not-there-another-rules"),
    ],
)
def test_pieces(value: str, page: str, quote: str, cut: bool) -> None:
    seen = placed(answer(product_identifiers=[field(value, quote)]), pages=(page,))
    assert notes(RULE, seen) == (CUT if cut else [])


def test_one_whole_place_is_enough() -> None:
    entry = answer(product_identifiers=[field("XT-1", (1, "XT-1"), (2, "XT-1"))])
    assert notes(RULE, placed(entry, pages=("the XT-1000", "the XT-1"))) == []


def test_no_answers() -> None:
    assert RULE.check(placed()).schema == {"row": pl.Int64, "field": pl.String, "note": pl.String}
