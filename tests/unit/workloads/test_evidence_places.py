"""Where quotes stand: the fast ways say the same as the slow one."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_assets.workloads.evidence_places import find_places, place_in
from pipeline_assets.workloads.text_folding import find_quote, fold
from pipeline_assets.workloads.workload import PLACE_SCHEMA

PAGE = "Über-Pumpe DX-20\nKeep  the\n\tfilter clean, 取扱説明 書. high-\nquality ends"


def places(*quotes: tuple[int, str], page: str = PAGE) -> list[tuple[bool, int | None, int | None]]:
    evidence = pl.DataFrame(
        [(0, "title", 0, number, quote) for number, quote in quotes],
        schema={
            "row": pl.Int64,
            "field": pl.String,
            "item": pl.Int64,
            "page": pl.Int64,
            "quote": pl.String,
        },
        orient="row",
    )
    texts = pl.DataFrame(
        {"row": [0], "page": [1], "text": [page]},
        schema={"row": pl.Int64, "page": pl.Int64, "text": pl.String},
    )
    found = find_places(evidence, texts)
    assert found.schema == pl.Schema(PLACE_SCHEMA)
    assert found["quote_no"].to_list() == list(range(len(quotes)))
    assert found["quote"].to_list() == [quote for _, quote in quotes]
    return found.select("has_page", "start", "end").rows()


@pytest.mark.parametrize(
    ("quote", "printed"),
    [
        pytest.param("DX-20", "DX-20", id="code-points-not-bytes"),
        pytest.param(" DX-20\n", "DX-20", id="blanks-around"),
        pytest.param("Über", "Über", id="at-the-start"),
        pytest.param("ends", "ends", id="at-the-end"),
        pytest.param("KEEP THE FILTER", "Keep  the\n\tfilter", id="case-and-white-space"),
        pytest.param("the filter clean", "the\n\tfilter clean", id="after-a-collapsed-run"),
        pytest.param("説明書", "説明 書", id="gap-between-signs"),
        pytest.param("high-quality", "high-\nquality", id="hyphen-at-a-line-end"),
        pytest.param("dx\u201120", "DX-20", id="other-hyphen"),
        pytest.param("D\u0425-20", None, id="homoglyph"),
        pytest.param("DX-21", None, id="other-number"),
        pytest.param("", None, id="empty"),
        pytest.param(" , - . ", None, id="marks-alone"),
        pytest.param("-", None, id="a-mark-that-stands-there"),
    ],
)
def test_a_quote(quote: str, printed: str | None) -> None:
    (place,) = places((1, quote))
    if printed is None:
        assert place == (True, None, None)
    else:
        at = PAGE.index(printed)
        assert place == (True, at, at + len(printed))


def test_the_order_stays_and_a_missing_page_is_told() -> None:
    assert places((2, "DX-20"), (1, "DX-20"), (1, "nothing"), (1, "Keep")) == [
        (False, None, None),
        (True, 11, 16),
        (True, None, None),
        (True, 17, 21),
    ]


def test_no_quotes() -> None:
    assert places() == []


TEXTS = st.text(alphabet="aB-1 \n\té取İß\u0301\u2011.", max_size=24)


@given(TEXTS, TEXTS)
def test_the_fast_ways_find_what_folding_finds(page: str, quote: str) -> None:
    ((_, start, end),) = places((1, quote), page=page)
    worded = any(character.isalnum() for character in quote)
    slow = find_quote(page, quote) if worded else None
    if start is None or end is None:
        assert slow is None
        assert place_in(page, quote) is None
    else:
        # Less is folded on the fast way, so it may find words that hyphenation would tear apart.
        assert slow is not None or _spaced(quote) in _spaced(page)
        printed = page[start:end]
        assert (
            _spaced(quote) == _spaced(printed)
            or fold(quote)
            in (
                fold(printed),
                fold(printed, keep_line_end_hyphens=True),
            )
            or fold(quote, keep_line_end_hyphens=True) == fold(printed, keep_line_end_hyphens=True)
        )


def _spaced(text: str) -> str:
    return " ".join(text.split()).lower()
