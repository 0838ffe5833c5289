"""Looking for single words and numbers says the same as taking the whole text apart."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_assets.workloads.text_folding import fold
from pipeline_assets.workloads.text_support import (
    has_number,
    has_short_words,
    has_stem,
    missing_numbers,
    read_statement,
    share_of_stems,
    stems,
)

_PIECES = st.sampled_from(
    "pump pumps about follow follows following around arounds the a to of größe насоса 取扱説明 "
    "説明 é e\u0301 ab12cd foo_bar DX-20 1,200 12 V _ - . \u00ad".split(" ")
)
_TEXTS = st.lists(st.tuples(_PIECES, st.sampled_from(["", " ", "\n", "  "])), max_size=12).map(
    lambda parts: fold("".join(piece + gap for piece, gap in parts))
)


@given(_TEXTS, _TEXTS)
def test_a_stem_is_found_where_the_text_has_a_word_with_it(said: str, text: str) -> None:
    wanted, held = stems(said), stems(text)
    assert {stem for stem in wanted if has_stem(stem, text)} == wanted & held
    assert share_of_stems(wanted, text) == (len(wanted & held) / len(wanted) if wanted else 0.0)


@given(_TEXTS, _TEXTS, st.sampled_from([0.0, 1 / 3, 0.5, 0.55, 1.0]))
def test_short_words_are_whole_words(said: str, text: str, least: float) -> None:
    wanted, held = read_statement(said).short, read_statement(text).short
    enough = not wanted or len(wanted & held) / len(wanted) >= least
    assert has_short_words(wanted, text, least) is enough


@pytest.mark.parametrize(
    ("stem", "text", "held"),
    [
        pytest.param("pump", "a pump.", True, id="whole-word"),
        pytest.param("pump", "pumps", False, id="longer-word"),
        pytest.param("circul", "recirculates, circulates", True, id="second-place"),
        pytest.param("follow", "the following", False, id="word-that-supports-nothing"),
        pytest.param("follow", "the following follows", True, id="and-one-that-supports"),
        pytest.param("about", "about", False, id="empty-word"),
        pytest.param("説明", "取扱説明書", True, id="pair-of-signs"),
    ],
)
def test_has_stem(stem: str, text: str, held: bool) -> None:
    assert has_stem(stem, text) is held


@pytest.mark.parametrize(
    ("token", "text", "held"),
    [
        pytest.param("1200", "of 1,200 w", True, id="thousands-in-the-text"),
        pytest.param("1,200", "of 1200 w", True, id="thousands-in-the-token"),
        pytest.param("1200", "200 of 1", False, id="pieces-apart"),
        pytest.param("25.5", "25,5 l", True, id="decimal-comma"),
        pytest.param("25.5", "25 of 5", False, id="decimals-apart"),
        pytest.param("DX20", "dx - 20", True, id="joint"),
        pytest.param("DX20", "20 dx", False, id="parts-in-another-order"),
        pytest.param("50mm", "50 of them", False, id="short-name"),
        pytest.param("50-litre", "of 50 l", True, id="number-of-a-measure"),
        pytest.param("12x4", "4 by 12", True, id="product-of-numbers"),
        pytest.param("12x4", "4 by 13", False, id="one-of-two-missing"),
    ],
)
def test_has_number(token: str, text: str, held: bool) -> None:
    assert has_number(token, text) is held


@pytest.mark.parametrize(
    ("said", "text", "missing"),
    [
        pytest.param("Works at 230 volts.", "at 230 v", False, id="unit"),
        pytest.param("Works at 230 volts.", "at 230 w", True, id="other-unit"),
        pytest.param("Of the Series 3 family.", "series-3", False, id="numbered-name"),
        pytest.param("Of the Series 3 family.", "series 4, 3", True, id="number-of-another"),
        pytest.param("Has no number.", "", False, id="no-number"),
    ],
)
def test_missing_numbers(said: str, text: str, missing: bool) -> None:
    assert missing_numbers(read_statement(said), text) is missing
