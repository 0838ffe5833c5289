"""What each channel has to be told: new, again, over, and what waits."""

from __future__ import annotations

import random
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_assets.alerting.decision import (
    LONGEST_WAIT,
    Delivery,
    DeliveryPolicy,
    News,
    decide_deliveries,
    news_of,
    next_wait,
)
from resources.clock import to_text
from resources.ledger.alert_deliveries import Told
from resources.ledger.alerts import Alert
from tests.support.clock import START

REPEAT = timedelta(minutes=60)
ONE = DeliveryPolicy(("webhook",))
BOTH = DeliveryPolicy(("webhook", "smtp"))


def at(minutes: float) -> str:
    """The ledger's text of a moment before (negative) or after now."""
    return to_text(START + timedelta(minutes=minutes))


def alert(no: int = 1, kind: str = "unreachable", times: int = 1, cleared: bool = False) -> Alert:
    over = at(-1) if cleared else None
    return Alert(kind, f"job-{no}", "it does not answer", at(-99), at(-2), times, over, no)


def told(no: int = 1, channel: str = "webhook", **values: object) -> Told:
    return Told(no, channel, **{"told_times": 1, **values})  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("found", "row", "news"),
    [
        pytest.param(alert(), Told(1, "webhook"), "new", id="never-told"),
        pytest.param(alert(), told(told_at=at(-90)), None, id="told-and-unchanged"),
        pytest.param(alert(times=2), told(told_at=at(-60)), "again", id="grown-and-an-hour-ago"),
        pytest.param(alert(times=2), told(told_at=at(-59.9)), None, id="grown-but-just-told"),
        pytest.param(alert(times=9), told(told_at=at(-600), told_times=9), None, id="not-grown"),
        pytest.param(alert(cleared=True), Told(1, "webhook"), None, id="over-before-it-was-told"),
        pytest.param(alert(cleared=True), told(told_at=at(-2)), "over", id="over"),
        pytest.param(
            alert(cleared=True), told(told_at=at(-9), told_cleared_at=at(-1)), None, id="over-told"
        ),
        pytest.param(
            alert(cleared=True),
            told(told_times=0, failures=3, next_try_at=at(5), problem="it answered 500"),
            None,
            id="over-and-every-try-failed",
        ),
        pytest.param(
            alert(), told(told_times=0, next_try_at=at(-1)), "new", id="sender-died-while-open"
        ),
        pytest.param(
            alert(cleared=True),
            told(told_times=0, next_try_at=at(-1)),
            "over",
            id="sender-died-and-it-may-have-been-heard",
        ),
        pytest.param(
            alert(times=3),
            told(told_at=at(-90), failures=1, next_try_at=at(-1), problem="it answered 500"),
            "again",
            id="growth-that-failed-once",
        ),
    ],
)
def test_news(found: Alert, row: Told, news: News | None) -> None:
    assert news_of(found, row, START, REPEAT) == news


def shown(deliveries: list[Delivery]) -> dict[str, list[tuple[int, str]]]:
    return {
        delivery.channel: [(notice.alert.no, notice.news) for notice in delivery.notices]
        for delivery in deliveries
    }


FAILED = {"told_times": 0, "failures": 2, "problem": "it answered 500"}


