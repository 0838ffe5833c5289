"""Alerts: what an operator has to know, once a kind and subject, until it is dealt with.

Belongs here: raising, clearing and listing. Does not belong here: what each channel was told
(`alert_deliveries.py`), sending, and what a kind means (`pipeline_assets/alerting`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, insert, select, update

from resources.ledger import postgres, sqlite
from resources.ledger.engine import Ledger
from resources.ledger.schema import alerts

SUBJECT_LENGTH = 96
"""The width of the column; PostgreSQL refuses a longer subject."""
_DIALECTS = {dialect.name: dialect for dialect in (postgres.DIALECT, sqlite.DIALECT)}


@dataclass(frozen=True)
class Alert:
    """An alert; open unless it has a `cleared_at`.

    Attributes:
        kind: a short word; what it means stands in `pipeline_assets/alerting/kinds.py`.
        subject: what it is about: a job, a version, a lease.
        message: one sentence without document text.
        first_at: when it was raised.
        last_at: when it was raised again, newest.
        times: how often it was raised while it was open.
        cleared_at: when it was over.
        no: its number.
    """

    kind: str
    subject: str
    message: str
    first_at: str
    last_at: str
    times: int
    cleared_at: str | None = None
    no: int = 0


def raise_alert(connection: Connection, kind: str, subject: str, message: str, at: str) -> None:
    """Raise an alert; an open one of the kind and subject is renewed instead."""
    if _renew(connection, kind, subject, message, at):
        return
    # Two transactions may both find none open: the second waits here, then sees the first's.
    _DIALECTS[connection.dialect.name].lock_chain(connection, f"alert:{kind}:{subject}")
    if _renew(connection, kind, subject, message, at):
        return
    connection.execute(
        insert(alerts).values(
            kind=kind, subject=subject, message=message, first_at=at, last_at=at, times=1
        )
    )


def clear_alerts(
    connection: Connection, subject: str, at: str, kinds: tuple[str, ...] | None = None
) -> int:
    """Close the open alerts of a subject, of some kinds or of all, and say how many."""
    change = update(alerts).where(alerts.c.subject == subject, alerts.c.cleared_at.is_(None))
    if kinds is not None:
        change = change.where(alerts.c.kind.in_(kinds))
    return connection.execute(change.values(cleared_at=at)).rowcount


def clear_by_hand(
    connection: Connection, subject: str, at: str, note: str, kind: str | None = None
) -> list[str]:
    """Close the open alerts of a subject, of one kind or of all, and give their kinds.

    The note (who and why) is added to the message, so that it is kept and told with the end.
    """
    wanted = select(alerts.c.alert_no, alerts.c.kind).where(
        alerts.c.subject == subject, alerts.c.cleared_at.is_(None)
    )
    if kind is not None:
        wanted = wanted.where(alerts.c.kind == kind)
    rows = connection.execute(wanted.order_by(alerts.c.alert_no)).all()
    closed = []
    for row in rows:
        changed = connection.execute(
            update(alerts)
            .where(alerts.c.alert_no == row.alert_no, alerts.c.cleared_at.is_(None))
            .values(cleared_at=at, message=alerts.c.message + f" ({note})")
        ).rowcount
        if changed:
            closed.append(row.kind)
    return closed


def open_alerts(ledger: Ledger) -> list[Alert]:
    """Open alerts, oldest first."""
    with ledger.read() as connection:
        rows = connection.execute(
            select(alerts).where(alerts.c.cleared_at.is_(None)).order_by(alerts.c.alert_no)
        )
        return [alert_of(row) for row in rows]


def recent_alerts(ledger: Ledger, limit: int) -> list[Alert]:
    """The newest alerts, open or over, oldest of them first."""
    with ledger.read() as connection:
        rows = connection.execute(select(alerts).order_by(alerts.c.alert_no.desc()).limit(limit))
        return [alert_of(row) for row in rows][::-1]


def alert_of(row: Row[Any]) -> Alert:
    """An alert from its row."""
    return Alert(
        kind=row.kind,
        subject=row.subject,
        message=row.message,
        first_at=row.first_at,
        last_at=row.last_at,
        times=row.times,
        cleared_at=row.cleared_at,
        no=int(row.alert_no),
    )


def _renew(connection: Connection, kind: str, subject: str, message: str, at: str) -> bool:
    change = update(alerts).where(
        alerts.c.kind == kind, alerts.c.subject == subject, alerts.c.cleared_at.is_(None)
    )
    renewed = change.values(message=message, last_at=at, times=alerts.c.times + 1)
    return connection.execute(renewed).rowcount > 0
