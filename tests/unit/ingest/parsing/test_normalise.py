"""One canonical spelling of page text."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_assets.ingest.parsing.normalise import control_share, normalise


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        pytest.param("one\r\ntwo", "one\ntwo", id="windows line ends"),
        pytest.param("one\ttwo\r \u00a0three", "one two three", id="tab, lone CR, no-break space"),
        pytest.param("discon\ufffe\r\nnected", "disconnected", id="pdfium's soft hyphen joins"),
        pytest.param("discon\u00ad\nnected", "disconnected", id="soft hyphen at a line's end"),
        pytest.param("LT-\u00ad51229", "LT-51229", id="soft hyphen inside a line"),
        pytest.param("mode-\nselect", "mode-\nselect", id="a hard hyphen stays"),
        pytest.param("\ufb01x o\ufb03ce \ufb02ow", "fix office flow", id="Latin ligatures"),
        pytest.param("\ufefb", "لا", id="Arabic presentation form"),
        pytest.param("\u2f8f\u884c", "行行", id="CJK radical"),
        pytest.param("x² ½ ™ Ⅳ", "x² ½ ™ Ⅳ", id="other compatibility characters stay"),
        pytest.param("e\u0301", "é", id="NFC"),
        pytest.param("a\x00b\x14c\ud800d", "abcd", id="controls and lone surrogates go"),
        pytest.param("\uf0b7 item", "• item", id="Symbol font bullet"),
        pytest.param("a  \n\n\n \n  b", "a\n\nb", id="one empty line at most"),
        pytest.param(" \n\n", "", id="nothing but space"),
        pytest.param("𝔘 \U0001f4d8", "𝔘 \U0001f4d8", id="astral characters stay"),
    ],
)
def test_normalise(raw: str, expected: str) -> None:
    assert normalise(raw) == expected


@given(st.text())
def test_normalised_text_is_stable_and_storable(raw: str) -> None:
    text = normalise(raw)
    assert normalise(text) == text
    assert unicodedata.is_normalized("NFC", text)
    text.encode("utf-8")
    assert control_share(text) == 0
    assert not {"\f", "\r", "\t", "\x00"} & set(text)


def test_control_share_counts_what_no_text_has() -> None:
    assert control_share("") == 0
    assert control_share("\t\r\n\f\x02") == 0
    assert control_share("a\x14b\x15") == 0.5
