"""Which documents become records: a table, and that each ends in exactly one of three places."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_assets.barred_documents import BARRED_SCHEMA
from pipeline_assets.prepare.candidates import (
    EARLIER_SCHEMA,
    NOT_PARSED,
    NOT_SELECTED,
    Split,
    split_documents,
)
from resources.ledger.source_snapshots import PRESENT_SCHEMA

Document = tuple[str, str | None, str | None]
"""Name, checksum or None, reason of the source or None; its number is its place from 1."""
Parse = tuple[str, str | None]
Record = tuple[int, str]

PARSE_COLUMNS = {"checksum": pl.String, "excluded": pl.String, "detail": pl.String}
RECORD_COLUMNS = {"document_no": pl.Int64, "source_version_no": pl.Int64, "checksum": pl.String}


def version_no(document_no: int, checksum: str) -> int:
    return document_no * 100 + sum(checksum.encode()) % 100


def split(
    documents: list[Document],
    parses: list[Parse],
    records: list[Record],
    *,
    earlier: list[tuple[int, str, str]] | None = None,
    barred: list[tuple[int, str]] | None = None,
    only: list[int] | None = None,
    narrow: bool = False,
) -> Split:
    present = pl.DataFrame(
        [
            {
                "document_no": number,
                "document_id": name,
                "source_version_no": None if checksum is None else version_no(number, checksum),
                "checksum": checksum,
                "bytes": 1,
                "excluded": excluded,
                "detail": "" if excluded is None else f"source says {excluded}",
            }
            for number, (name, checksum, excluded) in enumerate(documents, start=1)
        ],
        schema=PRESENT_SCHEMA,
    ).sort("document_id")
    return split_documents(
        present,
        pl.DataFrame(
            [(c, reason, f"parser says {reason}" if reason else "") for c, reason in parses],
            schema=PARSE_COLUMNS,
            orient="row",
        ),
        pl.DataFrame(
            [(number, version_no(number, c), c) for number, c in records],
            schema=RECORD_COLUMNS,
            orient="row",
        ),
        earlier=None
        if earlier is None
        else pl.DataFrame(
            [(number, version_no(number, c), why) for number, c, why in earlier],
            schema=EARLIER_SCHEMA,
            orient="row",
        ),
        barred=None
        if barred is None
        else pl.DataFrame(
            [(number, why, f"somebody says {why}") for number, why in barred],
            schema=BARRED_SCHEMA,
            orient="row",
        ),
        only=None if only is None else pl.Series(only, dtype=pl.Int64),
        narrow=narrow,
    )


def outcome(result: Split) -> dict[int, Any]:
    """Each document's place, by number: the replay reason, `existing`, or reason and detail."""
    placed: list[tuple[int, Any]] = [
        *result.fresh.select("document_no", "replay_reason").rows(),
        *((number, "existing") for number in result.existing["document_no"]),
        *(
            (number, (reason, detail))
            for number, reason, detail in result.excluded.select(
                "document_no", "reason", "detail"
            ).rows()
        ),
    ]
    assert len({number for number, _ in placed}) == len(placed), "a document stands twice"
    return dict(placed)


A: Document = ("m/a", "x", None)
B: Document = ("m/b", "x", None)
NEW, CORRECTED = "new_source", "corrected_source"


