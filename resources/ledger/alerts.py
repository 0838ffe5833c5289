"""Alerts: what an operator has to know, once a kind and subject, until it is dealt with.

Belongs here: raising, clearing and listing. Does not belong here: sending them anywhere.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, insert, select, update

from resources.ledger.engine import Ledger
from resources.ledger.schema import alerts


@dataclass(frozen=True)
class Alert:
    """An open alert."""

    kind: str
    subject: str
    message: str
    first_at: str
    last_at: str
    times: int


def raise_alert(connection: Connection, kind: str, subject: str, message: str, at: str) -> None:
    """Raise an alert; an open one of the kind and subject is renewed instead."""
    same = (
        alerts.c.kind == kind,
        alerts.c.subject == subject,
        alerts.c.cleared_at.is_(None),
    )
    renewed = connection.execute(
        update(alerts).where(*same).values(message=message, last_at=at, times=alerts.c.times + 1)
    ).rowcount
    if not renewed:
        connection.execute(
            insert(alerts).values(
                kind=kind, subject=subject, message=message, first_at=at, last_at=at, times=1
            )
        )


def clear_alerts(
    connection: Connection, subject: str, at: str, kinds: tuple[str, ...] | None = None
) -> None:
    """Close the open alerts of a subject, of some kinds or of all."""
    change = update(alerts).where(alerts.c.subject == subject, alerts.c.cleared_at.is_(None))
    if kinds is not None:
        change = change.where(alerts.c.kind.in_(kinds))
    connection.execute(change.values(cleared_at=at))


def open_alerts(ledger: Ledger) -> list[Alert]:
    """Open alerts, oldest first."""
    with ledger.read() as connection:
        rows = connection.execute(
            select(alerts).where(alerts.c.cleared_at.is_(None)).order_by(alerts.c.alert_no)
        )
        return [Alert(*(getattr(row, name) for name in Alert.__dataclass_fields__)) for row in rows]
