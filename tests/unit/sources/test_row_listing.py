"""Which rows are documents: exclusions, repeated keys, frames."""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Sequence

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resources.sources.document_id import document_id
from resources.sources.listing import LISTED_ROWS, LISTED_SCHEMA
from resources.sources.row_listing import (
    TEXT_ROWS,
    RowListing,
    RowRules,
    judge_rows,
    rows_schema,
    rows_with_ids,
    texts_of,
    vanished,
)
from resources.sources.row_text import collision_id, keyless_id

LIMIT = 12
RULES = RowRules("t", ("body",), LIMIT)
KEYS = st.sampled_from([None, "", " ", "a", "b", "ä", "a\u0308", "a:", "k" * 2001])
TEXTS = st.sampled_from([None, "", " ", "one", "two", "one ", "more than twelve"])


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def rows(
    given: Sequence[tuple[str | None, str | None]], first: int = 1, *, unread: bool = False
) -> pl.DataFrame:
    return pl.DataFrame(
        [
            (first + at, key, None, False, unread, None if unread else text)
            for at, (key, text) in enumerate(given)
        ],
        schema=rows_schema(1),
        orient="row",
    )


def listed(frames: Sequence[pl.DataFrame]) -> pl.DataFrame:
    listing = RowListing(RULES)
    found = [frame for part in frames for frame in listing.listed(part)]
    whole = pl.concat(found) if found else pl.DataFrame(schema=LISTED_SCHEMA)
    assert dict(whole.schema) == LISTED_SCHEMA
    assert listing.entries == whole.height
    assert whole["document_id"].is_unique().all()
    return whole


def verdict(given: Sequence[tuple[str | None, str | None]]) -> list[tuple[str, str | None]]:
    return listed([rows(given)]).select("document_id", "excluded").rows()


def naive(
    given: Sequence[tuple[str | None, str | None]],
) -> dict[str, tuple[str | None, str | None]]:
    """Document ids with checksum and reason, row by row."""
    found: dict[str, tuple[str | None, str | None]] = {}
    first: dict[str, str] = {}
    for number, (key, value) in enumerate(given, start=1):
        text = unicodedata.normalize("NFC", (value or "").rstrip())
        if key is None or not key.strip():
            found[keyless_id("t", number)] = (None, "no_key")
            continue
        if len(key) > 2000:
            name, reason = f"t/{key[:200]}%~{sha(key)}", "name_too_long"
        else:
            name = document_id("t", key.encode())
            reason = "empty" if not text else "too_large" if len(text) > LIMIT else None
        if name in first and first[name] != text:
            found[collision_id("t", key.encode(), sha(text))] = (None, "id_collision")
        elif name not in first:
            first[name] = text
            found[name] = (None if reason else sha(text), reason)
    return found


@settings(max_examples=60)
@given(st.lists(st.tuples(KEYS, TEXTS), max_size=30), st.integers(1, 30))
def test_listing_is_what_row_by_row_arithmetic_says(
    given: list[tuple[str | None, str | None]], size: int
) -> None:
    frames = [rows(given[at : at + size], at + 1) for at in range(0, len(given), size)]
    whole = listed(frames)
    found = {
        name: (checksum, excluded)
        for name, checksum, excluded in whole.select(
            "document_id", "checksum", "excluded"
        ).iter_rows()
    }
    assert found == naive(given)


@pytest.mark.parametrize(
    ("key", "text", "excluded"),
    [
        pytest.param("a", "text", None, id="document"),
        pytest.param("a", " \n", "empty", id="empty"),
        pytest.param("a", "x" * LIMIT, None, id="as-long-as-may-be"),
        pytest.param("a", "é" * LIMIT, "too_large", id="too-large-in-bytes"),
        pytest.param("k" * 2000, "text", "name_too_long", id="key-too-long"),
        pytest.param(None, "text", "no_key", id="null-key"),
        pytest.param("\t", "", "no_key", id="blank-key-speaks-before-empty"),
    ],
)
def test_reasons(key: str | None, text: str, excluded: str | None) -> None:
    whole = listed([rows([(key, text)])])
    assert whole["excluded"].to_list() == [excluded]
    assert whole["checksum"].is_null().to_list() == [excluded is not None]


