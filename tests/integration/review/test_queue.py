"""The queue: its order, its conditions, and handing out the next review to several reviewers."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import text, update

from pipeline_assets.review.bulk import decide_selection, select_reviews
from pipeline_assets.review.decisions import asked_of, assign, decide
from pipeline_assets.review.errors import (
    NothingSelected,
    RevisionMalformed,
    SelectionChanged,
    UnknownReview,
)
from pipeline_assets.review.queue import (
    SCREEN_MINUTES,
    place_of,
    read_names,
    read_queue,
    take_next,
)
from resources.context import Context
from resources.ledger.moves import batch_chain, move_records
from resources.ledger.review_queue import Wanted
from resources.ledger.reviews import FINDINGS, QUALITY_SAMPLE
from resources.ledger.schema import reviews
from tests.integration.ledger.support import CAUSE, numbers, states
from tests.integration.review.support import counted_statements, fill, review
from tests.support.clock import FrozenClock

EVERYTHING = Wanted()


def _numbers(context: Context, wanted: Wanted = EVERYTHING, limit: int = 100) -> list[int]:
    return read_queue(context, wanted, limit).reviews["review_no"].to_list()


def _set(context: Context, number: int, **values: Any) -> None:
    with context.ledger.write() as connection:
        connection.execute(update(reviews).where(reviews.c.review_no == number).values(**values))


def test_the_most_urgent_comes_first_and_then_the_oldest(context: Context) -> None:
    fill(context.ledger, 5)
    _set(context, 4, priority=99)
    _set(context, 2, priority=0)
    _set(context, 5, opened_at="2029-01-01T00:00:00.000000Z")
    assert _numbers(context) == [4, 5, 1, 3, 2]
    queue = read_queue(context, EVERYTHING, 2)
    assert (queue.reviews["review_no"].to_list(), queue.waiting) == ([4, 5], 5)
    assert queue.reviews["rules"].to_list() == [["even"], ["odd"]]
    assert queue.reviews["document_id"].to_list() == ["shop/4.txt", "shop/5.txt"]


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        pytest.param(Wanted(version_no=1), [1, 2, 3, 4, 5, 6], id="version"),
        pytest.param(Wanted(version_no=2), [], id="another-version"),
        pytest.param(Wanted(rule="even"), [2, 4, 6], id="rule"),
        pytest.param(Wanted(rule="even", slice="slice 0"), [6], id="rule-and-slice"),
        pytest.param(Wanted(field="title"), [1, 2, 3, 4, 5, 6], id="field"),
        pytest.param(Wanted(field="language"), [], id="field-without-a-finding"),
        pytest.param(Wanted(slice="slice 1"), [1, 4], id="slice"),
        pytest.param(Wanted(kind=FINDINGS), [1, 2, 3, 4, 5, 6], id="kind"),
        pytest.param(Wanted(kind=QUALITY_SAMPLE), [], id="another-kind"),
        pytest.param(Wanted(assigned_to="Bob"), [3], id="assigned"),
        pytest.param(Wanted(unassigned=True, rule="odd"), [1, 5], id="unassigned"),
    ],
)
def test_conditions_narrow_it(context: Context, wanted: Wanted, found: list[int]) -> None:
    fill(context.ledger, 6)
    assign(context, asked_of([(3, 0)]), "Bob", by="Ada", reason="his field")
    assert _numbers(context, wanted) == found
    assert read_queue(context, wanted, 1).waiting == len(found)


def test_a_note_sends_nothing_to_a_person(context: Context) -> None:
    fill(context.ledger, 4)
    with context.ledger.write() as connection:
        connection.execute(text("UPDATE findings SET severity = 'note' WHERE record_no = 2"))
    assert _numbers(context, Wanted(rule="even")) == [4]
    assert select_reviews(context, EVERYTHING).rules == {"odd": 2, "even": 1}
    told = dict(read_queue(context, EVERYTHING, 9).reviews.select("review_no", "rules").iter_rows())
    assert told == {1: ["odd"], 2: [], 3: ["odd"], 4: ["even"]}


def test_what_is_decided_or_moved_on_leaves_it(context: Context) -> None:
    fill(context.ledger, 4)
    decide(context, asked_of([(1, 0)]), "accept", reviewer="Ada", reason="seen")
    with context.ledger.write() as connection:
        move_records(
            connection,
            context.ledger.dialect,
            numbers(2),
            "awaiting_review",
            "prepared",
            CAUSE,
            batch_chain(1),
        )
        connection.execute(text("UPDATE attempts SET attempt_no = 50 WHERE attempt_no = 4"))
        connection.execute(
            text(
                "INSERT INTO attempts SELECT 4, batch_no, record_no, 2, 'first', request_digest, "
                "0, 1, NULL FROM attempts WHERE attempt_no = 50"
            )
        )
        connection.execute(text("INSERT INTO judgements VALUES (50, 4, 'awaiting_review', 'e')"))
    assert _numbers(context) == [3]


def test_two_reviewers_are_never_shown_the_same_one(
    context: Context, frozen_clock: FrozenClock
) -> None:
    fill(context.ledger, 4)
    assign(context, asked_of([(2, 0)]), "Bob", by="Ada", reason="")
    assert take_next(context, EVERYTHING, "Ada") == 1
    assert take_next(context, EVERYTHING, "Bob") == 2
    assert take_next(context, EVERYTHING, "Cy") == 3
    assert take_next(context, EVERYTHING, "Ada") == 1
    assert take_next(context, EVERYTHING, "Ada", place_of(context, 1)) == 4
    assert take_next(context, EVERYTHING, "Cy", place_of(context, 3)) is None
    first = review(context.ledger, 1)
    assert (first["taken_by"], first["taken_at"]) == ("Ada", context.ledger.now())
    assert first["revision"] == 0, "looking is no act"
    frozen_clock.advance(timedelta(minutes=SCREEN_MINUTES))
    assert take_next(context, EVERYTHING, "Cy") == 1
    assert review(context.ledger, 1)["taken_by"] == "Cy"


def test_the_time_that_a_review_takes_begins_with_the_first_look(
    context: Context, frozen_clock: FrozenClock
) -> None:
    fill(context.ledger, 1)
    begun = context.ledger.now()
    take_next(context, EVERYTHING, "Ada")
    frozen_clock.advance(timedelta(minutes=5))
    take_next(context, EVERYTHING, "Ada")
    assert review(context.ledger, 1)["taken_at"] == begun


def test_names_with_a_revision_mean_what_was_seen(context: Context) -> None:
    fill(context.ledger, 3)
    assign(context, asked_of([(2, 0)]), "Bob", by="Ada", reason="")
    assert read_names(context, ["2", "1@7", "2"]).rows() == [(2, 1), (1, 7)]
    with pytest.raises(UnknownReview, match="no review 9, 8"):
        read_names(context, ["9", "1", "8"])
    for name in ("one", "1@", "-1", "1.5", "", "9" * 19):
        with pytest.raises(RevisionMalformed, match="NUMBER@REVISION"):
            read_names(context, [name])


def test_a_selection_is_decided_as_it_was_confirmed(context: Context) -> None:
    fill(context.ledger, 9, batches=2)
    wanted = Wanted(version_no=1, rule="even")
    selection = select_reviews(context, wanted)
    assert selection.members["review_no"].to_list() == [2, 4, 6, 8]
    assert selection.rules == {"even": 4}
    assert select_reviews(context, EVERYTHING).rules == {"odd": 5, "even": 4}
    done = decide_selection(
        context, wanted, selection.digest, "reject", reviewer="Ada", reason="a bad rule"
    )
    assert done.reviews == 4
    assert [no for no, state in states(context.ledger).items() if state == "rejected"] == [
        2,
        4,
        6,
        8,
    ]
    with pytest.raises(NothingSelected):
        select_reviews(context, wanted)


@pytest.mark.parametrize("change", ["decided", "assigned"])
def test_a_selection_that_changed_is_refused(context: Context, change: str) -> None:
    fill(context.ledger, 4)
    wanted = Wanted(rule="even")
    selection = select_reviews(context, wanted)
    if change == "decided":
        decide(context, asked_of([(2, 0)]), "accept", reviewer="Bob", reason="seen")
    else:
        assign(context, asked_of([(2, 0)]), "Bob", by="Bob", reason="")
    with pytest.raises(SelectionChanged, match=f"confirmed {selection.digest}"):
        decide_selection(
            context, wanted, selection.digest, "reject", reviewer="Ada", reason="a bad rule"
        )
    assert states(context.ledger)[4] == "awaiting_review"


def test_the_size_of_a_set_makes_no_difference_to_the_number_of_statements(
    context: Context,
) -> None:
    fill(context.ledger, 500)
    needed = []
    for wanted in (Wanted(slice="slice 0"), Wanted(rule="even"), EVERYTHING):
        selection = select_reviews(context, wanted)
        with counted_statements(context.ledger) as seen:
            decide_selection(
                context, wanted, selection.digest, "accept", reviewer="Ada", reason="seen"
            )
        needed.append(len(seen))
    assert len(set(needed)) == 1, needed


@pytest.mark.slow
def test_a_long_queue_is_quick_to_read_and_a_large_set_to_decide(context: Context) -> None:
    import time

    fill(context.ledger, 100_000, batches=4)
    begun = time.monotonic()
    queue = read_queue(context, Wanted(version_no=1), 50)
    taken = take_next(context, EVERYTHING, "Ada")
    read = time.monotonic() - begun
    assert (queue.waiting, taken) == (100_000, 1)
    with context.ledger.write() as connection:
        connection.execute(text("UPDATE reviews SET slice = 'few' WHERE review_no <= 10000"))
    selection = select_reviews(context, Wanted(slice="few"))
    begun = time.monotonic()
    decide_selection(
        context, selection.wanted, selection.digest, "accept", reviewer="Ada", reason="seen"
    )
    decided = time.monotonic() - begun
    print(f"{context.ledger.dialect.name}: read {read:.2f} s, 10,000 decided in {decided:.2f} s")
    assert read < 20
    assert decided < 60
