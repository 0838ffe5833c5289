"""What is to be done with a listed document, and which ids lie below an unlisted folder."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.ledger.scan_reads import SCAN_SCHEMA
from resources.sources.changes import (
    KNOWN_SCHEMA,
    decide,
    known_as_read,
    refused_before,
    same_outcome,
    starts_with_any,
    unlisted_prefixes,
)
from resources.sources.checksums import RACY_WINDOW_NS
from resources.sources.document_id import document_id, exact_document_id
from resources.sources.listing import LISTED_SCHEMA

SECOND = 1_000_000_000
STARTED = 300 * SECOND
LISTED: dict[str, Any] = {
    "document_id": "docs/a",
    "place": b"a",
    "size": 3,
    "mtime_ns": 100 * SECOND,
    "device": "1",
    "inode": "2",
    "mark": None,
    "checksum": None,
    "excluded": None,
    "detail": "",
}
KNOWN: dict[str, Any] = {
    **{name: LISTED[name] for name in KNOWN_SCHEMA if name in LISTED},
    "entry_no": 7,
    "checksum": "c",
    "scanned_at_ns": 200 * SECOND,
}
REFUSED = {"checksum": None, "excluded": "unreadable"}


def decided(
    listed: dict[str, Any] | None = None,
    known: dict[str, Any] | None = None,
    earlier: dict[str, Any] | None = None,
    settle: int = 0,
) -> pl.DataFrame:
    """One document: as it is listed, as it is known (None: not), as an earlier pass read it."""
    row = {**LISTED, **(listed or {})}
    before = [] if known is None else [{**KNOWN, **known}]
    kept = [] if earlier is None else [{**KNOWN, "detail": "", **earlier}]
    for one in (*before, *kept):
        one.setdefault("mark", None)
    return decide(
        pl.DataFrame([row], schema=LISTED_SCHEMA),
        pl.DataFrame(before, schema=KNOWN_SCHEMA),
        pl.DataFrame([{n: one[n] for n in SCAN_SCHEMA} for one in kept], schema=SCAN_SCHEMA),
        started_ns=STARTED,
        settle_ns=settle * SECOND,
    )


@pytest.mark.parametrize(
    ("listed", "known", "what"),
    [
        pytest.param({}, None, "read", id="never_seen"),
        pytest.param({}, {}, "same", id="unchanged"),
        pytest.param({"size": 4}, {}, "read", id="size"),
        pytest.param({"mtime_ns": 99 * SECOND}, {}, "read", id="older_time"),
        pytest.param({"inode": "3"}, {}, "read", id="inode"),
        pytest.param({"device": "2"}, {}, "read", id="device"),
        pytest.param(
            {}, {"scanned_at_ns": 100 * SECOND + RACY_WINDOW_NS}, "same", id="window_just_over"
        ),
        pytest.param(
            {},
            {"scanned_at_ns": 100 * SECOND + RACY_WINDOW_NS - 1},
            "read",
            id="within_the_window",
        ),
        pytest.param({}, {"scanned_at_ns": 50 * SECOND}, "read", id="changed_in_the_future"),
        pytest.param({}, REFUSED, "read", id="could_not_be_read"),
        pytest.param({"mark": "m"}, {"mark": "m"}, "same", id="mark"),
        pytest.param({"mark": "m"}, {"mark": "n"}, "read", id="other_mark"),
        pytest.param({"mark": "m"}, {}, "read", id="first_mark"),
        pytest.param({}, {"mark": "m"}, "read", id="no_mark_any_more"),
        pytest.param(
            {"mark": "m"}, {"mark": "m", "scanned_at_ns": 0}, "same", id="a_mark_is_never_racy"
        ),
        pytest.param({"mark": "m", "size": 0}, {"mark": "m"}, "same", id="row_of_unknown_size"),
        pytest.param(
            {"mark": "m", "size": 0},
            {"mark": "m", "checksum": None, "excluded": "too_large"},
            "same",
            id="too_large_still",
        ),
        pytest.param(
            {"mark": "m"},
            {"mark": "m", "checksum": None, "excluded": "too_large"},
            "read",
            id="object_below_a_raised_limit",
        ),
        pytest.param(
            {"mark": "m"},
            {"mark": "m", "checksum": None, "excluded": "id_collision"},
            "read",
            id="object_whose_twin_went",
        ),
        pytest.param({"mark": "m"}, {"mark": "m", **REFUSED}, "read", id="perhaps_readable_now"),
        pytest.param({"excluded": "empty"}, None, "told", id="new_exclusion"),
        pytest.param(
            {"excluded": "empty"},
            {"checksum": None, "excluded": "empty"},
            "same",
            id="same_exclusion",
        ),
        pytest.param(
            {"excluded": "empty", "mtime_ns": 1},
            {"checksum": None, "excluded": "empty"},
            "told",
            id="same_exclusion_other_stat",
        ),
        pytest.param({"excluded": "empty"}, {}, "told", id="excluded_now"),
        pytest.param(
            {"excluded": "empty"},
            {"checksum": None, "excluded": "too_large"},
            "told",
            id="other_exclusion",
        ),
        pytest.param({"checksum": "c"}, {}, "same", id="told_checksum"),
        pytest.param({"checksum": "d"}, {}, "told", id="told_other_checksum"),
        pytest.param({"checksum": "c", "mark": "m"}, {}, "told", id="told_mark"),
        pytest.param({"checksum": "c"}, None, "told", id="told_new"),
    ],
)
def test_what_is_to_be_done(
    listed: dict[str, Any], known: dict[str, Any] | None, what: str
) -> None:
    assert decided(listed, known)["what"].to_list() == [what]


@pytest.mark.parametrize(
    ("listed", "known", "what"),
    [
        pytest.param({"mtime_ns": STARTED - 3 * SECOND}, None, "unsettled", id="new"),
        pytest.param({"mtime_ns": STARTED + SECOND}, None, "unsettled", id="while_scanning"),
        pytest.param({"mtime_ns": STARTED - 5 * SECOND}, None, "read", id="just_old_enough"),
        pytest.param({"mtime_ns": STARTED + 6 * SECOND}, None, "read", id="another_clock"),
        pytest.param(
            {"mtime_ns": STARTED - SECOND, "excluded": "empty"}, {}, "unsettled", id="emptied"
        ),
        pytest.param({"mtime_ns": STARTED - SECOND, "mark": "m"}, {}, "read", id="has_a_mark"),
        pytest.param(
            {"mtime_ns": STARTED - SECOND},
            {"mtime_ns": STARTED - SECOND, "scanned_at_ns": STARTED + 10 * SECOND},
            "same",
            id="nothing_to_do_anyhow",
        ),
        pytest.param({"mtime_ns": 0, "checksum": "c"}, None, "told", id="no_time"),
    ],
)
def test_what_changed_just_now_is_left_alone(
    listed: dict[str, Any], known: dict[str, Any] | None, what: str
) -> None:
    assert decided(listed, known, settle=5)["what"].to_list() == [what]
    assert decided(listed, known)["what"].to_list() != ["unsettled"]


@pytest.mark.parametrize(
    ("listed", "earlier", "what"),
    [
        pytest.param({}, {}, "resumed", id="same_stat"),
        pytest.param({}, REFUSED, "resumed", id="refused"),
        pytest.param(
            {}, {"checksum": None, "excluded": "too_large"}, "read", id="limit_was_raised"
        ),
        pytest.param(
            {"mark": "m", "size": 0},
            {"mark": "m", "checksum": None, "excluded": "too_large"},
            "resumed",
            id="row_too_large_still",
        ),
        pytest.param({"size": 4}, {}, "read", id="other_stat"),
        pytest.param({}, {"scanned_at_ns": 101 * SECOND}, "read", id="racy"),
        pytest.param({"excluded": "empty"}, {}, "told", id="excluded_now"),
        pytest.param({"mark": "m", "size": 0}, {"mark": "m"}, "resumed", id="same_mark"),
    ],
)
def test_what_an_interrupted_pass_read(
    listed: dict[str, Any], earlier: dict[str, Any], what: str
) -> None:
    assert decided(listed, None, earlier)["what"].to_list() == [what]


def test_what_is_known_as_it_was_needs_nothing_of_an_earlier_pass() -> None:
    assert decided({}, {}, {"checksum": "other"})["what"].to_list() == ["same"]


@pytest.mark.parametrize(
    ("listed", "known", "refused", "same"),
    [
        pytest.param({}, REFUSED, True, False, id="could_not_be_read"),
        pytest.param({"size": 4}, REFUSED, False, False, id="changed_since"),
        pytest.param(
            {}, {"checksum": None, "excluded": "too_large"}, False, False, id="limit_was_raised"
        ),
        pytest.param({}, {}, False, False, id="has_a_checksum"),
        pytest.param({}, None, False, False, id="new"),
        pytest.param({"checksum": "c"}, {}, False, True, id="told_the_same"),
        pytest.param({"excluded": "unreadable"}, REFUSED, False, True, id="excluded_alike"),
    ],
)
def test_refused_before_and_same_outcome(
    listed: dict[str, Any], known: dict[str, Any] | None, refused: bool, same: bool
) -> None:
    found = decided(listed, known).select(
        refused=refused_before(), same=same_outcome(), read=known_as_read()
    )
    assert found.rows() == [(refused, same, same and "excluded" in listed)]


@given(
    st.binary(min_size=1, max_size=20),
    st.binary(min_size=1, max_size=20),
    st.sampled_from([document_id, exact_document_id]),
)
def test_prefixes_cover_both_forms_of_an_id(
    folder: bytes, name: bytes, make: Callable[[str, bytes], str]
) -> None:
    prefixes = unlisted_prefixes("docs", [folder])
    assert make("docs", folder + b"/" + name).startswith(prefixes)


def test_an_unlisted_root_hides_everything() -> None:
    assert unlisted_prefixes("docs", [b"a", b""]) == ("docs/",)


@given(
    st.lists(st.text(alphabet="ab/", max_size=6)),
    st.lists(st.text(alphabet="ab/", min_size=1, max_size=4)),
)
def test_starting_with_any(ids: list[str], prefixes: list[str]) -> None:
    found = starts_with_any(pl.Series(ids, dtype=pl.String), prefixes)
    assert found.to_list() == [text.startswith(tuple(prefixes)) for text in ids]
