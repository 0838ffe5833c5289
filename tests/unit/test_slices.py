"""The slice of a document, from what its parse says."""

from __future__ import annotations

from itertools import product
from typing import Any

import polars as pl
import pytest

from pipeline_assets.slices import LANGUAGES, SLICE_FACTS, slices
from resources.ledger.quality_samples import CANDIDATE_SCHEMA, STANDING_SCHEMA

MOST_SLICES = 40


def facts(*rows: tuple[Any, ...]) -> pl.DataFrame:
    return pl.DataFrame(list(rows), schema=SLICE_FACTS, orient="row")


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        pytest.param(("de", 1, "", 0), "de/short/text", id="leaflet"),
        pytest.param(("en", 5, "", 0), "en/short/text", id="last-short"),
        pytest.param(("en", 6, "", 0), "en/medium/text", id="first-medium"),
        pytest.param(("en", 40, "repaired", 0), "en/medium/text", id="last-medium"),
        pytest.param(("ja", 41, "", 0), "ja/long/text", id="first-long"),
        pytest.param(("fi", 8, "", 0), "other/medium/text", id="other-language"),
        pytest.param((None, 8, "", 0), "unknown/medium/text", id="language-unknown"),
        pytest.param(("de", 3, "charset_guessed ocr", 0), "any/short/ocr", id="scan"),
        pytest.param(("de", 3, "ocr_unavailable", 0), "de/short/text", id="other-note"),
        pytest.param(("de", 99, "ocr ocr_bounded", 1), "any/long/partial", id="text-missing"),
        pytest.param((None, None, None, None), "unparsed", id="no-parse"),
    ],
)
def test_slice(row: tuple[Any, ...], expected: str) -> None:
    assert slices(facts(row)).to_list() == [expected]


def test_slices_are_few_and_every_document_has_one() -> None:
    languages = (None, "", "fi", *LANGUAGES)
    rows = product(languages, (None, 0, 5, 40, 2_000), ("", "ocr", "repaired"), (0, 1))
    found = slices(facts(*rows))
    assert found.null_count() == 0
    assert found.n_unique() <= MOST_SLICES
    assert max(map(len, found)) <= 96


def test_no_document_no_slice() -> None:
    assert slices(facts()).is_empty()


def test_what_the_ledger_reads_holds_the_facts() -> None:
    for schema in (CANDIDATE_SCHEMA, STANDING_SCHEMA):
        assert SLICE_FACTS.items() <= schema.items()
