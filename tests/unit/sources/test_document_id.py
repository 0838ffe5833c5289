"""The grammar of document ids: spelling, round trips, uniqueness, refusals."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.sources.document_id import (
    MAX_DOCUMENT_ID_BYTES,
    DocumentIdError,
    DocumentIdTooLong,
    check_source_name,
    document_id,
    exact_document_id,
    parse_document_id,
    shortened_document_id,
)

FORBIDDEN_CODE_POINTS = {
    *map(ord, "@:"),
    *range(0x20),
    *range(0x7F, 0xA0),
    0x061C,
    0x200E,
    0x200F,
    *range(0x2028, 0x202F),
    *range(0x2066, 0x206A),
}

# Random bytes hardly ever fold; these pieces do, and stress the escapes around them.
PIECES = st.sampled_from(
    [
        b"/", b"a", b"K", b":", b"@", b"%", b"%3A", b"\xff", b"\xcc", b"\n", b"\x7f",
        "\u00e4".encode(), "a\u0308".encode(), "\u0301".encode(), "\u0323".encode(),
        "\u212a".encode(), "\u202e".encode(), "\u0085".encode(), "\U0001f4d8".encode(),
        b"\xed\xa0\x80", "\uac00".encode(), "\u1100\u1161".encode(),
    ]
)  # fmt: skip
PATHS = st.one_of(
    st.binary(min_size=1, max_size=60),
    st.text(min_size=1, max_size=30, alphabet=st.characters(codec="utf-8")).map(str.encode),
    st.lists(PIECES, min_size=1, max_size=12).map(b"".join),
)
NAMES = st.from_regex(r"[a-z0-9][a-z0-9_-]{0,30}", fullmatch=True)


def folded(path: bytes) -> bytes:
    text = path.decode("utf-8", "surrogateescape")
    return unicodedata.normalize("NFC", text).encode("utf-8", "surrogateescape")


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        pytest.param(b"a/b c.pdf", "docs/a/b c.pdf", id="plain"),
        pytest.param(b"a@b:c%d.pdf", "docs/a%40b%3Ac%25d.pdf", id="separators"),
        pytest.param(b"new\nline\x00\x7f", "docs/new%0Aline%00%7F", id="controls"),
        pytest.param("\u0085".encode(), "docs/%C2%85", id="c1_control"),
        pytest.param("x\u2028y\u2029".encode(), "docs/x%E2%80%A8y%E2%80%A9", id="line_separators"),
        pytest.param("\u202efdp".encode(), "docs/%E2%80%AEfdp", id="bidi_override"),
        pytest.param("\u2066\u2069".encode(), "docs/%E2%81%A6%E2%81%A9", id="bidi_isolates"),
        pytest.param(b"bad-\xff\xfe.pdf", "docs/bad-%FF%FE.pdf", id="not_utf8"),
        pytest.param(b"\xed\xa0\x80", "docs/%ED%A0%80", id="encoded_surrogate"),
        pytest.param("Gera\u0308t".encode(), "docs/Ger\u00e4t", id="nfd_becomes_nfc"),
        pytest.param(":\u0301b\u0301".encode(), "docs/%3A%CC%81b\u0301", id="mark_after_escape"),
        pytest.param("\u53d6\u6271".encode(), "docs/\u53d6\u6271", id="cjk_stays"),
    ],
)
def test_spelling(path: bytes, expected: str) -> None:
    assert document_id("docs", path) == expected


def test_exact_form_tells_compositions_apart() -> None:
    composed, decomposed = "Ger\u00e4t".encode(), "Gera\u0308t".encode()
    assert document_id("docs", composed) == document_id("docs", decomposed)
    assert exact_document_id("docs", composed) == "docs/Ger%C3%A4t"
    assert exact_document_id("docs", decomposed) == "docs/Gera%CC%88t"


@given(NAMES, PATHS)
def test_round_trip_gives_the_folded_path(name: str, path: bytes) -> None:
    assert parse_document_id(document_id(name, path)) == (name, folded(path))


@given(NAMES, PATHS)
def test_exact_form_round_trip_gives_the_very_bytes(name: str, path: bytes) -> None:
    assert parse_document_id(exact_document_id(name, path)) == (name, path)


@given(PATHS, PATHS)
def test_ids_are_equal_only_if_paths_fold_alike(first: bytes, second: bytes) -> None:
    same_id = document_id("docs", first) == document_id("docs", second)
    assert same_id == (folded(first) == folded(second))


@given(PATHS, PATHS)
def test_exact_form_meets_an_ordinary_id_only_within_a_collision(
    first: bytes, second: bytes
) -> None:
    if exact_document_id("docs", first) == document_id("docs", second):
        assert folded(first) == folded(second)


@given(PATHS, st.sampled_from([document_id, exact_document_id, shortened_document_id]))
def test_no_forbidden_characters(path: bytes, make: Callable[[str, bytes], str]) -> None:
    text = make("docs", path)
    assert not {ord(character) for character in text} & FORBIDDEN_CODE_POINTS
    assert unicodedata.is_normalized("NFC", text)
    assert text.encode("utf-8").decode("utf-8") == text


@given(PATHS, PATHS)
def test_a_folder_is_a_prefix_of_what_it_holds(folder: bytes, name: bytes) -> None:
    whole = document_id("docs", folder + b"/" + name)
    assert whole.startswith(document_id("docs", folder) + "/")


@pytest.mark.parametrize(
    "name", ["", "A", "-a", "_a", "a b", "a/b", "a:b", "a@b", "\u00e4", "a" * 32, "a\n"], ids=ascii
)
def test_unusable_source_names(name: str) -> None:
    with pytest.raises(DocumentIdError, match="rename the source"):
        check_source_name(name)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("docs", "expected <source name>/<path>", id="no_slash"),
        pytest.param("docs/", "expected <source name>/<path>", id="no_path"),
        pytest.param("Docs/a", "rename the source", id="bad_source"),
        pytest.param("docs/a%", "starts no escape", id="bare_percent"),
        pytest.param("docs/a%3", "starts no escape", id="half_escape"),
        pytest.param("docs/a%3a", "starts no escape", id="lower_case_escape"),
        pytest.param("docs/%61", "one permitted spelling", id="needless_escape"),
        pytest.param("docs/a:b", "one permitted spelling", id="unescaped_separator"),
        pytest.param("docs/a\u0308", "one permitted spelling", id="not_nfc"),
        pytest.param("docs/\ud800", "not valid Unicode", id="lone_surrogate"),
        pytest.param(f"docs/a%~{'0' * 64}", "shortened", id="shortened"),
    ],
)
def test_texts_that_are_no_id(text: str, message: str) -> None:
    with pytest.raises(DocumentIdError, match=message):
        parse_document_id(text)


@given(st.text(max_size=40))
def test_any_text_parses_to_its_own_spelling_or_is_refused(text: str) -> None:
    try:
        name, path = parse_document_id(text)
    except DocumentIdError:
        return
    assert text in (document_id(name, path), exact_document_id(name, path))


def test_empty_path_is_refused() -> None:
    with pytest.raises(DocumentIdError, match="empty path"):
        document_id("docs", b"")


def test_length_limit() -> None:
    fits = b"x" * (MAX_DOCUMENT_ID_BYTES - len("docs/"))
    assert len(document_id("docs", fits)) == MAX_DOCUMENT_ID_BYTES
    with pytest.raises(DocumentIdTooLong, match="shorter path"):
        document_id("docs", fits + b"x")
    shortened = {shortened_document_id("docs", fits + tail) for tail in (b"x", b"y")}
    assert len(shortened) == 2
    assert all(len(text) < MAX_DOCUMENT_ID_BYTES for text in shortened)