def test_columns_of_a_document() -> None:
    row = listed([rows([("ä", "é ")])]).row(0, named=True)
    assert row == {
        "document_id": "t/ä",
        "place": "ä".encode(),
        "size": 2,
        "mtime_ns": 0,
        "device": "0",
        "inode": "0",
        "mark": None,
        "checksum": sha("é"),
        "excluded": None,
        "detail": "",
    }


def test_rows_with_one_key() -> None:
    assert verdict([("a", "one"), ("a", "one "), ("a", "two"), ("a", "two"), ("a", "three")]) == [
        ("t/a", None),
        (collision_id("t", b"a", sha("two")), "id_collision"),
        (collision_id("t", b"a", sha("three")), "id_collision"),
    ]


def test_keys_that_fold_to_one_id() -> None:
    assert verdict([("a\u0308", "one"), ("ä", "one"), ("ä", "two")]) == [
        ("t/ä", None),
        (collision_id("t", "ä".encode(), sha("two")), "id_collision"),
    ]


def test_rows_without_a_key_are_named_by_number_even_if_they_say_the_same() -> None:
    assert verdict([(None, "one"), ("a", "one"), (" ", "one")]) == [
        (keyless_id("t", 1), "no_key"),
        ("t/a", None),
        (keyless_id("t", 3), "no_key"),
    ]


def test_a_repeated_row_is_found_in_a_later_frame() -> None:
    whole = listed([rows([("a", "one")]), rows([("b", "x")], 2), rows([("a", "two")], 3)])
    assert whole["excluded"].to_list() == [None, None, "id_collision"]


def test_rows_whose_text_was_not_asked_for() -> None:
    whole = listed([rows([("a", None), ("a", None), ("b", None)], unread=True)])
    assert whole.select("size", "checksum", "excluded").rows() == [
        (0, None, None),
        (0, None, "id_collision"),
        (0, None, None),
    ]


def test_spellings_of_one_key_whose_texts_were_not_asked_for_are_each_told() -> None:
    keys = [("a\u0308", None), ("ä", None), ("ä", None), ("a\u0308", None)]
    assert listed([rows(keys, unread=True)])["excluded"].null_count() == 1
    assert listed([rows(keys, unread=True)]).height == 4


def test_texts_that_are_too_large_to_be_known_are_each_told() -> None:
    frame = rows([("a", None), ("a", None)]).with_columns(big=pl.lit(value=True))
    assert listed([frame])["excluded"].to_list() == ["too_large", "id_collision"]


def test_frames_are_bounded() -> None:
    count = LISTED_ROWS + 1
    frame = rows([(f"{at}", "x") for at in range(count)])
    sizes = [part.height for part in RowListing(RULES).listed(frame)]
    assert sizes == [LISTED_ROWS, 1]


def test_texts_of_documents_only_and_the_first_of_each() -> None:
    frame = rows([("a", "one"), ("a", "two"), ("b", ""), (None, "x")])
    (texts,) = texts_of(judge_rows(frame, RULES))
    assert texts.rows() == [("t/a", sha("one"), "one")]
    many = judge_rows(rows([(f"{at}", "x") for at in range(TEXT_ROWS + 1)]), RULES)
    assert [part.height for part in texts_of(many)] == [TEXT_ROWS, 1]


def test_rows_by_id() -> None:
    frame = rows([("a", "one"), (None, "x"), ("a\u0308", "two"), ("-", "x")])
    wanted = pl.Series(["t/ä", "t/-", "t/%~row-2"])
    assert rows_with_ids(frame, "t", wanted)["row"].to_list() == [3, 4]


def test_vanished_rows_are_excluded() -> None:
    whole = listed([rows([("a", "one"), ("b", "two")])])
    gone = vanished(whole, pl.Series(["t/a"]))
    assert gone.select("document_id", "excluded").rows() == [("t/b", "unreadable")]


def test_a_mark_holds_only_under_the_same_rules() -> None:
    marked = rows([("a", "x"), ("b", "x")]).with_columns(mark=pl.Series(["m", None]))
    found = [
        judge_rows(marked, rules)["mark"].to_list()
        for rules in (
            RULES,
            RULES,
            RowRules("t", ("title",), LIMIT),
            RowRules("t", ("body",), LIMIT + 1),
            RowRules("t", ("body",), LIMIT, ("other table",)),
        )
    ]
    assert found[0] == found[1] == [f"m {RULES.mark_of}", None]
    assert len({mark for mark, _ in found}) == 4
