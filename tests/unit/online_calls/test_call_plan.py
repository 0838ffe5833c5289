"""The plan of a group: what is sent next, and what every kind of reply leads to."""

from __future__ import annotations

import random
from datetime import timedelta
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_assets.online_calls.call_plan import (
    REPEATED,
    STOPPING,
    CallPlan,
    CallPolicy,
    RowCalls,
    Verdict,
    backoff,
    judge_reply,
)
from pipeline_assets.online_calls.window import Window
from resources.providers.port import FailureClass, Reply
from tests.support.clock import START

POLICY = CallPolicy(tries=4, ambiguous_tries=1, patience_seconds=60)
OK = Reply(200, b"{}")
BUSY = Reply(429, failure="rate_limited")


def plan_of(rows: int, size: int, limit: int | None = None) -> CallPlan:
    return CallPlan(rows, Window(size, limit or size), POLICY, random.Random(1))


def take_all(plan: CallPlan, seconds: float = 0.0) -> list[int]:
    taken = []
    while (row := plan.take(START + timedelta(seconds=seconds))) is not None:
        taken.append(row)
    return taken


@pytest.mark.parametrize(
    ("reply", "calls", "verdict"),
    [
        pytest.param(OK, RowCalls(1), "final", id="answer"),
        pytest.param(OK, RowCalls(4, 1), "final", id="answer to the last call"),
        pytest.param(Reply(429, failure="rate_limited"), RowCalls(1), "again", id="rate limit"),
        pytest.param(Reply(429, failure="rate_limited"), RowCalls(3), "again", id="third try"),
        pytest.param(Reply(429, failure="rate_limited"), RowCalls(4), "final", id="tries used up"),
        pytest.param(Reply(529, failure="overloaded"), RowCalls(1), "again", id="overloaded"),
        pytest.param(Reply(429, failure="capacity"), RowCalls(1), "again", id="capacity"),
        pytest.param(Reply(500, failure="server_error"), RowCalls(1), "again", id="server error"),
        pytest.param(Reply(0, failure="transport"), RowCalls(1), "again", id="not connected"),
        pytest.param(
            Reply(0, failure="transport", ambiguous=True), RowCalls(1), "again", id="ambiguous"
        ),
        pytest.param(
            Reply(0, failure="transport", ambiguous=True),
            RowCalls(2, 1),
            "final",
            id="ambiguous again",
        ),
        pytest.param(
            Reply(0, failure="transport"), RowCalls(2, 1), "again", id="sure after ambiguous"
        ),
        pytest.param(
            Reply(400, failure="invalid_request"), RowCalls(1), "final", id="invalid request"
        ),
        pytest.param(Reply(400, failure="unsupported"), RowCalls(1), "final", id="unsupported"),
        pytest.param(Reply(401, failure="auth"), RowCalls(1), "stop", id="auth"),
        pytest.param(Reply(429, failure="quota"), RowCalls(4), "stop", id="quota"),
        pytest.param(
            Reply(429, retry_after=60, failure="rate_limited"), RowCalls(1), "again", id="patient"
        ),
        pytest.param(
            Reply(429, retry_after=61, failure="rate_limited"),
            RowCalls(4),
            "stop",
            id="out of patience",
        ),
        pytest.param(
            Reply(400, retry_after=900, failure="invalid_request"),
            RowCalls(1),
            "final",
            id="a wait that no call follows",
        ),
    ],
)
def test_judge_reply(reply: Reply, calls: RowCalls, verdict: Verdict) -> None:
    assert judge_reply(reply, calls, POLICY) == verdict


def test_no_class_is_repeated_that_stops() -> None:
    classes = frozenset(get_args(FailureClass))
    assert not REPEATED & STOPPING
    assert classes - REPEATED - STOPPING == {"invalid_request", "unsupported"}


@given(tries=st.integers(1, 5000), seed=st.integers(0, 1000))
def test_backoff_is_bounded(tries: int, seed: int) -> None:
    policy = CallPolicy(backoff_seconds=0.5, backoff_cap_seconds=20)
    wait = backoff(tries, policy, random.Random(seed)).total_seconds()
    assert 0 <= wait <= min(20, 0.5 * 2 ** min(tries - 1, 40))


