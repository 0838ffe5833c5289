"""Alerts that say how things stand now: raised, restated and cleared as that changes.

Belongs here: the write. Does not belong here: what stands how, and sending (`alerting`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from sqlalchemy import Connection, update

from resources.context import Context
from resources.ledger.alerts import SUBJECT_LENGTH, clear_alerts, open_alerts, raise_alert
from resources.ledger.schema import alerts


def tell_alerts(
    context: Context,
    kind: str,
    standing: Mapping[str, str],
    *,
    keep: Collection[str] = (),
) -> tuple[list[str], list[str]]:
    """Make the open alerts of a kind say what stands now, and nothing else.

    Nobody is told twice: an open alert whose words changed is brought up to date in silence.

    Args:
        context: the open resources.
        kind: the kind; `alerting/kinds.py` has its meaning.
        standing: subject → message.
        keep: subjects that nothing is known of now; their alerts stay as they are.

    Returns:
        The subjects that were raised, and those that were cleared.
    """
    ledger = context.ledger
    wanted = {subject[:SUBJECT_LENGTH]: text for subject, text in standing.items()}
    told = {alert.subject: alert.message for alert in open_alerts(ledger) if alert.kind == kind}
    fresh = sorted(wanted.keys() - told.keys())
    other = sorted(name for name in wanted.keys() & told.keys() if wanted[name] != told[name])
    over = sorted(told.keys() - wanted.keys() - set(keep))
    if fresh or other or over:
        with ledger.write() as connection:
            for subject in fresh:
                raise_alert(connection, kind, subject, wanted[subject], ledger.now())
            for subject in other:
                _restate(connection, kind, subject, wanted[subject])
            for subject in over:
                clear_alerts(connection, subject, ledger.now(), (kind,))
    return fresh, over


def _restate(connection: Connection, kind: str, subject: str, message: str) -> None:
    connection.execute(
        update(alerts)
        .where(alerts.c.kind == kind, alerts.c.subject == subject, alerts.c.cleared_at.is_(None))
        .values(message=message)
    )
