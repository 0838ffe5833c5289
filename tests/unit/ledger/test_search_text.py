"""Folding and cutting text into search tokens."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.ledger.search_text import (
    MAX_QUERY_LENGTH,
    MAX_TOKEN_LENGTH,
    MAX_TOKENS,
    query_terms,
    tokens,
)

TEXTS = [
    pytest.param("Model QRV-100/2.5, Rev.B", "model qrv-100/2.5 rev.b", id="part numbers whole"),
    pytest.param("-100- /x/ .5.", "100 x 5", id="joiners only inside"),
    pytest.param("Crème BRÛLÉE Ångström", "creme brulee angstrom", id="accents and case"),
    pytest.param("Bedienungsanleitung für Öfen", "bedienungsanleitung fur ofen", id="umlauts"),
    pytest.param("İSTANBUL", "istanbul", id="dotted I"),
    pytest.param("ΟΔΟΣ οδός", "οδοσ οδοσ", id="both small sigmas"),
    pytest.param("取扱説明書 ABC", "取 扱 説 明 書 abc", id="Han characters one by one"),
    pytest.param("ガス カス", "ガ ス カ ス", id="sound marks tell words apart"),
    pytest.param("\uff76\uff9e\uff7d", "ガ ス", id="half-width kana"),
    pytest.param("カ\u3099ス", "ガ ス", id="decomposed kana"),
    pytest.param("スーパー", "ス ー パ ー", id="length mark"),
    pytest.param("한국어", "한 국 어", id="Hangul syllables"),
    pytest.param("हिन्दी", "हिन्दी", id="vowels of Indian scripts stay"),
    pytest.param("מַדְרִיךְ", "מדריך", id="Hebrew points go"),
    pytest.param("دَلِيل", "دليل", id="Arabic vowel marks go"),
    pytest.param("Pump™ Filter℠ Oil®", "pump filter oil", id="trade signs are no letters"),
    pytest.param(
        "Bedien\u00adungs\u200banleitung", "bedienungsanleitung", id="invisible characters"
    ),
    pytest.param("QRV\u2011100 A\u2010B", "qrv-100 a-b", id="hyphens of Unicode"),
    pytest.param("ＱＲＶ－１００", "qrv-100", id="full-width forms"),
    pytest.param("m² ﬁlter", "m2 filter", id="compatibility forms"),
    pytest.param('it\'s C:\\temp "x" (y)', "it s c temp x y", id="punctuation cuts"),
    pytest.param("", "", id="empty"),
    pytest.param(" \n\t… — '", "", id="nothing to find"),
    pytest.param(None, "", id="null"),
    pytest.param("\u3099 \u093f\u093f x", "x", id="marks without a letter"),
    pytest.param("a", "a", id="one letter"),
    pytest.param("𝐁old 𠮷野", "bold 𠮷 野", id="astral characters"),
]

QUERIES = [
    pytest.param("", [], id="empty"),
    pytest.param("  \n ", [], id="blank"),
    pytest.param("… --- ''", [], id="nothing but punctuation"),
    pytest.param("Water Pump", [["water"], ["pump"]], id="two terms"),
    pytest.param("QRV-100", [["qrv-100"]], id="part number"),
    pytest.param("説明書", [["説", "明", "書"]], id="a word of characters is a phrase"),
    pytest.param("o'neil", [["o", "neil"]], id="a cut word is a phrase"),
    pytest.param("a AND b", [["a"], ["and"], ["b"]], id="operators are words"),
]


def fold(text: str | None) -> str:
    frame = pl.DataFrame({"text": [text]}, schema={"text": pl.String})
    return frame.select(tokens(pl.col("text")))["text"].item()


@pytest.mark.parametrize(("text", "expected"), TEXTS)
def test_text_becomes_tokens(text: str | None, expected: str) -> None:
    assert fold(text) == expected


@pytest.mark.parametrize(("query", "expected"), QUERIES)
def test_a_query_becomes_terms(query: str, expected: list[list[str]]) -> None:
    assert query_terms(query) == expected


def test_a_query_is_bounded() -> None:
    assert query_terms("a" + " b" * MAX_QUERY_LENGTH) == [["a"]] + [["b"]] * (
        (MAX_QUERY_LENGTH - 1) // 2
    )


def test_a_field_is_bounded() -> None:
    assert fold("x" * (MAX_TOKEN_LENGTH + 9) + " y") == "x" * MAX_TOKEN_LENGTH + " y"
    assert fold("ab " * (MAX_TOKENS + 9)) == " ".join(["ab"] * MAX_TOKENS)


@given(st.text(max_size=40))
def test_tokens_hold_neither_blanks_nor_anything_a_query_language_knows(text: str) -> None:
    found = fold(text)
    assert "  " not in found
    assert found == found.strip()
    assert not set(found) & set("'\"\\&|!():*<>^+\t\n\x00")


@given(st.text(max_size=40))
def test_folding_what_is_folded_changes_nothing(text: str) -> None:
    once = fold(text)
    assert fold(once) == once


@given(st.lists(st.text(st.characters(max_codepoint=126)), min_size=1, max_size=20))
def test_the_short_way_of_plain_text_is_the_long_way(texts: list[str]) -> None:
    """One letter beyond ASCII sends a text through the whole folding; the tokens stay the same."""
    frame = pl.DataFrame({"short": texts, "long": [f"{text} é" for text in texts]})
    found = frame.select(tokens(pl.col("short")), tokens(pl.col("long")))
    for short, long in found.iter_rows():
        assert f"{short} e".strip() == long
