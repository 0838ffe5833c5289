"""Snippets: terms are found where the ledger's search finds them."""

from __future__ import annotations

from itertools import pairwise

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_assets.account.snippet import WIDTH, _tokens, find_terms, snippet
from resources.ledger.search_text import query_terms, tokens


@pytest.mark.parametrize(
    ("text", "query", "shown"),
    [
        pytest.param("Water Pump WP-100", "pump", "Water [Pump] WP-100", id="word"),
        pytest.param("Water Pump WP-100", "wp-100 water", "[Water] Pump [WP-100]", id="two"),
        pytest.param("Wärmeschrank Größe", "warmeschrank", "[Wärmeschrank] Größe", id="accent"),
        pytest.param("Wa\u0308rme", "wärme", "[Wa\u0308rme]", id="decomposed"),
        pytest.param("使用説明書です", "説明", "使用[説明]書です", id="inside-a-sentence"),
        pytest.param("pumps and pump", "pump", "pumps and [pump]", id="whole-words"),
        pytest.param("see (WP-100).", "wp-100", "see ([WP-100]).", id="punctuation"),
        pytest.param("a\x1b[1mpump", "pump", r"a\u{1b}[1mpump", id="escape-is-shown"),
        pytest.param("two\nlines  of pump", "pump", "two lines of [pump]", id="white-space"),
        pytest.param("nothing of it", "pump", "nothing of it", id="no-match"),
    ],
)
def test_marks(text: str, query: str, shown: str) -> None:
    assert snippet([text], query_terms(query)) == shown


def test_the_first_text_with_a_term_is_shown() -> None:
    terms = query_terms("pump")
    assert snippet(["nothing", "a pump"], terms) == "a [pump]"
    assert snippet(["", "nothing"], terms) == "nothing"
    assert snippet(["", " "], terms) == ""


def test_a_long_text_is_cut_around_the_term() -> None:
    text = "word " * 100 + "pump " + "word " * 100
    shown = snippet([text], query_terms("pump"))
    assert shown.startswith("…")
    assert shown.endswith("…")
    assert "[pump]" in shown
    assert len(shown) <= WIDTH + 4


LETTERS = st.text(alphabet="aäÖßé-/. 0x7漢カ가ﬁ²ⅧА́\n,(", max_size=30)


@given(LETTERS)
def test_tokens_are_those_of_the_ledger(text: str) -> None:
    ledger = pl.DataFrame({"t": [text]}).select(tokens(pl.col("t"))).item()
    assert " ".join(token for token, _, _ in _tokens(text)) == ledger


@given(LETTERS, LETTERS)
def test_what_is_marked_is_in_the_text_in_order(text: str, query: str) -> None:
    spans = find_terms(text, query_terms(query))
    assert all(0 <= start < end <= len(text) for start, end in spans)
    assert all(one[1] <= two[0] for one, two in pairwise(spans))
