"""What each channel was told of each alert, and which telling is under way.

Belongs here: reading and writing `alert_deliveries`. Does not belong here: deciding what has to be
told (`pipeline_assets/alerting/decision.py`) and sending it.

A telling is claimed before it is sent: `next_try_at` is then the time at which the claim ends, and
`problem` is empty. Its outcome is written only where that claim still stands, so the claim is its
own fencing token: a sender that comes back late changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, and_, exists, insert, or_, select, update

from resources.ledger.alerts import Alert, alert_of
from resources.ledger.engine import Ledger
from resources.ledger.schema import alert_deliveries, alerts

PROBLEM_LENGTH = 128


@dataclass(frozen=True)
class Told:
    """What a channel was told of an alert.

    Attributes:
        alert_no: the alert.
        channel: the channel's name.
        told_at: when it was told last; None if it never was, as far as is known.
        told_times: the alert's `times` that it has heard of.
        told_cleared_at: when it was told that the alert is over.
        failures: tries in a row that failed.
        next_try_at: with a problem: not before then; without one: claimed until then.
        problem: closed wording: the class of what went wrong last.
    """

    alert_no: int
    channel: str
    told_at: str | None = None
    told_times: int = 0
    told_cleared_at: str | None = None
    failures: int = 0
    next_try_at: str | None = None
    problem: str | None = None

    @property
    def claimed_until(self) -> str | None:
        """The end of a claim whose outcome was not written (yet)."""
        return self.next_try_at if self.problem is None else None


def alerts_in_question(
    connection: Connection, channels: Sequence[str]
) -> tuple[list[Alert], list[Told]]:
    """Alerts that one of the channels may have to hear of, and what they were told of them.

    Those are the open ones, and those that are over while a channel still believes them open.
    """
    asked = _in_question(channels)
    found = connection.execute(select(alerts).where(asked).order_by(alerts.c.alert_no))
    rows = connection.execute(
        select(alert_deliveries)
        .join(alerts, alerts.c.alert_no == alert_deliveries.c.alert_no)
        .where(asked, alert_deliveries.c.channel.in_(channels))
    )
    return [alert_of(row) for row in found], [_told(row) for row in rows]


def deliveries_of(ledger: Ledger, alert_nos: Sequence[int]) -> list[Told]:
    """What every channel was told of some alerts (a page of them, not all there are)."""
    with ledger.read() as connection:
        rows = connection.execute(
            select(alert_deliveries)
            .where(alert_deliveries.c.alert_no.in_(alert_nos))
            .order_by(alert_deliveries.c.alert_no, alert_deliveries.c.channel)
        )
        return [_told(row) for row in rows]


def claim(connection: Connection, channel: str, alert_nos: Iterable[int], until: str) -> None:
    """Take the telling of some alerts, until a time; call it in a fenced transaction."""
    for alert_no in alert_nos:
        taken = connection.execute(
            update(alert_deliveries)
            .where(_row(channel, alert_no))
            .values(next_try_at=until, problem=None)
        ).rowcount
        if not taken:
            connection.execute(
                insert(alert_deliveries).values(
                    alert_no=alert_no,
                    channel=channel,
                    told_times=0,
                    failures=0,
                    next_try_at=until,
                )
            )


def write_told(
    connection: Connection,
    channel: str,
    told: Iterable[Alert],
    *,
    claimed_until: str,
    at: str,
    note: str | None = None,
) -> int:
    """Note that a channel knows these alerts as they are; give how many claims still stood."""
    written = 0
    for alert in told:
        written += connection.execute(
            update(alert_deliveries)
            .where(_claimed(channel, alert.no, claimed_until))
            .values(
                told_at=at,
                told_times=alert.times,
                told_cleared_at=None if alert.cleared_at is None else at,
                failures=0,
                next_try_at=None,
                problem=None if note is None else note[:PROBLEM_LENGTH],
            )
        ).rowcount
    return written


def write_failed(
    connection: Connection,
    channel: str,
    alert_nos: Iterable[int],
    *,
    claimed_until: str,
    next_try_at: str,
    problem: str,
) -> int:
    """Note that telling failed, and when to try again; give how many claims still stood.

    Args:
        connection: a write transaction.
        channel: the channel's name.
        alert_nos: what it was not told.
        claimed_until: the claim that the telling was made under.
        next_try_at: not before then.
        problem: closed wording, without address or secret.
    """
    written = 0
    for alert_no in alert_nos:
        written += connection.execute(
            update(alert_deliveries)
            .where(_claimed(channel, alert_no, claimed_until))
            .values(
                failures=alert_deliveries.c.failures + 1,
                next_try_at=next_try_at,
                problem=problem[:PROBLEM_LENGTH],
            )
        ).rowcount
    return written


def _in_question(channels: Sequence[str]) -> ColumnElement[bool]:
    row = alert_deliveries.alias()
    believes_open = exists().where(
        row.c.alert_no == alerts.c.alert_no,
        row.c.channel.in_(channels),
        row.c.told_cleared_at.is_(None),
        # It was told, or somebody set out to tell it and was not heard of again.
        or_(
            row.c.told_at.is_not(None),
            and_(row.c.problem.is_(None), row.c.next_try_at.is_not(None)),
        ),
    )
    return or_(alerts.c.cleared_at.is_(None), believes_open)


def _row(channel: str, alert_no: int) -> ColumnElement[bool]:
    return and_(alert_deliveries.c.alert_no == alert_no, alert_deliveries.c.channel == channel)


def _claimed(channel: str, alert_no: int, until: str) -> ColumnElement[bool]:
    return and_(
        _row(channel, alert_no),
        alert_deliveries.c.next_try_at == until,
        alert_deliveries.c.problem.is_(None),
    )


def _told(row: object) -> Told:
    return Told(**{name: getattr(row, name) for name in Told.__dataclass_fields__})
