"""Document text on a terminal: nothing that moves the cursor or turns the reading direction."""

from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_assets.account.plain_text import json_safe, lines, one_line

DANGEROUS = "\x1b\x07\x00\x7f\x9b\u2028\u202e\u2066\u200b\ufeff\ud800\U000e0041"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("Größe 5 µm, 取扱説明書, руководство", None, id="letters-stay"),
        pytest.param("a\x1b[31mb", r"a\u{1b}[31mb", id="colour"),
        pytest.param("a\u202eb", r"a\u{202e}b", id="right-to-left-override"),
        pytest.param("a\nb\tc", r"a\u{a}b\u{9}c", id="line-end"),
        pytest.param("می\u200cخواهم", None, id="joiner-stays"),
        pytest.param("x\udcffy", r"x\u{dcff}y", id="lone-surrogate"),
    ],
)
def test_one_line(text: str, shown: str | None) -> None:
    assert one_line(text) == (text if shown is None else shown)


def test_lines_keep_line_ends_and_tabs() -> None:
    assert lines("a\n\tb\x1b\r") == "a\n\tb\\u{1b}\\u{d}"


@given(st.text(alphabet=st.characters() | st.sampled_from(DANGEROUS)))
def test_nothing_dangerous_is_left(text: str) -> None:
    for shown in (one_line(text), lines(text).replace("\n", "").replace("\t", "")):
        assert not set(shown) & set(DANGEROUS)
        assert all(unicodedata.category(character) not in ("Cc", "Cs") for character in shown)


@given(st.dictionaries(st.text(), st.text(alphabet=st.characters(exclude_categories=["Cs"]))))
def test_safe_json_means_the_same(value: dict[str, str]) -> None:
    encoded = json.dumps(value, ensure_ascii=False)
    shown = json_safe(encoded)
    assert json.loads(shown) == value
    assert not set(shown) & set(DANGEROUS)