@pytest.mark.parametrize(
    ("documents", "parses", "records", "expected"),
    [
        pytest.param([], [], [], {}, id="nothing"),
        pytest.param([A], [("x", None)], [], {1: NEW}, id="new"),
        pytest.param([A], [("x", None)], [(1, "x")], {1: "existing"}, id="known"),
        pytest.param([A], [("x", None)], [(1, "w")], {1: CORRECTED}, id="other-bytes-before"),
        pytest.param([A], [("x", None)], [(2, "x")], {1: NEW}, id="record-of-a-removed-document"),
        pytest.param([A], [], [], {1: ("unreadable", NOT_PARSED)}, id="not-parsed"),
        pytest.param([A], [("w", None)], [], {1: ("unreadable", NOT_PARSED)}, id="other-parsed"),
        pytest.param(
            [A], [("x", "no_text")], [], {1: ("no_text", "parser says no_text")}, id="no-text"
        ),
        pytest.param(
            [("m/a", None, "empty")], [], [], {1: ("empty", "source says empty")}, id="empty"
        ),
        pytest.param(
            [A], [("x", "no_text")], [(1, "x")], {1: "existing"}, id="record-from-a-better-day"
        ),
        pytest.param(
            [A, B],
            [("x", None)],
            [],
            {1: NEW, 2: ("duplicate_content", "same bytes as m/a")},
            id="the-first-by-name-is-processed",
        ),
        pytest.param(
            [B, A],
            [("x", None)],
            [],
            {2: NEW, 1: ("duplicate_content", "same bytes as m/a")},
            id="by-name-and-not-by-number",
        ),
        pytest.param(
            [A, B],
            [("x", None)],
            [(2, "x")],
            {2: "existing", 1: ("duplicate_content", "same bytes as m/b")},
            id="the-one-with-a-record-stays",
        ),
        pytest.param(
            [A, B], [("x", None)], [(1, "x"), (2, "x")], {1: "existing", 2: "existing"}, id="both"
        ),
        pytest.param(
            [A, B],
            [("x", None)],
            [(1, "w")],
            {1: CORRECTED, 2: ("duplicate_content", "same bytes as m/a")},
            id="corrected-into-a-duplicate",
        ),
        pytest.param(
            [A, B],
            [("x", "encrypted")],
            [],
            {1: ("encrypted", "parser says encrypted"), 2: ("encrypted", "parser says encrypted")},
            id="duplicates-that-cannot-be-read-say-why",
        ),
        pytest.param(
            [("m/a", None, "empty"), ("m/b", None, "empty")],
            [],
            [],
            {1: ("empty", "source says empty"), 2: ("empty", "source says empty")},
            id="no-bytes-are-not-the-same-bytes",
        ),
    ],
)
def test_split_documents(
    documents: list[Document], parses: list[Parse], records: list[Record], expected: dict[int, Any]
) -> None:
    assert outcome(split(documents, parses, records)) == expected


C: Document = ("m/c", "y", None)
BOTH_PARSED: list[Parse] = [("x", None), ("y", None)]
COPY_OF_A, COPY_OF_B = (
    ("duplicate_content", "same bytes as m/a"),
    ("duplicate_content", "same bytes as m/b"),
)


def reasons(result: Split) -> dict[int, str]:
    """Each document's place, by number, without the detail."""
    return {
        number: place if isinstance(place, str) else place[0]
        for number, place in outcome(result).items()
    }


@pytest.mark.parametrize(
    ("records", "earlier", "expected"),
    [
        pytest.param([], [(1, "x", "new_prompt")], "new_prompt", id="same bytes there"),
        pytest.param([], [(1, "w", "new_prompt")], CORRECTED, id="other bytes there"),
        pytest.param([], [(2, "x", "new_prompt")], NEW, id="another document's"),
        pytest.param([(1, "w")], [], CORRECTED, id="other bytes here"),
        pytest.param(
            [(1, "w")],
            [(1, "x", "new_prompt")],
            CORRECTED,
            id="other bytes here, the corrected ones there meanwhile",
        ),
        pytest.param(
            [],
            [(1, "w", "new_prompt"), (1, "x", "new_model")],
            "new_model",
            id="corrected there before",
        ),
    ],
)
def test_why_a_document_becomes_a_record(
    records: list[Record], earlier: list[tuple[int, str, str]], expected: str
) -> None:
    assert outcome(split([A], [("x", None)], records, earlier=earlier)) == {1: expected}


@pytest.mark.parametrize(
    ("records", "only", "narrow", "expected"),
    [
        pytest.param([], None, False, {1: NEW, 2: COPY_OF_A, 3: NEW}, id="all"),
        pytest.param([], [3], False, {2: COPY_OF_A, 3: NEW}, id="the others wait"),
        pytest.param([], [2], False, {1: COPY_OF_B, 2: NEW}, id="the selected copy stands"),
        pytest.param(
            [], [2], True, {1: COPY_OF_B, 2: NEW, 3: NOT_SELECTED}, id="selected, the rest is out"
        ),
        pytest.param([], [1, 2], True, {1: NEW, 2: COPY_OF_A, 3: NOT_SELECTED}, id="two copies"),
        pytest.param([], None, True, {1: NOT_SELECTED, 2: COPY_OF_A, 3: NOT_SELECTED}, id="out"),
        pytest.param(
            [(2, "w")],
            None,
            True,
            {1: COPY_OF_B, 2: CORRECTED, 3: NOT_SELECTED},
            id="a copy that is out does not stand for corrected bytes",
        ),
        pytest.param(
            [(2, "w")],
            [1],
            True,
            {1: NEW, 2: COPY_OF_A, 3: NOT_SELECTED},
            id="a selected copy stands before corrected bytes",
        ),
        pytest.param(
            [(2, "x"), (3, "w")],
            [1],
            True,
            {1: COPY_OF_B, 2: "existing"},
            id="a record stands before a selected copy, and corrected bytes wait for a usual run",
        ),
    ],
)
def test_what_a_replay_takes(
    records: list[Record], only: list[int] | None, *, narrow: bool, expected: dict[int, Any]
) -> None:
    result = split([A, B, C], BOTH_PARSED, records, only=only, narrow=narrow)
    found = outcome(result)
    assert {
        number: place if isinstance(expected.get(number), tuple) else reasons(result)[number]
        for number, place in found.items()
    } == expected


