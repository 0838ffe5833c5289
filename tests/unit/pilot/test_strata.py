"""Strata of documents, and which documents a pilot takes."""

from __future__ import annotations

import string
from collections.abc import Mapping
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_assets.pilot.errors import SampleTooSmall
from pipeline_assets.pilot.strata import (
    FACTS_SCHEMA,
    SHORT_BYTES,
    allocate,
    choose,
    places,
    strata,
)

UNPARSED: dict[str, Any] = {
    "document_id": "shop/a.pdf",
    "size": 100,
    "page_count": None,
    "language": None,
    "notes": None,
    "excluded": None,
}
PARSED: dict[str, Any] = {**UNPARSED, "page_count": 3, "language": "de", "notes": ""}


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        pytest.param(PARSED, "de/short/text", id="short-text"),
        pytest.param({**PARSED, "page_count": 5}, "de/short/text", id="last-short-page-count"),
        pytest.param({**PARSED, "page_count": 6}, "de/long/text", id="long"),
        pytest.param({**PARSED, "notes": "cut ocr"}, "de/short/scan", id="scan-keeps-language"),
        pytest.param({**PARSED, "notes": "ocrish"}, "de/short/text", id="another-note"),
        pytest.param({**PARSED, "language": "sv"}, "other/short/text", id="other-language"),
        pytest.param({**PARSED, "language": None}, "unknown/short/text", id="no-language"),
        pytest.param({**PARSED, "language": ""}, "unknown/short/text", id="empty-language"),
        pytest.param({**UNPARSED, "excluded": "encrypted"}, "malformed/encrypted", id="encrypted"),
        pytest.param({**PARSED, "excluded": "too_slow"}, "malformed/too_slow", id="too-slow"),
        pytest.param(UNPARSED, "unparsed/short/text", id="never-parsed"),
        pytest.param(
            {**UNPARSED, "size": SHORT_BYTES + 1}, "unparsed/long/text", id="never-parsed-large"
        ),
        pytest.param(
            {**UNPARSED, "document_id": "shop/A.JPG"}, "unparsed/short/scan", id="picture"
        ),
        pytest.param({**UNPARSED, "document_id": "rows/7"}, "unparsed/short/text", id="a-row"),
    ],
)
def test_a_document_has_a_stratum(facts: Mapping[str, Any], expected: str) -> None:
    frame = pl.DataFrame([dict(facts)], schema=FACTS_SCHEMA)
    assert strata(frame).to_list() == [expected]


@pytest.mark.parametrize(
    ("populations", "sample", "expected"),
    [
        pytest.param({"a": 10}, 4, {"a": 4}, id="one"),
        pytest.param({"a": 3}, 4, {"a": 3}, id="all-of-it"),
        pytest.param({"a": 90, "b": 10}, 10, {"a": 9, "b": 1}, id="in-proportion"),
        pytest.param({"a": 100, "b": 60}, 5, {"a": 3, "b": 2}, id="fewer-for-each-that-is-taken"),
        pytest.param({"a": 1000, "b": 1}, 5, {"a": 4, "b": 1}, id="a-rare-one-is-there"),
        pytest.param({"a": 1, "b": 1, "c": 1}, 3, {"a": 1, "b": 1, "c": 1}, id="one-each"),
        pytest.param({"a": 2, "b": 50}, 52, {"a": 2, "b": 50}, id="never-more-than-there-are"),
    ],
)
def test_shares(populations: dict[str, int], sample: int, expected: dict[str, int]) -> None:
    assert allocate(populations, sample) == expected


def test_too_few_for_the_strata() -> None:
    with pytest.raises(SampleTooSmall, match="expected at least 3"):
        allocate({"a": 5, "b": 5, "c": 5}, 2)


POPULATIONS = st.dictionaries(
    st.text(string.ascii_lowercase, min_size=1, max_size=3),
    st.integers(1, 300),
    min_size=1,
    max_size=12,
)


@given(populations=POPULATIONS, extra=st.integers(0, 200))
def test_every_stratum_is_there_and_the_size_is_right(
    populations: dict[str, int], extra: int
) -> None:
    sample = len(populations) + extra
    found = allocate(populations, sample)
    assert set(found) == set(populations)
    assert all(1 <= found[name] <= populations[name] for name in populations)
    assert sum(found.values()) == min(sample, sum(populations.values()))
    larger = allocate(populations, sample + 1)
    assert all(larger[name] >= found[name] for name in populations)


@given(populations=POPULATIONS, extra=st.integers(0, 30), seed=st.integers(0, 2**62))
def test_the_same_seed_gives_the_same_documents(
    populations: dict[str, int], extra: int, seed: int
) -> None:
    ids = [f"{name}/{number}" for name, count in populations.items() for number in range(count)]
    frame = pl.DataFrame({"document_id": ids}).with_columns(
        stratum=pl.col("document_id").str.split("/").list.first()
    )
    frame = frame.with_columns(places(frame["document_id"], seed).alias("place"))
    allocation = allocate(populations, len(populations) + extra)
    first = choose(frame, allocation)
    again = choose(frame.sample(fraction=1.0, shuffle=True, seed=1), allocation)
    assert first.equals(again)
    taken = dict(first.group_by("stratum").len().iter_rows())
    assert taken == allocation


def test_another_seed_gives_other_documents() -> None:
    ids = pl.Series([f"shop/{number}" for number in range(100)])
    frame = pl.DataFrame({"document_id": ids, "stratum": ["s"] * 100})
    first, second = (
        choose(frame.with_columns(places(ids, seed).alias("place")), {"s": 10}) for seed in (1, 2)
    )
    assert not first["document_id"].equals(second["document_id"])
