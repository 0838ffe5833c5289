"""Reviewers, the pipeline and operators at random: a decision once made is never overwritten."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from pipeline_assets.review.decisions import Decision, asked_of, assign, decide
from pipeline_assets.review.errors import ReviewError
from pipeline_assets.review.queue import read_queue, take_next
from resources.context import Context
from resources.ledger.moves import batch_chain, move_records
from resources.ledger.review_queue import Wanted
from resources.ledger.reviews import close_overtaken
from resources.ledger.schema import metadata, record_state, review_acts, reviews
from tests.integration.ledger.support import CAUSE, numbers, states
from tests.integration.review.support import fill, rows

SIZE = 4
REVIEWS = st.integers(1, SIZE)
REVIEWERS = st.sampled_from(["Ada", "Bob"])
DECISIONS: st.SearchStrategy[Decision] = st.sampled_from(["accept", "correct", "reject"])
ENDS = {"accept": "accepted", "correct": "accepted", "reject": "rejected"}


def _empty(context: Context) -> None:
    with context.ledger.write() as connection:
        for table in reversed(metadata.sorted_tables):
            if table.name != "ledger_info":
                connection.execute(table.delete())


class Reviewing(RuleBasedStateMachine):
    """Two reviewers act on what each saw last, which may be long ago."""

    context: Context

    def __init__(self) -> None:
        super().__init__()
        _empty(self.context)
        fill(self.context.ledger, SIZE, batches=2)
        self.seen: dict[tuple[str, int], int] = {}
        self.decided: dict[int, dict[str, Any]] = {}
        self.acts = 0

    def _now(self) -> dict[int, dict[str, Any]]:
        return {row["review_no"]: row for row in rows(self.context.ledger, reviews)}

    def _waiting(self) -> set[int]:
        return set(read_queue(self.context, Wanted(), SIZE).reviews["review_no"])

    @rule(who=REVIEWERS)
    def look_at_the_queue(self, who: str) -> None:
        for row in read_queue(self.context, Wanted(), SIZE).reviews.iter_rows(named=True):
            self.seen[who, row["review_no"]] = row["revision"]

    @rule(who=REVIEWERS)
    def take_one(self, who: str) -> None:
        taken = take_next(self.context, Wanted(), who)
        assert taken is None or self._now()[taken]["taken_by"] == who

    @rule(who=REVIEWERS, chosen=st.sets(REVIEWS, min_size=1), decision=DECISIONS)
    def decide_what_was_seen(self, who: str, chosen: set[int], decision: Decision) -> None:
        asked = asked_of([(number, self.seen.get((who, number), 0)) for number in sorted(chosen)])
        if decision == "correct":
            asked = asked.with_columns(content=pl.lit(f"by {who}"))
        before, now, waits = self._now(), states(self.context.ledger), self._waiting()
        fits = all(
            number in waits and before[number]["revision"] == revision
            for number, revision in asked.select("review_no", "revision").iter_rows()
        )
        try:
            decide(self.context, asked, decision, reviewer=who, reason="seen")
        except ReviewError:
            assert not fits
            assert (self._now(), states(self.context.ledger)) == (before, now)
            return
        assert fits
        self.acts += len(chosen)
        for number in chosen:
            assert states(self.context.ledger)[number] == ENDS[decision]
            self.decided[number] = self._now()[number]
            assert self.decided[number]["reviewer"] == who

    @rule(who=REVIEWERS, number=REVIEWS)
    def assign_what_was_seen(self, who: str, number: int) -> None:
        revision = self.seen.get((who, number), 0)
        before = self._now()
        fits = number in self._waiting() and before[number]["revision"] == revision
        try:
            assign(self.context, asked_of([(number, revision)]), "Cy", by=who, reason="")
        except ReviewError:
            assert not fits
            assert self._now() == before
            return
        assert fits
        self.acts += 1

    @rule(number=REVIEWS)
    def ask_again(self, number: int) -> None:
        state = states(self.context.ledger)[number]
        if state not in ("awaiting_review", "rejected"):
            return
        with self.context.ledger.write() as connection:
            move_records(
                connection,
                self.context.ledger.dialect,
                numbers(number),
                state,
                "prepared",
                CAUSE,
                batch_chain((number - 1) % 2 + 1),
            )

    @rule(number=REVIEWS)
    def judge_again(self, number: int) -> None:
        if states(self.context.ledger)[number] != "prepared":
            return
        ledger = self.context.ledger
        with ledger.write() as connection:
            attempt = 1000 + len(rows(ledger, record_state)) + self.acts * 10 + number
            taken = connection.exec_driver_sql("SELECT MAX(attempt_no) FROM attempts").scalar_one()
            attempt = max(attempt, taken + 1)
            connection.exec_driver_sql(
                "INSERT INTO attempts (attempt_no, batch_no, record_no, ordinal, recovery_path, "
                "request_digest, request_offset, request_length) "
                f"VALUES ({attempt}, 1, {number}, 2, 'repeat', 'd', 0, 1)"
            )
            connection.exec_driver_sql(
                "INSERT INTO judgements (attempt_no, record_no, outcome, values_digest) "
                f"VALUES ({attempt}, {number}, 'awaiting_review', 'e')"
            )
            connection.exec_driver_sql(
                f"UPDATE record_state SET state = 'awaiting_review' WHERE record_no = {number}"
            )
            self.acts += close_overtaken(connection, ledger, numbers(number), ledger.now())

    @invariant()
    def decisions_stay_and_every_act_is_kept(self) -> None:
        now = self._now()
        for number, row in self.decided.items():
            assert now[number] == row
        acts = rows(self.context.ledger, review_acts)
        assert len(acts) == self.acts
        by_review: dict[int, list[int]] = {}
        for act in acts:
            by_review.setdefault(act["review_no"], []).append(act["revision"])
        for number, row in now.items():
            assert by_review.get(number, []) == list(range(1, row["revision"] + 1))

    @invariant()
    def nothing_waits_that_cannot_be_decided(self) -> None:
        state, now = states(self.context.ledger), self._now()
        for number in self._waiting():
            assert state[number] == "awaiting_review"
            assert now[number]["decision"] is None


EXAMPLES = (
    pytest.param("sqlite", 25, id="sqlite"),
    pytest.param("postgresql", 40, id="postgresql", marks=[pytest.mark.postgres, pytest.mark.slow]),
)


@pytest.mark.parametrize(("shared_url", "examples"), EXAMPLES, indirect=["shared_url"])
def test_reviews_at_random(context: Context, examples: int) -> None:
    Reviewing.context = context
    run_state_machine_as_test(
        Reviewing,
        settings=settings(
            max_examples=examples,
            stateful_step_count=12,
            suppress_health_check=[HealthCheck.too_slow],
        ),
    )
