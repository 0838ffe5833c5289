"""Comparing two scans: a table, and that no document is lost or counted twice."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.sources.changes import (
    CHECKSUM_COLUMNS,
    ChecksumFrameError,
    partition_changes,
    unlisted_prefixes,
)
from resources.sources.document_id import document_id, exact_document_id

Scan = dict[str, str | None]
KINDS = ("new", "changed", "removed", "unchanged", "excluded_now", "unknown")


def frame(scan: Scan) -> pl.DataFrame:
    return pl.DataFrame(
        {"document_id": list(scan), "checksum": list(scan.values())}, schema=CHECKSUM_COLUMNS
    )


def compared(previous: Scan, current: Scan, unlisted: tuple[str, ...] = ()) -> dict[str, list[str]]:
    changes = partition_changes(frame(previous), frame(current), unlisted=unlisted)
    found = {kind: getattr(changes, kind).to_list() for kind in KINDS}
    return {kind: ids for kind, ids in found.items() if ids}


@pytest.mark.parametrize(
    ("previous", "current", "unlisted", "expected"),
    [
        pytest.param({}, {}, (), {}, id="nothing"),
        pytest.param({}, {"s/a": "1"}, (), {"new": ["s/a"]}, id="new"),
        pytest.param({"s/a": "1"}, {"s/a": "1"}, (), {"unchanged": ["s/a"]}, id="unchanged"),
        pytest.param({"s/a": "1"}, {"s/a": "2"}, (), {"changed": ["s/a"]}, id="changed"),
        pytest.param({"s/a": "1"}, {}, (), {"removed": ["s/a"]}, id="removed"),
        pytest.param({"s/a": "1"}, {"s/a": None}, (), {"excluded_now": ["s/a"]}, id="excluded_now"),
        pytest.param({"s/a": None}, {"s/a": "1"}, (), {"new": ["s/a"]}, id="no_longer_excluded"),
        pytest.param({"s/a": None}, {}, (), {}, id="excluded_then_gone"),
        pytest.param({"s/a": None}, {"s/a": None}, (), {}, id="excluded_still"),
        pytest.param(
            {"s/d/a": "1", "s/d2/a": "1", "s/d": "1", "s/z": "1"},
            {"s/z": "1"},
            ("s/d/",),
            {"removed": ["s/d", "s/d2/a"], "unknown": ["s/d/a"], "unchanged": ["s/z"]},
            id="below_an_unlisted_folder",
        ),
        pytest.param(
            {"s/d/e/a": "1", "s/d/z": "1"},
            {},
            ("s/d/e/", "s/d/"),
            {"unknown": ["s/d/e/a", "s/d/z"]},
            id="nested_prefixes",
        ),
        pytest.param(
            {"s/d/a": "1"}, {"s/d/a": "2"}, ("s/d/",), {"changed": ["s/d/a"]}, id="seen_anyway"
        ),
        pytest.param(
            {"s/a": "1", "s/b": "1"}, {}, ("s/",), {"unknown": ["s/a", "s/b"]}, id="nothing_listed"
        ),
    ],
)
def test_table(
    previous: Scan, current: Scan, unlisted: tuple[str, ...], expected: dict[str, list[str]]
) -> None:
    assert compared(previous, current, unlisted) == expected


IDS = st.text(alphabet="ab/", min_size=1, max_size=5).map("s/".__add__)
SCANS = st.dictionaries(IDS, st.sampled_from(["1", "2", None]), max_size=12)


@given(SCANS, SCANS, st.lists(IDS.map("{}/".format), max_size=4))
def test_every_known_document_is_in_exactly_one_set(
    previous: Scan, current: Scan, unlisted: list[str]
) -> None:
    found = compared(previous, current, tuple(unlisted))
    everything = [identity for ids in found.values() for identity in ids]
    assert len(everything) == len(set(everything))
    assert set(everything) == {k for scan in (previous, current) for k, v in scan.items() if v}
    for identity in found.get("unknown", []):
        assert any(identity.startswith(prefix) for prefix in unlisted)
    for identity in found.get("removed", []):
        assert not any(identity.startswith(prefix) for prefix in unlisted)


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


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param(pl.DataFrame({"document_id": ["a"]}), id="no_checksum"),
        pytest.param(pl.DataFrame({"document_id": [1], "checksum": ["x"]}), id="wrong_type"),
        pytest.param(
            pl.DataFrame({"document_id": ["a", "a"], "checksum": ["x", "y"]}), id="repeated"
        ),
        pytest.param(
            pl.DataFrame({"document_id": [None, "a"], "checksum": ["x", "y"]}), id="missing_id"
        ),
    ],
)
def test_frames_that_are_refused(broken: pl.DataFrame) -> None:
    with pytest.raises(ChecksumFrameError, match="current"):
        partition_changes(frame({}), broken)
