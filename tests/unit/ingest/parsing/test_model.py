"""Offsets, cache keys and limits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_assets.ingest.parsing.model import (
    NO_OCR_DETAIL,
    PDF,
    Note,
    ParsedDocument,
    ParseFailure,
    ParseLimits,
    ParseOutcome,
    is_cacheable,
    place_pages,
)


def document(*texts: str, notes: tuple[Note, ...] = ()) -> ParsedDocument:
    pages = place_pages([(text, "text") for text in texts])
    return ParsedDocument(PDF, len(pages), pages, None, (), None, False, notes)


@given(st.lists(st.text(st.characters(exclude_characters="\f")), min_size=1))
def test_offsets_find_each_page_in_the_document_text(texts: list[str]) -> None:
    parsed = document(*texts)
    for page in parsed.pages:
        assert parsed.text[page.offset : page.offset + len(page.text)] == page.text
    assert parsed.text.split("\f") == texts


def test_limits_must_leave_something() -> None:
    assert ParseLimits(ocr_pages=0).ocr_pages == 0
    with pytest.raises(ValueError, match="cpu_seconds"):
        ParseLimits(cpu_seconds=0)
    with pytest.raises(ValueError, match="ocr_pages"):
        ParseLimits(ocr_pages=-1)


@pytest.mark.parametrize(
    ("outcome", "cacheable"),
    [
        pytest.param(document("x"), True, id="a document"),
        pytest.param(document("x", notes=("ocr_unavailable",)), False, id="no OCR here"),
        pytest.param(document("x", notes=("ocr_time_bounded",)), False, id="busy machine"),
        pytest.param(document("x", notes=("ocr_bounded",)), True, id="bounded by settings"),
        pytest.param(ParseFailure("too_slow", "x"), False, id="too slow"),
        pytest.param(ParseFailure("too_large", "x"), True, id="too large"),
        pytest.param(ParseFailure("no_text", NO_OCR_DETAIL), False, id="no text without OCR"),
        pytest.param(ParseFailure("no_text", "x"), True, id="no text"),
    ],
)
def test_is_cacheable(outcome: ParseOutcome, cacheable: bool) -> None:
    assert is_cacheable(outcome) is cacheable
