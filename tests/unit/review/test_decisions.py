"""The decision table, and which acts are refused, as frames without a ledger."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_assets.review.bulk import DIGEST_LENGTH, selection_digest
from pipeline_assets.review.decisions import (
    REVIEWER_LENGTH,
    Decision,
    plan,
    refusal,
    require_reason,
    require_reviewer,
)
from pipeline_assets.review.errors import ReasonMissing, ReviewerUnnamed
from resources.ledger.reviews import STANDING_SCHEMA
from resources.ledger.transitions import RECORD

NONE_SUCH = dict.fromkeys(STANDING_SCHEMA)


def standing(*rows: dict[str, Any]) -> pl.DataFrame:
    """Reviews that stand as asked, but for what each row says."""
    usual = {
        "asked_revision": 0,
        "revision": 0,
        "kind": "findings",
        "decision": None,
        "reviewer": None,
        "decided_at": None,
        "version_no": 1,
        "batch_no": 1,
        "state": "awaiting_review",
        "answered_again": 0,
    }
    return pl.DataFrame(
        [
            usual | {"review_no": at, "record_no": at + 100, "document_id": f"shop/{at}.txt"} | row
            for at, row in enumerate(rows, start=1)
        ],
        schema=STANDING_SCHEMA,
    )


@pytest.mark.parametrize(
    ("kind", "state", "decision", "target"),
    [
        pytest.param("findings", "awaiting_review", "accept", "accepted", id="finding-accept"),
        pytest.param("findings", "awaiting_review", "correct", "accepted", id="finding-correct"),
        pytest.param("findings", "awaiting_review", "reject", "rejected", id="finding-reject"),
        pytest.param("quality_sample", "accepted", "accept", None, id="sample-right"),
        pytest.param("quality_sample", "accepted", "correct", None, id="sample-wrong"),
        pytest.param("quality_sample", "accepted", "reject", "rejected", id="sample-reject"),
        pytest.param("quality_sample", "published", "accept", None, id="shown-right"),
        pytest.param("quality_sample", "published", "correct", None, id="shown-wrong"),
        pytest.param("quality_sample", "published", "reject", "rejected", id="shown-reject"),
    ],
)
def test_what_a_decision_does_to_a_record(
    kind: str, state: str, decision: Decision, target: str | None
) -> None:
    one = standing({"kind": kind, "state": state})
    assert refusal(one) is None
    made = plan(one, decision)
    assert [(move.from_state, move.to_state) for move in made.moves] == (
        [] if target is None else [(state, target)]
    )
    assert target is None or target in RECORD[state]
    hides = decision == "reject" and state == "published"
    assert made.hidden.rows() == ([(1, 101)] if hides else [])


def test_a_set_moves_batch_by_batch_in_the_order_of_their_chains() -> None:
    made = plan(
        standing(
            {"batch_no": 7},
            {"batch_no": 3, "kind": "quality_sample", "state": "published"},
            {"batch_no": 7},
            {"batch_no": 3, "kind": "quality_sample", "state": "accepted"},
        ),
        "reject",
    )
    assert [(move.batch_no, move.from_state, move.records.to_list()) for move in made.moves] == [
        (3, "accepted", [104]),
        (3, "published", [102]),
        (7, "awaiting_review", [101, 103]),
    ]
    assert made.hidden.rows() == [(1, 102)]


@pytest.mark.parametrize(
    ("row", "trouble"),
    [
        pytest.param({}, None, id="as-asked"),
        pytest.param(NONE_SUCH, "unknown", id="no-such-review"),
        pytest.param({"revision": 1}, "changed", id="someone-acted"),
        pytest.param({"asked_revision": 1}, "changed", id="never-had-that-revision"),
        pytest.param({"decision": "accept"}, "decided", id="decided-at-this-revision"),
        pytest.param({"decision": "reject", "revision": 1}, "decided", id="decided-since"),
        pytest.param({"decision": "overtaken", "revision": 1}, "overtaken", id="closed-overtaken"),
        pytest.param({"answered_again": 1}, "overtaken", id="a-newer-answer"),
        pytest.param({"state": "prepared"}, "overtaken", id="asked-again"),
        pytest.param({"state": "withdrawn"}, "overtaken", id="withdrawn"),
        pytest.param({"state": "accepted"}, "overtaken", id="accepted-by-another-way"),
        pytest.param(
            {"kind": "quality_sample", "state": "awaiting_review"}, "overtaken", id="sample-doubted"
        ),
        pytest.param(
            {"kind": "quality_sample", "state": "rejected"}, "overtaken", id="sample-rejected"
        ),
    ],
)
def test_when_an_act_is_refused(row: dict[str, Any], trouble: str | None) -> None:
    found = refusal(standing({}, {"review_no": 2} | row | {"review_no": 2}))
    assert (None if found is None else found.trouble) == trouble
    assert found is None or found.numbers == (2,)


def test_a_refusal_names_every_review_of_the_gravest_trouble() -> None:
    found = refusal(standing({"revision": 2}, {}, {"decision": "accept"}, {"decision": "reject"}))
    assert found is not None
    assert (found.trouble, found.numbers) == ("decided", (3, 4))


@pytest.mark.parametrize("given_name", ["", "  ", "x" * (REVIEWER_LENGTH + 1)])
def test_a_reviewer_has_a_name(given_name: str) -> None:
    with pytest.raises(ReviewerUnnamed, match=f"expected 1 to {REVIEWER_LENGTH}"):
        require_reviewer(given_name)
    assert require_reviewer(f" {'x' * REVIEWER_LENGTH} ") == "x" * REVIEWER_LENGTH


def test_a_decision_has_a_reason() -> None:
    with pytest.raises(ReasonMissing, match="--reason TEXT"):
        require_reason(" \n", "accept")
    assert require_reason(" because ", "accept") == "because"


MEMBERS = st.dictionaries(st.integers(1, 50), st.integers(0, 3), min_size=1, max_size=8)


def _frame(members: dict[int, int]) -> pl.DataFrame:
    return pl.DataFrame(
        list(members.items()), schema={"review_no": pl.Int64, "revision": pl.Int64}, orient="row"
    )


@given(one=MEMBERS, other=MEMBERS)
def test_a_digest_names_exactly_one_selection(one: dict[int, int], other: dict[int, int]) -> None:
    shuffled = dict(reversed(list(one.items())))
    assert selection_digest(_frame(one)) == selection_digest(_frame(shuffled))
    assert (selection_digest(_frame(one)) == selection_digest(_frame(other))) == (one == other)
    assert len(selection_digest(_frame(one))) == DIGEST_LENGTH
