"""Which raw names may stand behind a path, and where to look for them."""

from __future__ import annotations

import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.sources.document_id import (
    DocumentIdError,
    document_id,
    escape_path,
    exact_document_id,
    shortened_document_id,
)
from resources.sources.spelling import (
    FOLDING_TO_ASCII,
    folded,
    likely_spellings,
    may_be_spelt_otherwise,
    spelt,
    starts,
)

# Signs that compose, decompose, reorder or fold, and some that do nothing of it.
SIGNS = (
    "aeKk;`/ <=\u00e9e\u0301\u0302\u0323\u1ec7\u00c5\u212b\u212a\u037e\u1fef\u0344\u0338\u226e"
    "\uac00\u1100\u1161\u11a8\u2126\u0958\ufb1d\u1e9b\u0307\udcff\U0001d15e"
)
raw_names = st.text(alphabet=SIGNS, min_size=1, max_size=12).map(
    lambda text: text.encode("utf-8", "surrogateescape")
)


def test_the_signs_that_fold_to_ascii_are_all_there_are() -> None:
    found = {
        composed: chr(sign)
        for sign in range(0x80, sys.maxunicode + 1)
        if (composed := unicodedata.normalize("NFC", chr(sign))).isascii()
    }
    assert found == FOLDING_TO_ASCII


@given(raw_names)
def test_every_spelling_begins_as_is_said(raw: bytes) -> None:
    path = folded(raw)
    assert escape_path(path) == escape_path(raw)
    if raw != path:
        assert may_be_spelt_otherwise(path)
        text = raw.decode("utf-8", "surrogateescape")
        assert any(text.startswith(start) for start in starts(path))


def test_every_single_sign_begins_as_is_said() -> None:
    for sign in map(chr, range(0x80, sys.maxunicode + 1)):
        if unicodedata.is_normalized("NFC", sign) or "\ud800" <= sign <= "\udfff":
            continue
        text = f"ab{sign}\u0301"
        assert any(text.startswith(start) for start in starts(folded(text.encode()))), ascii(text)


@given(raw_names)
def test_the_composed_and_the_decomposed_name_are_likely(raw: bytes) -> None:
    text = raw.decode("utf-8", "surrogateescape")
    for form in ("NFC", "NFD"):
        name = unicodedata.normalize(form, text).encode("utf-8", "surrogateescape")
        assert name in likely_spellings(folded(raw))


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (b"plain/name.txt", []),
        (b"a;b", ["a\u037e"]),
        (b"5 KK", ["5 \u212a", "5 K\u212a"]),
        ("K/caf\u00e9".encode(), ["\u212a", "K/ca"]),
        ("\u00e9".encode(), [""]),
    ],
)
def test_starts(path: bytes, expected: list[str]) -> None:
    assert starts(path) == expected
    assert may_be_spelt_otherwise(path) == bool(expected)


def test_what_an_id_says() -> None:
    raw = "cafe\u0301".encode()
    ordinary = spelt(document_id("s", raw))
    assert (ordinary.exact, ordinary.may_differ()) == (False, True)
    assert ordinary.likely() == ["caf\u00e9".encode(), raw]
    exact = spelt(exact_document_id("s", raw))
    assert (exact.exact, exact.may_differ(), exact.likely()) == (True, False, [raw])
    escaped = spelt(document_id("s", b"a@b\xff"))
    assert (escaped.exact, escaped.path) == (False, b"a@b\xff")
    with pytest.raises(DocumentIdError):
        spelt(shortened_document_id("s", b"x" * 3_000))
