"""Acts on reviews: their effects in one transaction, and two reviewers who never overwrite."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import timedelta

import polars as pl
import pytest

from pipeline_assets.review.decisions import Decision, asked_of, assign, decide
from pipeline_assets.review.errors import (
    NothingSelected,
    ReviewChanged,
    ReviewDecided,
    ReviewError,
    ReviewOvertaken,
    RevisionUnknown,
    UnknownReview,
)
from resources.context import Context
from resources.ledger.archive import lock_archive
from resources.ledger.moves import batch_chain, move_records
from resources.ledger.reviews import QUALITY_SAMPLE, close_overtaken
from resources.ledger.schema import judgements, moves, review_acts, reviews
from tests.integration.ledger.support import CAUSE, count, numbers, states
from tests.integration.review.support import fill, review, rows
from tests.support.clock import FrozenClock

CONTENT = '{"title":"another"}'


def _decide(
    context: Context, decision: Decision, *pairs: tuple[int, int], who: str = "Ada"
) -> None:
    asked = asked_of(list(pairs))
    if decision == "correct":
        asked = asked.with_columns(content=pl.lit(CONTENT))
    decide(context, asked, decision, reviewer=who, reason="seen")


@pytest.mark.parametrize(
    ("decision", "state"), [("accept", "accepted"), ("correct", "accepted"), ("reject", "rejected")]
)
def test_a_decision_moves_the_record_and_says_who_and_why(
    context: Context, decision: Decision, state: str, frozen_clock: FrozenClock
) -> None:
    fill(context.ledger, 3)
    frozen_clock.advance(timedelta(hours=2))
    _decide(context, decision, (2, 0))
    row = review(context.ledger, 2)
    now = context.ledger.now()
    assert (row["decision"], row["reviewer"], row["reason"]) == (decision, "Ada", "seen")
    assert (row["decided_at"], row["revision"]) == (now, 1)
    corrected = decision == "correct"
    assert (row["corrected_content"] == CONTENT) is corrected
    assert (row["corrected_digest"] is not None) is corrected
    assert states(context.ledger) == {1: "awaiting_review", 2: state, 3: "awaiting_review"}
    assert rows(context.ledger, review_acts) == [
        {
            "review_no": 2,
            "revision": 1,
            "act": decision,
            "who": "Ada",
            "reason": "seen",
            "acted_at": now,
        }
    ]
    move = rows(context.ledger, moves)[-1]
    assert (move["actor"], move["chain"], move["to_state"]) == ("Ada", batch_chain(1), state)
    assert move["reason"].endswith("by a reviewer: seen")


def test_a_sample_that_is_right_or_corrected_moves_nothing(context: Context) -> None:
    fill(context.ledger, 2, kind=QUALITY_SAMPLE)
    before = count(context.ledger, moves)
    _decide(context, "accept", (1, 0))
    _decide(context, "correct", (2, 0))
    assert states(context.ledger) == {1: "accepted", 2: "accepted"}
    assert count(context.ledger, moves) == before
    assert review(context.ledger, 2)["corrected_content"] == CONTENT


def test_a_set_over_several_batches_is_one_act(context: Context) -> None:
    fill(context.ledger, 10, batches=3)
    done = decide(
        context,
        asked_of([(number, 0) for number in range(1, 11)]),
        "accept",
        reviewer="Ada",
        reason="all good",
    )
    assert (done.reviews, done.documents) == (10, ("shop/1.txt", "shop/2.txt", "shop/3.txt"))
    assert set(states(context.ledger).values()) == {"accepted"}
    made = [row["chain"] for row in rows(context.ledger, moves) if row["to_state"] == "accepted"]
    assert made == [batch_chain(1), batch_chain(2), batch_chain(3)]
    assert count(context.ledger, review_acts) == 10


def _accept_first(context: Context) -> None:
    _decide(context, "accept", (1, 0), who="Ada")


def _assign_first(context: Context) -> None:
    assign(context, asked_of([(1, 0)]), "Bob", by="Ada", reason="")


def _ask_again(context: Context) -> None:
    with context.ledger.write() as connection:
        move_records(
            connection,
            context.ledger.dialect,
            numbers(1),
            "awaiting_review",
            "prepared",
            CAUSE,
            batch_chain(1),
        )


def _judge_again(context: Context) -> None:
    with context.ledger.write() as connection:
        close_overtaken(connection, context.ledger, numbers(1), context.ledger.now())


@pytest.mark.parametrize(
    ("happened", "error", "said"),
    [
        pytest.param(
            _accept_first, ReviewDecided, "decided already: accepted by Ada", id="decided"
        ),
        pytest.param(_assign_first, ReviewChanged, "assigned by Ada at 2030", id="changed"),
        pytest.param(_ask_again, ReviewOvertaken, "its record is prepared now", id="asked-again"),
        pytest.param(_judge_again, ReviewOvertaken, "a newer answer", id="judged-again"),
    ],
)
def test_what_was_seen_and_is_no_longer_so_is_refused_whole(
    context: Context, happened: Callable[[Context], None], error: type[ReviewError], said: str
) -> None:
    fill(context.ledger, 2)
    happened(context)
    before = (rows(context.ledger, reviews), states(context.ledger), count(context.ledger, moves))
    decisions: tuple[Decision, ...] = ("accept", "correct", "reject")
    for decision in decisions:
        with pytest.raises(error, match=said):
            _decide(context, decision, (2, 0), (1, 0), who="Bob")
    with pytest.raises(error, match=said):
        assign(context, asked_of([(2, 0), (1, 0)]), "Bob", by="Bob", reason="")
    after = (rows(context.ledger, reviews), states(context.ledger), count(context.ledger, moves))
    assert before == after


def test_an_act_needs_reviews_that_are_there(context: Context) -> None:
    fill(context.ledger, 1)
    with pytest.raises(UnknownReview, match="no review 7"):
        _decide(context, "accept", (1, 0), (7, 0))
    with pytest.raises(NothingSelected):
        _decide(context, "accept")
    assert review(context.ledger, 1)["decision"] is None


def test_a_newer_judgement_overtakes_even_before_the_review_is_closed(context: Context) -> None:
    fill(context.ledger, 1)
    with context.ledger.write() as connection:
        context.ledger.dialect.load(
            connection,
            judgements,
            pl.DataFrame(
                [{"attempt_no": 2, "record_no": 1, "outcome": "accepted", "values_digest": "e"}]
            ),
        )
        connection.exec_driver_sql(
            "INSERT INTO attempts (attempt_no, batch_no, record_no, ordinal, recovery_path, "
            "request_digest, request_offset, request_length) "
            "VALUES (2, 1, 1, 2, 'repeat', 'd', 0, 1)"
        )
    with pytest.raises(ReviewOvertaken, match="a newer answer"):
        _decide(context, "accept", (1, 0))


def test_a_revision_that_never_was_is_nobodys_act(context: Context) -> None:
    fill(context.ledger, 1)
    with pytest.raises(RevisionUnknown, match="no revision 5; it is at revision 0"):
        _decide(context, "accept", (1, 5))
    assert review(context.ledger, 1)["decision"] is None


def test_closing_overtaken_reviews_is_an_act_too(context: Context) -> None:
    fill(context.ledger, 3)
    _decide(context, "accept", (2, 0))
    with context.ledger.write() as connection:
        closed = close_overtaken(connection, context.ledger, numbers(1, 2), context.ledger.now())
    assert closed == 1
    assert [row["decision"] for row in rows(context.ledger, reviews)] == [
        "overtaken",
        "accept",
        None,
    ]
    act = rows(context.ledger, review_acts)[0]
    assert (act["review_no"], act["revision"], act["act"]) == (1, 1, "overtaken")


def _race(acts: list[Callable[[], object]]) -> list[Exception | None]:
    """Do the acts at once, each in a thread with a connection of its own; what each raised."""
    barrier = threading.Barrier(len(acts))
    ends: list[Exception | None] = [None] * len(acts)

    def act(at: int) -> None:
        barrier.wait()
        try:
            acts[at]()
        except ReviewError as error:
            ends[at] = error

    threads = [threading.Thread(target=act, args=(at,)) for at in range(len(acts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return ends


def test_of_two_reviewers_at_once_one_decides_and_the_other_is_told(context: Context) -> None:
    fill(context.ledger, 8)
    for number in range(1, 9):
        ends = _race(
            [
                lambda n=number: _decide(context, "accept", (n, 0), who="Ada"),
                lambda n=number: _decide(context, "reject", (n, 0), who="Bob"),
            ]
        )
        (winner,) = [who for who, end in zip(("Ada", "Bob"), ends, strict=True) if end is None]
        (refused,) = [end for end in ends if end is not None]
        assert isinstance(refused, ReviewDecided)
        assert f"by {winner}" in str(refused)
        row = review(context.ledger, number)
        assert (row["reviewer"], row["revision"]) == (winner, 1)
        assert states(context.ledger)[number] == ("accepted" if winner == "Ada" else "rejected")
    assert count(context.ledger, review_acts) == 8


def test_a_sample_that_is_being_published_is_rejected_once_it_is(context: Context) -> None:
    fill(context.ledger, 2, kind=QUALITY_SAMPLE)
    publishing = threading.Event()

    def publish() -> None:
        with context.ledger.write() as connection:
            lock_archive(connection, context.ledger)
            publishing.set()
            time.sleep(0.3)
            move_records(
                connection,
                context.ledger.dialect,
                numbers(1, 2),
                "accepted",
                "published",
                CAUSE,
                batch_chain(1),
            )

    def reject() -> None:
        publishing.wait()
        _decide(context, "reject", (1, 0))

    assert _race([publish, reject]) == [None, None]
    assert states(context.ledger) == {1: "rejected", 2: "published"}


def test_sets_that_overlap_in_another_order_never_mix(context: Context) -> None:
    fill(context.ledger, 40, batches=4)
    up = [(number, 0) for number in range(1, 31)]
    down = [(number, 0) for number in range(40, 10, -1)]
    ends = _race(
        [
            lambda: _decide(context, "accept", *up, who="Ada"),
            lambda: _decide(context, "reject", *down, who="Bob"),
            lambda: assign(context, asked_of(down), "Cy", by="Cy", reason=""),
        ]
    )
    assert sum(end is None for end in ends) == 1
    assert all(end is None or isinstance(end, ReviewChanged) for end in ends)
    touched = {row["review_no"] for row in rows(context.ledger, review_acts)}
    assert touched in ({number for number, _ in up}, {number for number, _ in down})
    assert len({row["reviewer"] for row in rows(context.ledger, reviews)} - {None}) <= 1