def test_backoff_is_full_jitter() -> None:
    rng = random.Random(7)
    waits = [backoff(3, CallPolicy(backoff_seconds=1), rng).total_seconds() for _ in range(2000)]
    assert min(waits) < 0.05
    assert max(waits) > 3.95
    assert 1.9 < sum(waits) / len(waits) < 2.1


def test_hands_out_rows_in_order_as_far_as_the_window_goes() -> None:
    plan = plan_of(5, size=2)
    assert take_all(plan) == [0, 1]
    plan.settle(1, OK, START)
    assert take_all(plan) == [2]
    assert plan.wake_at(START) is None


def test_a_shrunk_window_waits_until_it_fits() -> None:
    plan = plan_of(6, size=4)
    assert take_all(plan) == [0, 1, 2, 3]
    plan.settle(0, BUSY, START)
    assert plan.window.size == 2
    plan.settle(1, OK, START)
    assert take_all(plan, 100) == []
    plan.settle(2, OK, START)
    assert take_all(plan, 100) == [0]  # one is under way; the row that was turned away comes first


def test_waiting_rows_keep_their_place_against_fresh_ones() -> None:
    plan = plan_of(9, size=2)
    assert take_all(plan) == [0, 1]
    for row in (0, 1):
        plan.settle(row, Reply(500, failure="server_error"), START)
    assert take_all(plan) == []
    due = plan.wake_at(START)
    assert due is not None
    assert START < due <= START + timedelta(seconds=POLICY.backoff_seconds)
    assert sorted(take_all(plan, 2)) == [0, 1]


def test_retry_after_holds_back_every_row() -> None:
    plan = plan_of(9, size=4)
    assert take_all(plan) == [0, 1, 2, 3]
    plan.settle(0, Reply(429, retry_after=30, failure="rate_limited"), START)
    for row in (1, 2, 3):
        plan.settle(row, OK, START)
    assert take_all(plan, 29.9) == []
    assert plan.wake_at(START) == START + timedelta(seconds=30)
    assert 4 in take_all(plan, 30)


def test_retry_after_of_a_server_error_blocks_and_does_not_shrink() -> None:
    plan = plan_of(9, size=4)
    take_all(plan)
    plan.settle(0, Reply(500, retry_after=30, failure="server_error"), START)
    assert plan.window.size == 4
    assert plan.window.blocked_until == START + timedelta(seconds=30)


def test_a_final_failure_leaves_the_window_alone() -> None:
    plan = plan_of(9, size=4)
    take_all(plan)
    before = plan.window
    plan.settle(0, Reply(400, retry_after=30, failure="invalid_request"), START)
    assert plan.window == before


def test_a_stop_hands_out_nothing_and_takes_what_is_under_way() -> None:
    plan = plan_of(9, size=4)
    take_all(plan)
    plan.settle(1, Reply(500, failure="server_error"), START)
    plan.settle(2, Reply(401, failure="auth"), START)
    assert take_all(plan, 100) == []
    assert plan.wake_at(START) is None
    assert not plan.done
    plan.settle(0, OK, START)
    plan.settle(3, Reply(429, failure="quota"), START)
    assert plan.done
    assert plan.stopped == "auth"
    assert set(plan.settled) == {0}
    assert plan.unanswered == (1, 2, 3, 4, 5, 6, 7, 8)


def test_ambiguous_calls_are_counted_each() -> None:
    plan = plan_of(1, size=1)
    lost = Reply(0, failure="transport", ambiguous=True)
    for second in (0, 100):
        assert take_all(plan, second) == [0]
        plan.settle(0, lost, START)
    assert (plan.calls, plan.possibly_paid, plan.done) == (2, 2, True)
    assert plan.settled == {0: lost}


def test_no_rows_are_done_at_once() -> None:
    assert plan_of(0, size=1).done