@pytest.mark.parametrize(
    ("alerts", "rows", "policy", "expected"),
    [
        pytest.param([], [], BOTH, {}, id="nothing"),
        pytest.param(
            [alert(1), alert(2)],
            [],
            BOTH,
            {"webhook": [(1, "new"), (2, "new")], "smtp": [(1, "new"), (2, "new")]},
            id="one-message-a-channel",
        ),
        pytest.param(
            [alert(1)], [told(told_at=at(-5))], BOTH, {"smtp": [(1, "new")]}, id="only-who-lacks-it"
        ),
        pytest.param([alert(1)], [told(**FAILED, next_try_at=at(3))], ONE, {}, id="waits"),
        pytest.param(
            [alert(1)],
            [told(**FAILED, next_try_at=at(0))],
            ONE,
            {"webhook": [(1, "new")]},
            id="waited",
        ),
        pytest.param(
            [alert(1), alert(2)],
            [told(1, **FAILED, next_try_at=at(3))],
            ONE,
            {"webhook": [(1, "new"), (2, "new")]},
            id="what-waits-goes-along",
        ),
        pytest.param(
            [alert(1)],
            [told(**FAILED, next_try_at=at(3))],
            DeliveryPolicy(("webhook",), at_once=True),
            {"webhook": [(1, "new")]},
            id="a-person-does-not-wait",
        ),
        pytest.param(
            [alert(1), alert(2)],
            [told(1, told_times=0, next_try_at=at(3))],
            DeliveryPolicy(("webhook",), at_once=True),
            {"webhook": [(2, "new")]},
            id="what-another-sender-claimed-is-left-alone",
        ),
        pytest.param(
            [
                alert(1, "backpressure"),
                alert(2, "unreachable"),
                alert(3, "incident", cleared=True),
                alert(4, "incident"),
                alert(5, "never_heard_of"),
            ],
            [told(3, told_at=at(-9))],
            ONE,
            {"webhook": [(4, "new"), (2, "new"), (5, "new"), (1, "new"), (3, "over")]},
            id="urgent-first-over-last",
        ),
    ],
)
def test_deliveries(
    alerts: list[Alert],
    rows: list[Told],
    policy: DeliveryPolicy,
    expected: dict[str, list[tuple[int, str]]],
) -> None:
    assert shown(decide_deliveries(alerts, rows, START, policy)) == expected


def test_a_message_is_bounded_and_says_what_is_left() -> None:
    policy = DeliveryPolicy(("webhook",), most=3)
    (delivery,) = decide_deliveries([alert(no) for no in range(1, 9)], [], START, policy)
    assert [notice.alert.no for notice in delivery.notices] == [1, 2, 3]
    assert delivery.left == 5


@given(st.integers(1, 5000), st.integers(0, 2**32))
def test_waits_are_bounded(failures: int, seed: int) -> None:
    wait = next_wait(failures, random.Random(seed))
    assert timedelta() <= wait <= min(LONGEST_WAIT, timedelta(minutes=1) * 2 ** min(failures, 9))


def test_waits_grow_and_use_their_whole_range(rng: random.Random) -> None:
    """Full jitter: from nothing to the limit, else all that failed together come back together."""
    for failures, limit in ((1, 60), (2, 120), (4, 480), (7, 3600), (40, 3600)):
        waits = [next_wait(failures, rng).total_seconds() for _ in range(500)]
        assert min(waits) < 0.05 * limit
        assert 0.95 * limit < max(waits) <= limit


@given(
    st.lists(
        st.tuples(st.booleans(), st.integers(1, 3), st.sampled_from([None, -90, -10])), max_size=12
    )
)
def test_what_was_told_is_never_owed_at_once_again(
    drawn: list[tuple[bool, int, int | None]],
) -> None:
    """Writing down what a look told leaves nothing to tell in the same minute."""
    alerts = [
        alert(no, times=times, cleared=cleared) for no, (cleared, times, _) in enumerate(drawn, 1)
    ]
    rows = {
        no: told(no, told_at=at(minutes))
        for no, (_, _, minutes) in enumerate(drawn, 1)
        if minutes is not None
    }
    for delivery in decide_deliveries(alerts, rows.values(), START, ONE):
        for notice in delivery.notices:
            rows[notice.alert.no] = told(
                notice.alert.no,
                told_at=to_text(START),
                told_times=notice.alert.times,
                told_cleared_at=notice.alert.cleared_at and to_text(START),
            )
    soon: datetime = START + timedelta(seconds=59)
    assert decide_deliveries(alerts, rows.values(), soon, ONE) == []
