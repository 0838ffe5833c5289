"""What an answer means for a delivery, when it is tried again, and the key of an effect."""

from __future__ import annotations

import random
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_assets.outlets.http import _seconds
from pipeline_assets.outlets.queue import (
    FIRST_WAIT,
    GIVE_UP_AFTER,
    LEAST_TRIES,
    LONGEST_ASKED_WAIT,
    LONGEST_WAIT,
    Answer,
    key_of,
    next_wait,
    outcome_of,
)
from resources.clock import to_text
from tests.support.clock import START

QUEUED = to_text(START)
ROW = {
    "record_id": "r",
    "request_digest": "q",
    "accepted_digest": "a",
    "promotion": 1,
}


@pytest.mark.parametrize(
    ("answer", "state"),
    [
        pytest.param(Answer(200), "delivered", id="taken"),
        pytest.param(Answer(204), "delivered", id="taken without a body"),
        pytest.param(Answer(400), "refused", id="malformed"),
        pytest.param(Answer(409), "refused", id="conflict"),
        pytest.param(Answer(409, retry_after=timedelta(seconds=1)), "due", id="still at it"),
        pytest.param(Answer(410), "refused", id="gone"),
        pytest.param(Answer(422), "refused", id="unprocessable"),
        pytest.param(Answer(301), "due", id="redirect"),
        pytest.param(Answer(401), "due", id="no access"),
        pytest.param(Answer(404), "due", id="wrong address"),
        pytest.param(Answer(408), "due", id="request timeout"),
        pytest.param(Answer(425), "due", id="too early"),
        pytest.param(Answer(429), "due", id="too many"),
        pytest.param(Answer(500), "due", id="server error"),
        pytest.param(Answer(507), "due", id="no storage"),
        pytest.param(Answer(None, "it did not answer in time"), "due", id="timeout"),
    ],
)
def test_answers(answer: Answer, state: str, rng: random.Random) -> None:
    outcome = outcome_of(answer, 1, QUEUED, START, rng)
    assert outcome.state == state
    assert (outcome.problem is None) == (state == "delivered")
    assert (outcome.next_try_at is not None) == (state == "due")


@pytest.mark.parametrize(
    ("tries", "age", "state"),
    [
        pytest.param(LEAST_TRIES, GIVE_UP_AFTER, "given_up", id="long and often"),
        pytest.param(LEAST_TRIES - 1, GIVE_UP_AFTER, "due", id="long"),
        pytest.param(LEAST_TRIES, GIVE_UP_AFTER - timedelta(seconds=1), "due", id="often"),
    ],
)
def test_giving_up(tries: int, age: timedelta, state: str, rng: random.Random) -> None:
    assert outcome_of(Answer(500), tries, QUEUED, START + age, rng).state == state


@given(st.integers(1, 10_000), st.integers(0, 10**6))
def test_waits_stay_under_their_bound(tries: int, seed: int) -> None:
    wait = next_wait(tries, random.Random(seed))
    assert timedelta(0) <= wait <= min(LONGEST_WAIT, FIRST_WAIT * 2 ** min(tries - 1, 20))


@pytest.mark.parametrize(
    ("asked", "least", "most"),
    [
        (timedelta(hours=2), timedelta(hours=2), timedelta(hours=2)),
        (timedelta(days=300), LONGEST_ASKED_WAIT, LONGEST_ASKED_WAIT),
        (timedelta(0), timedelta(0), FIRST_WAIT),
    ],
    ids=["granted", "too long", "none"],
)
def test_what_the_outlet_asks_for(
    asked: timedelta, least: timedelta, most: timedelta, rng: random.Random
) -> None:
    outcome = outcome_of(Answer(429, retry_after=asked), 1, QUEUED, START, rng)
    assert outcome.next_try_at is not None
    assert least <= outcome.next_try_at - START <= most


@pytest.mark.parametrize(
    ("header", "seconds"),
    [("7", 7), ("0", 0), (None, None), ("-1", None), ("", None), ("soon", None), ("\u0663", None)],
)
def test_retry_after(header: str | None, seconds: int | None) -> None:
    assert _seconds(header) == (None if seconds is None else timedelta(seconds=seconds))


def test_a_retry_after_of_any_length_is_read() -> None:
    assert _seconds("9" * 5_000) is not None


@pytest.mark.parametrize(
    "other",
    [
        {"record_id": "s"},
        {"request_digest": "p"},
        {"accepted_digest": "b"},
        {"promotion": 2},
        {"record_id": "r\0q", "request_digest": ""},
    ],
    ids=["record", "request", "values", "promotion", "moved border"],
)
def test_each_part_makes_another_key(other: dict[str, object]) -> None:
    assert key_of("webhook", "put", {**ROW, **other}) != key_of("webhook", "put", ROW)


def test_a_key_is_of_one_outlet_and_one_effect() -> None:
    keys = {key_of(outlet, effect, ROW) for outlet in ("a", "b") for effect in ("put", "remove")}
    assert len(keys) == 4
    assert key_of("a", "put", dict(ROW)) in keys
