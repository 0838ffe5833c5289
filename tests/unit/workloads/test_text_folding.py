"""Folding: what counts as the same words, and where a quote stands in the raw page."""

from __future__ import annotations

import sys
import unicodedata

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pipeline_assets.workloads.text_folding import (
    find_quote,
    fold,
    fold_with_offsets,
    hyphens_matter,
)

# Characters that folding treats specially are drawn far more often than Unicode at large would.
TRICKY = st.text(
    alphabet=st.one_of(
        st.sampled_from(
            "aAbßİiıſ1-\u2010\u2011\u2013\u00ad\u0002\ufffe\u200b\ufeff \t\n\r\u00a0\u3000"
            "\u0085\u2028\u0301\u0345\u0308\u0327\u00a8\u00b4`'\u2019\u201c\u00ab\ufb01\uff21"
            "取扱説ガｶﾞ\u3099\uff9e\u1100\u1161\u11a8\uac00\uffa1\u0958\u09be\u1e9e\u03c3\u03c2"
        ),
        st.characters(exclude_categories=["Cs"]),
    ),
    max_size=30,
)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        pytest.param("User  Manual", "User\nManual", id="white space runs"),
        pytest.param(" User\u00a0Manual\r\n", "User Manual", id="no-break space and ends"),
        pytest.param("USER MANUAL", "User Manual", id="letter case"),
        pytest.param("Straße", "STRASSE", id="sharp s"),
        pytest.param("instal\u00adlation", "installation", id="soft hyphen"),
        pytest.param("instal\u00ad\nlation", "installation", id="soft hyphen at a line end"),
        pytest.param("instal\u0002\nlation", "installation", id="PDFium's hyphen mark"),
        pytest.param("instal-\nlation", "installation", id="hyphen at a line end"),
        pytest.param("instal\u2010\r\n  lation", "installation", id="typographic hyphen"),
        pytest.param("AB–12", "AB-12", id="en dash"),
        pytest.param("AB\u2011\u200b12", "AB-12", id="no-break hyphen, zero-width space"),
        pytest.param("the “big” one’s", 'the "big" one\'s', id="quotation marks"),
        pytest.param("«gros»", '"gros"', id="guillemets"),
        pytest.param("ﬁlter", "filter", id="ligature"),
        pytest.param("ＡＢ１２", "AB12", id="full width"),
        pytest.param("取扱\n説明 書", "取扱説明書", id="no space between Han characters"),
        pytest.param("cafe\u0301", "café", id="composed and decomposed"),
        pytest.param("USB-\nKabel", "USB-Kabel", id="hyphen before a capital stays"),
    ],
)
def test_same_words_fold_alike(left: str, right: str) -> None:
    assert fold(left) == fold(right)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        pytest.param("QX2", "QX3", id="digits"),
        pytest.param("AB-12", "AB12", id="a hyphen inside a line"),
        pytest.param("AB-\n12", "AB12", id="a hyphen before a digit at a line end"),
        pytest.param("user manual", "usermanual", id="a space between words"),
        pytest.param("설명 서", "설명서", id="Korean sets spaces"),
    ],
)
def test_different_words_stay_different(left: str, right: str) -> None:
    assert fold(left) != fold(right)


@given(TRICKY)
@example("a\u2011-\n\n-b")
def test_fold_is_idempotent(text: str) -> None:
    assert fold(fold(text)) == fold(text)


@given(TRICKY, st.booleans())
@settings(max_examples=300)
def test_offsets_belong_to_the_same_folded_text(text: str, keep: bool) -> None:
    folded = fold_with_offsets(text, keep_line_end_hyphens=keep)
    assert folded.text == fold(text, keep_line_end_hyphens=keep)
    assert len(folded.starts) == len(folded.ends) == len(folded.text)
    assert list(folded.starts) == sorted(folded.starts)
    assert all(
        0 <= start < end <= len(text) for start, end in zip(folded.starts, folded.ends, strict=True)
    )


@given(TRICKY)
@example("a-\u00ad\n\nb")
@example("a\u2010\r\nb")
def test_where_hyphens_do_not_matter_both_foldings_agree(text: str) -> None:
    if fold(text) != fold(text, keep_line_end_hyphens=True):
        assert hyphens_matter(text)


def test_ascii_folds_as_it_does_beside_other_letters() -> None:
    for sign in map(chr, range(128)):
        for text in (f"a{sign}B", f"a{sign}\n{sign}b", f"a-{sign}\nB"):
            assert f"{fold(text)} \u00e9" == fold(f"{text} \u00e9")


def test_pieces_are_cut_where_normalisation_never_joins() -> None:
    """Every character that can compose with the one before it stays in that one's piece."""
    for code in range(sys.maxunicode + 1):
        parts = unicodedata.decomposition(chr(code)).split()
        if len(parts) != 2 or parts[0].startswith("<"):
            continue
        second = chr(int(parts[1], 16))
        assert unicodedata.category(second)[0] == "M", f"U+{code:04X}"


@pytest.mark.parametrize(
    ("page", "quote", "found"),
    [
        pytest.param("The QX2 module", "QX2", "QX2", id="exact"),
        pytest.param("The  QX2\nmodule", "qx2 Module", "QX2\nmodule", id="folded"),
        pytest.param("x instal-\nlation y", "installation", "instal-\nlation", id="hyphenation"),
        pytest.param("a high-\nquality b", "high-quality", "high-\nquality", id="real hyphen"),
        pytest.param("取扱\n説明書", "取扱説明書", "取扱\n説明書", id="Japanese line break"),
        pytest.param("der ﬁlter ist", "filter", "ﬁlter", id="ligature is not cut"),
        pytest.param("cafe\u0301 noir", "CAFÉ", "cafe\u0301", id="decomposed"),
        pytest.param("\U0001f600 QX2", "QX2", "QX2", id="astral characters count as one"),
        pytest.param("one two", "  two\n", "two", id="quote with outer white space"),
    ],
)
def test_find_quote(page: str, quote: str, found: str) -> None:
    span = find_quote(page, quote)
    assert span is not None
    assert page[span[0] : span[1]] == found


@pytest.mark.parametrize(
    ("page", "quote"),
    [
        pytest.param("some text", "other", id="other words"),
        pytest.param("some text", "", id="empty quote"),
        pytest.param("some text", " \n\u200b", id="invisible quote"),
        pytest.param("", "text", id="empty page"),
        pytest.param("text", "text and more", id="longer than the page"),
    ],
)
def test_quote_that_is_not_there(page: str, quote: str) -> None:
    assert find_quote(page, quote) is None


@given(TRICKY, st.data())
def test_what_is_cut_out_of_a_page_is_found_on_it(page: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(page)))
    end = data.draw(st.integers(start, len(page)))
    quote = page[start:end]
    span = find_quote(page, quote)
    if not fold(quote.strip()):
        assert span is None
    else:
        assert span is not None
        assert fold(page[span[0] : span[1]]) == fold(quote)