@pytest.mark.parametrize(
    ("bar", "records", "expected"),
    [
        pytest.param((1, "erased"), [], {1: "erased", 2: NEW}, id="erased, its copy is not"),
        pytest.param(
            (1, "erased"), [(1, "x")], {1: "existing", 2: NEW}, id="an erased record holds nothing"
        ),
        pytest.param(
            (1, "awaiting_approval"),
            [(1, "x")],
            {1: "existing", 2: "duplicate_content"},
            id="a record stands, whatever is asked for now",
        ),
        pytest.param(
            (1, "approval_refused"), [], {1: "approval_refused", 2: NEW}, id="refused by name"
        ),
    ],
)
def test_what_may_not_be_processed(
    bar: tuple[int, str], records: list[Record], expected: dict[int, str]
) -> None:
    assert reasons(split([A, B], [("x", None)], records, barred=[bar])) == expected


def test_the_source_has_the_first_word_and_the_parser_the_last() -> None:
    locked: Document = ("m/a", None, "locked")
    assert outcome(split([locked], [], [], barred=[(1, "erased")])) == {
        1: ("locked", "source says locked")
    }
    assert outcome(split([A], [("x", "no_text")], [], barred=[(1, "erased")])) == {
        1: ("erased", "somebody says erased")
    }


CHECKSUMS = ["v", "w", "x", "y"]


@st.composite
def archives(draw: st.DrawFn) -> tuple[list[Document], list[Parse], list[Record]]:
    names = draw(st.lists(st.text("abc/", min_size=1, max_size=3), unique=True, max_size=6))
    held = [(name, draw(st.sampled_from([*CHECKSUMS, None]))) for name in names]
    documents: list[Document] = [
        (name, checksum, "id_collision" if checksum is None else None) for name, checksum in held
    ]
    parsed = draw(st.lists(st.sampled_from(CHECKSUMS), unique=True))
    parses = [(c, draw(st.sampled_from([None, "no_text", "too_slow"]))) for c in parsed]
    keys = st.tuples(st.integers(1, 7), st.sampled_from(CHECKSUMS))
    return documents, parses, draw(st.lists(keys, unique=True, max_size=6))


@given(archives())
def test_every_present_document_has_exactly_one_place(
    archive: tuple[list[Document], list[Parse], list[Record]],
) -> None:
    documents, parses, records = archive
    result = split(documents, parses, records)
    placed = outcome(result)
    assert set(placed) == set(range(1, len(documents) + 1))
    readable = {checksum for checksum, excluded in parses if excluded is None}
    fresh = result.fresh["checksum"].to_list()
    assert len(set(fresh)) == len(fresh) and set(fresh) <= readable
    known = {documents[number - 1][1] for number in result.existing["document_no"]}
    assert not known & set(fresh), "bytes that have a record get no second one"
    assert set(result.existing["document_no"]) <= {number for number, _ in records}
    for number, (_, checksum, _excluded) in enumerate(documents, start=1):
        if checksum in readable:
            assert placed[number] in (NEW, CORRECTED, "existing") or (
                placed[number][0] == "duplicate_content"
            )


@given(archives())
def test_a_second_look_finds_nothing_new(
    archive: tuple[list[Document], list[Parse], list[Record]],
) -> None:
    documents, parses, records = archive
    first = split(documents, parses, records)
    made = first.fresh.select("document_no", "checksum").rows()
    second = split(documents, parses, [*records, *made])
    assert second.fresh.is_empty()
    assert second.excluded.equals(first.excluded)
