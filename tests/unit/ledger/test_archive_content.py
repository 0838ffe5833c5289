"""What the search finds in contents of several workloads."""

from __future__ import annotations

import json

import polars as pl
import pytest

from resources.ledger.archive_content import (
    SEARCH_COLUMNS,
    Searched,
    search_entries_by_workload,
    search_entries_of,
)

SEARCHED: dict[str, Searched] = {
    "one": {
        "name": (False, "title"),
        "codes": (True, "identifiers"),
        "tongue": (False, "language"),
    },
    "two": {"name": (False, "description"), "codes": (True, "description")},
    "none": {},
}
CONTENT = json.dumps(
    {
        "name": {"value": "Bench Grinder", "status": "found", "evidence": []},
        "codes": [{"value": "BG-1"}, {"value": None}, {"value": "BG 2"}],
        "tongue": {"value": "en"},
        "other": {"value": "never searched"},
    }
)
EMPTY = dict.fromkeys(SEARCH_COLUMNS, "")


def entries(*rows: tuple[str, str]) -> pl.DataFrame:
    return pl.DataFrame(
        [(number, *row) for number, row in enumerate(rows)],
        schema={"entry_no": pl.Int64, "workload": pl.String, "content": pl.String},
        orient="row",
    )


@pytest.mark.parametrize(
    ("workload", "content", "found"),
    [
        pytest.param(
            "one",
            CONTENT,
            {"title": "bench grinder", "identifiers": "bg-1 bg 2", "language": "en"},
            id="by role",
        ),
        pytest.param(
            "two", CONTENT, {"description": "bench grinder bg-1 bg 2"}, id="two of one role"
        ),
        pytest.param("two", '{"codes": [{"value": "X"}]}', {"description": "x"}, id="one missing"),
        pytest.param("none", CONTENT, {}, id="nothing searched"),
        pytest.param("one", "{}", {}, id="no content"),
    ],
)
def test_texts_go_to_their_columns(workload: str, content: str, found: dict[str, str]) -> None:
    (row,) = search_entries_of(entries((workload, content)), SEARCHED[workload]).to_dicts()
    assert {name: row[name] for name in SEARCH_COLUMNS} == EMPTY | found
    assert (row["entry_no"], row["content"]) == (0, content)


def test_entries_of_several_workloads_keep_their_order() -> None:
    mixed = entries(("one", CONTENT), ("two", CONTENT), ("none", CONTENT), ("one", "{}"))
    found = search_entries_by_workload(mixed, SEARCHED.__getitem__)
    assert found["entry_no"].to_list() == [0, 1, 2, 3]
    for row in found.to_dicts():
        alone = search_entries_of(mixed[row["entry_no"]], SEARCHED[row["workload"]])
        assert row == alone.row(0, named=True)


def test_nobody_is_asked_about_no_entries() -> None:
    """A workload may be gone; that is no matter where nothing is written."""
    found = search_entries_by_workload(entries(), pytest.fail)
    assert found.is_empty()
    assert set(SEARCH_COLUMNS) <= set(found.columns)
