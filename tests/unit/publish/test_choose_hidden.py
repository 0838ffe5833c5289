"""Which published values a promotion shows again."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from pipeline_assets.publish.promote import choose_hidden

SCHEMA: dict[str, Any] = {
    "document_no": pl.Int64,
    "record_no": pl.Int64,
    "entry_no": pl.Int64,
    "digest": pl.String,
    "current": pl.Int64,
    "shown_record_no": pl.Int64,
    "shown_digest": pl.String,
    "shown_current": pl.Int64,
}


def value(entry_no: int, **facts: Any) -> dict[str, Any]:
    """A value of the only record, of present bytes, of a document that shows nothing."""
    usual = {
        "document_no": 1,
        "record_no": 7,
        "digest": f"d{entry_no}",
        "current": 1,
        "shown_record_no": None,
        "shown_digest": None,
        "shown_current": 0,
    }
    return usual | {"entry_no": entry_no} | facts


@pytest.mark.parametrize(
    ("values", "expected", "older"),
    [
        pytest.param([], [], 0, id="nothing"),
        pytest.param([value(1)], [1], 0, id="left-the-archive"),
        pytest.param([value(1), value(2)], [2], 0, id="the-newest-values-of-a-record"),
        pytest.param(
            [value(1, shown_record_no=7, shown_digest="d1", shown_current=1)],
            [],
            0,
            id="shown-already",
        ),
        pytest.param(
            [
                value(entry, shown_record_no=7, shown_digest="d1", shown_current=1)
                for entry in (1, 2)
            ],
            [2],
            0,
            id="earlier-values-are-shown",
        ),
        pytest.param(
            [value(1, record_no=7, current=0), value(2, record_no=8, current=0)],
            [2],
            0,
            id="the-newest-record",
        ),
        pytest.param(
            [value(1, record_no=7, current=1), value(2, record_no=8, current=0)],
            [1],
            0,
            id="the-record-of-the-present-bytes",
        ),
        pytest.param(
            [value(1, current=0, shown_record_no=9, shown_digest="x", shown_current=1)],
            [],
            1,
            id="older-bytes-than-what-is-shown",
        ),
        pytest.param(
            [value(1, current=0, shown_record_no=9, shown_digest="x", shown_current=0)],
            [1],
            0,
            id="both-of-former-bytes",
        ),
        pytest.param([value(1), value(2, document_no=2)], [1, 2], 0, id="each-document-by-itself"),
    ],
)
def test_choose_hidden(values: list[dict[str, Any]], expected: list[int], older: int) -> None:
    entries, kept = choose_hidden(pl.DataFrame(values, schema=SCHEMA))
    assert (entries.to_list(), kept) == (expected, older)
