"""Telling people of events that were given up.

Belongs here: raising and clearing the alert of a queue with dead events. Does not belong here:
giving events up (`resources/ledger/source_events.py`) and sending alerts (`alerting`).
"""

from __future__ import annotations

from resources.context import Context
from resources.ledger.alerts import clear_alerts, open_alerts, raise_alert
from resources.ledger.source_events import dead_event_counts

KIND = "source_events"


def look_at_dead_events(context: Context) -> dict[str, int]:
    """Raise an alert for each source with dead events, clear it where there are none any more.

    An alert that is open and says the same is left alone, so looking often tells nothing twice.

    Returns:
        The number of dead events by source.
    """
    ledger = context.ledger
    told = {alert.subject: alert.message for alert in open_alerts(ledger) if alert.kind == KIND}
    with ledger.read() as connection:
        dead = dead_event_counts(connection, ledger)
    wanted = {
        source: f"Events of the queue that were given up: {events}; the first was received at "
        f"{oldest_at}."
        for source, events, oldest_at in dead.iter_rows()
    }
    changed = {source: text for source, text in wanted.items() if told.get(source) != text}
    over = sorted(told.keys() - wanted.keys())
    if changed or over:
        with ledger.write() as connection:
            for source, text in changed.items():
                raise_alert(connection, KIND, source, text, ledger.now())
            for source in over:
                clear_alerts(connection, source, ledger.now(), (KIND,))
    return dict(dead.select("source", "events").iter_rows())
