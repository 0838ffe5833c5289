"""The text of a row: its normal form, its checksum, and ids made from keys."""

from __future__ import annotations

import hashlib
import re
import unicodedata

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.sources.document_id import (
    MAX_DOCUMENT_ID_BYTES,
    DocumentIdError,
    document_id,
    parse_document_id,
    shortened_document_id,
)
from resources.sources.row_text import (
    collision_id,
    is_no_key,
    keyless_id,
    normal_text,
    row_checksums,
    row_ids,
    row_texts,
)

# Characters that one of the rules is about, and some that none is.
CHARACTERS = st.text(
    st.sampled_from(
        "ab \t\n\r\x00\x07\x0b\x0c\x1f\x7f\x85\x9b\u2028\u2029\u00a0\u3000e\u0301ñ漢😀"
    ),
    max_size=25,
)


def texts(*values: str | None) -> pl.Series:
    return pl.Series(values, dtype=pl.String)


def naive(value: str | None) -> str:
    """The normal form, by the rules as they are told."""
    text = re.sub("\r\n?|[\x0b\x0c\x85\u2028\u2029]", "\n", value or "")
    text = "".join(c for c in text if c in "\n\t" or unicodedata.category(c) != "Cc")
    lines = [line.rstrip() for line in unicodedata.normalize("NFC", text).split("\n")]
    return "\n".join(lines).strip("\n")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param(None, "", id="null"),
        pytest.param("", "", id="empty"),
        pytest.param(" \t\r\n \u00a0", "", id="nothing-but-blanks"),
        pytest.param("a\r\nb\rc\n", "a\nb\nc", id="line-ends"),
        pytest.param("a\u2028b\u0085c\x0cd", "a\nb\nc\nd", id="rare-line-ends"),
        pytest.param("a  \nb\t\n\nc", "a\nb\n\nc", id="blanks-at-line-ends"),
        pytest.param("  a\n\tb", "  a\n\tb", id="indents-stay"),
        pytest.param("\n\na", "a", id="empty-lines-at-the-start"),
        pytest.param("a\x00b\x1b[0m\x7f", "ab[0m", id="controls"),
        pytest.param("e\u0301", "\u00e9", id="composed"),
        pytest.param("e\x00\u0301", "\u00e9", id="composed-across-a-control"),
        pytest.param("\ufb01 \u2460", "\ufb01 \u2460", id="compatibility-stays"),
    ],
)
def test_normal_form(value: str | None, expected: str) -> None:
    assert normal_text(texts(value)).to_list() == [expected]


@given(st.lists(st.none() | CHARACTERS, max_size=5))
def test_normal_form_by_the_rules_and_settled(values: list[str | None]) -> None:
    once = normal_text(texts(*values))
    assert once.to_list() == [naive(value) for value in values]
    assert normal_text(once).to_list() == once.to_list()


def test_one_column_is_its_value_alone() -> None:
    assert row_texts([("body", texts("a ", None))]).to_list() == ["a", ""]


def test_several_columns_are_paragraphs_without_the_empty_ones() -> None:
    subject = texts("Stuck", None, "  ", None)
    body = texts("It is.\r\nReally.", "Only this", "And this", "")
    assert row_texts([("Subject", subject), ("body", body)]).to_list() == [
        "Subject: Stuck\n\nbody: It is.\nReally.",
        "body: Only this",
        "body: And this",
        "",
    ]


def test_checksum_is_of_the_bytes() -> None:
    assert row_checksums(texts("é", "")).to_list() == [
        hashlib.sha256("é".encode()).hexdigest(),
        hashlib.sha256(b"").hexdigest(),
    ]


@pytest.mark.parametrize(
    ("key", "blank"),
    [(None, True), ("", True), (" \t\n", True), ("\u00a0", True), ("0", False), (" a ", False)],
)
def test_blank_keys(key: str | None, blank: bool) -> None:
    assert is_no_key(texts(key)).to_list() == [blank]


@given(st.lists(st.text(min_size=1, max_size=20), min_size=1, max_size=8))
def test_ids_are_those_of_the_grammar(keys: list[str]) -> None:
    ids = row_ids("tickets", texts(*keys))
    assert ids["document_id"].to_list() == [document_id("tickets", key.encode()) for key in keys]
    assert not ids["too_long"].any()


@pytest.mark.parametrize("letter", ["k", "ä"], ids=["plain", "escaped"])
def test_longest_key_and_one_too_long(letter: str) -> None:
    room = (MAX_DOCUMENT_ID_BYTES - len("t/")) // len(letter.encode())
    ids = row_ids("t", texts(letter * room, letter * (room + 1), "a"))
    assert ids["too_long"].to_list() == [False, True, False]
    assert ids["document_id"].to_list() == [
        f"t/{letter * room}",
        shortened_document_id("t", (letter * (room + 1)).encode()),
        "t/a",
    ]


@given(st.text(min_size=1, max_size=300), st.text(max_size=5), st.text(max_size=5))
def test_names_of_rows_that_are_no_documents(key: str, one: str, other: str) -> None:
    names = {collision_id("t", key.encode(), one), collision_id("t", key.encode(), other)}
    assert len(names) == len({one, other})
    for name in (*names, keyless_id("t", 7)):
        assert len(name.encode()) <= MAX_DOCUMENT_ID_BYTES
        assert name not in row_ids("t", texts(key, name, name[2:]))["document_id"]
        with pytest.raises(DocumentIdError, match="shortened"):
            parse_document_id(name)
