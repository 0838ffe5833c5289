"""Which selected records can be processed, and why the others cannot: a table, and a property."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_assets.replay.plan import (
    ATTEMPTED_AGAIN,
    BARRED,
    CHANGED,
    DUPLICATE,
    NO_TEXT,
    RECORDED,
    REMOVED,
    SUPERSEDED,
    UNDER_WAY,
    UNUSABLE,
    WITHDRAWN,
    judge_members,
)
from resources.ledger.replays import MEMBER_SCHEMA
from resources.ledger.transitions import RECORD, START

SCHEMA = {
    **MEMBER_SCHEMA,
    "state": pl.String,
    "present_checksum": pl.String,
    "excluded": pl.Boolean,
    "barred": pl.String,
    "recorded": pl.Boolean,
    "held": pl.Boolean,
    "unusable": pl.Boolean,
}
SAME, OTHER = True, False


def row(
    *,
    document: int = 1,
    record: int = 1,
    checksum: str = "x",
    present: str | None = "x",
    state: str = "published",
    excluded: bool = False,
    barred: str | None = None,
    recorded: bool = False,
    held: bool = False,
    unusable: bool = False,
) -> dict[str, Any]:
    return {
        "document_no": document,
        "record_no": record,
        "document_id": f"m/{document}",
        "checksum": checksum,
        "record_id": f"r{record}",
        "slice": "",
        "state": state,
        "present_checksum": present,
        "excluded": excluded,
        "barred": barred,
        "recorded": recorded,
        "held": held,
        "unusable": unusable,
    }


def why(rows: list[dict[str, Any]], *, same: bool) -> list[str | None]:
    frame = pl.DataFrame(rows, schema=SCHEMA)
    return judge_members(frame, same=same).sort("record_no")["why_not"].to_list()


@pytest.mark.parametrize(
    ("given", "same", "expected"),
    [
        pytest.param(row(), SAME, None, id="again"),
        pytest.param(row(state="dead_letter"), SAME, None, id="again, given up"),
        pytest.param(row(state="submitted"), SAME, UNDER_WAY, id="again, under way"),
        pytest.param(row(state="retry_wait"), SAME, UNDER_WAY, id="again, due anyway"),
        pytest.param(row(present=None), SAME, REMOVED, id="again, removed"),
        pytest.param(row(present=None, excluded=True), SAME, UNUSABLE, id="again, locked now"),
        pytest.param(row(present="y"), SAME, CHANGED, id="again, corrected"),
        pytest.param(row(state="withdrawn"), SAME, WITHDRAWN, id="again, withdrawn"),
        pytest.param(row(recorded=True), SAME, None, id="again, of course recorded"),
        pytest.param(row(state="superseded"), SAME, SUPERSEDED, id="again, overtaken"),
        pytest.param(row(held=True), SAME, None, id="again, a copy has a record too"),
        pytest.param(row(unusable=True), SAME, None, id="again, the same request is there"),
        pytest.param(
            row(excluded=True), SAME, None, id="again, the bytes are there whatever is said"
        ),
        *(
            pytest.param(row(barred=reason), same, words, id=f"{reason}, {same=}")
            for reason, words in BARRED.items()
            for same in (SAME, OTHER)
        ),
        pytest.param(
            row(present="y", barred="erased"), SAME, BARRED["erased"], id="erased, not changed"
        ),
        pytest.param(
            row(present=None, barred="erased"), OTHER, REMOVED, id="removed, whatever else"
        ),
        pytest.param(row(), OTHER, None, id="other version"),
        pytest.param(row(state="submitted"), OTHER, None, id="other version, under way here"),
        pytest.param(row(state="withdrawn"), OTHER, None, id="other version, came back since"),
        pytest.param(row(present="y"), OTHER, None, id="other version, corrected"),
        pytest.param(row(recorded=True), OTHER, RECORDED, id="other version, has it"),
        pytest.param(row(present=None), OTHER, REMOVED, id="other version, removed"),
        pytest.param(row(present=None, excluded=True), OTHER, UNUSABLE, id="other version, locked"),
        pytest.param(row(state="superseded"), OTHER, None, id="other version, overtaken here"),
        pytest.param(row(held=True), OTHER, DUPLICATE, id="other version, a copy has a record"),
        pytest.param(row(recorded=True, held=True), OTHER, RECORDED, id="both have a record"),
        pytest.param(row(unusable=True), OTHER, NO_TEXT, id="other version, no text"),
    ],
)
def test_one_record(given: dict[str, Any], *, same: bool, expected: str | None) -> None:
    assert why([given], same=same) == [expected]


def test_under_another_version_the_newest_record_stands_for_its_document() -> None:
    former, newest = row(record=1, checksum="w"), row(record=2)
    assert why([former, newest], same=OTHER) == [CHANGED, None]


def test_a_newer_record_that_was_not_selected_stands_for_nothing() -> None:
    assert why([row(record=1, checksum="w")], same=OTHER) == [None]
    assert why([row(record=2, document=2), row(record=1)], same=OTHER) == [None, DUPLICATE]


def test_of_copies_the_first_by_id_is_processed() -> None:
    copies = [row(record=n, document=d) for n, d in ((1, 3), (2, 2), (3, 4))]
    assert why(copies, same=OTHER) == [DUPLICATE, None, DUPLICATE]
    assert why(copies, same=SAME) == [None, None, None], "each has its record already"


def test_a_copy_that_cannot_be_processed_stands_for_no_other() -> None:
    copies = [row(record=1, document=1, barred="approval_refused"), row(record=2, document=2)]
    assert why(copies, same=OTHER) == [BARRED["approval_refused"], None]


def test_what_is_processed_are_the_present_bytes() -> None:
    frame = pl.DataFrame([row(present="y")], schema=SCHEMA)
    assert judge_members(frame, same=OTHER)["checksum"].to_list() == ["y"]


def test_what_its_source_lost_keeps_the_bytes_that_it_had() -> None:
    frame = pl.DataFrame([row(present=None)], schema=SCHEMA)
    assert judge_members(frame, same=OTHER)["checksum"].to_list() == ["x"]


def test_every_state_has_its_answer() -> None:
    """A state that is added must be thought of here: may an attempt be made from it?"""
    legal = {state for state, targets in RECORD.items() if "prepared" in targets}
    # What is queued, or waits for its own retry, gets its attempt without being asked.
    assert set(ATTEMPTED_AGAIN) == legal - {START, "queued", "submitted", "retry_wait"}


@given(
    rows=st.lists(
        st.builds(
            row,
            document=st.integers(1, 4),
            checksum=st.sampled_from("xy"),
            present=st.sampled_from(["x", "y", None]),
            state=st.sampled_from(sorted(RECORD.keys() - {START})),
            recorded=st.booleans(),
        ),
        max_size=12,
    ),
    same=st.booleans(),
)
def test_each_is_in_or_has_one_reason_and_no_document_is_in_twice(
    rows: list[dict[str, Any]], *, same: bool
) -> None:
    for number, each in enumerate(rows, start=1):
        each["record_no"] = number
        # A document has one present version of its bytes.
        first = next(other for other in rows if other["document_no"] == each["document_no"])
        each["present_checksum"], each["recorded"] = first["present_checksum"], first["recorded"]
    judged = judge_members(pl.DataFrame(rows, schema=SCHEMA), same=same)
    assert judged.height == len(rows)
    chosen = judged.filter(pl.col("why_not").is_null())
    assert chosen["present_checksum"].null_count() == 0
    if same:
        assert set(chosen["state"]) <= set(ATTEMPTED_AGAIN)
    else:
        assert not chosen["recorded"].any()
        assert chosen["document_no"].is_unique().all()
        assert chosen["checksum"].is_unique().all()
