"""What each channel has to be told now: pure decisions.

Belongs here: new, again, over; what waits after a failure; how long. Does not belong here: reading
the ledger and sending (`deliver.py`).
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from pipeline_assets.alerting.kinds import SEVERITIES, kind_of
from resources.clock import from_text
from resources.ledger.alert_deliveries import Told
from resources.ledger.alerts import Alert

FIRST_WAIT = timedelta(minutes=1)
LONGEST_WAIT = timedelta(hours=1)
MOST_IN_A_MESSAGE = 50
"""More than a person reads at once; what is left goes into the next message."""

News = Literal["new", "again", "over"]


@dataclass(frozen=True)
class DeliveryPolicy:
    """How channels are told.

    Attributes:
        channels: names of the channels that there are.
        repeat: an open alert that goes on is told again no sooner than this.
        at_once: try now what waits after a failure (a person asked for it).
        most: alerts in one message.
    """

    channels: tuple[str, ...]
    repeat: timedelta = timedelta(minutes=60)
    at_once: bool = False
    most: int = MOST_IN_A_MESSAGE


@dataclass(frozen=True)
class Notice:
    """One alert, and what is new about it for a channel."""

    alert: Alert
    news: News


@dataclass(frozen=True)
class Delivery:
    """One message to one channel.

    Attributes:
        channel: the channel's name.
        notices: what it is told, the most urgent first and what is over last.
        left: alerts that did not fit and go into the next message.
    """

    channel: str
    notices: tuple[Notice, ...]
    left: int = 0


def decide_deliveries(
    alerts: Sequence[Alert], told: Iterable[Told], now: datetime, policy: DeliveryPolicy
) -> list[Delivery]:
    """The message that each channel is owed now; a channel that is owed none is left out.

    An alert that waits after a failed try goes along as soon as any other one of its channel is
    due: the channel is tried then anyway.
    """
    known = {(row.alert_no, row.channel): row for row in told}
    deliveries = []
    for channel in policy.channels:
        due: list[Notice] = []
        waiting: list[Notice] = []
        for alert in alerts:
            row = known.get((alert.no, channel), Told(alert.no, channel))
            news = news_of(alert, row, now, policy.repeat)
            if news is None or _is_ahead(row.claimed_until, now):
                continue
            waits = _is_ahead(row.next_try_at, now) and not policy.at_once
            (waiting if waits else due).append(Notice(alert, news))
        if due:
            notices = sorted(due + waiting, key=_urgency)
            left = max(0, len(notices) - policy.most)
            deliveries.append(Delivery(channel, tuple(notices[: policy.most]), left))
    return deliveries


def news_of(alert: Alert, row: Told, now: datetime, repeat: timedelta) -> News | None:
    """What a channel does not know of an alert yet; None if it knows enough.

    An alert that was over before the channel heard of it is no news. One whose telling was begun
    and never ended may have been heard of, so its end is told.
    """
    if alert.cleared_at is not None:
        heard = row.told_at is not None or row.claimed_until is not None
        return "over" if heard and row.told_cleared_at is None else None
    if row.told_at is None:
        return "new"
    grown = alert.times > row.told_times
    return "again" if grown and now >= from_text(row.told_at) + repeat else None


def next_wait(failures: int, rng: random.Random) -> timedelta:
    """How long to wait after so many failures in a row: exponential, with full jitter."""
    # The exponent is bounded too: 2**1024 is no float.
    longest = min(LONGEST_WAIT, FIRST_WAIT * 2 ** min(failures - 1, 10))
    return longest * rng.random()


def _is_ahead(moment: str | None, now: datetime) -> bool:
    return moment is not None and from_text(moment) > now


def _urgency(notice: Notice) -> tuple[bool, int, int]:
    severity = SEVERITIES.index(kind_of(notice.alert.kind).severity)
    return notice.news == "over", severity, notice.alert.no
