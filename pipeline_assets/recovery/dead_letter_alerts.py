"""The alerts of dead letters: when somebody has to be told that there are more, or old ones.

Belongs here: the decision, the wording and the write. Does not belong here: sending alerts
anywhere, and the dead letters themselves (`dead_letters.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

import polars as pl
from sqlalchemy import Connection, select, update

from pipeline_assets.operating import operating
from resources.clock import from_text, to_text
from resources.context import Context
from resources.ledger.alerts import clear_alerts, raise_alert
from resources.ledger.dead_letters import count_dead_letters
from resources.ledger.schema import alerts
from resources.ledger.versions import list_versions

MANY, AGING = "dead_letters", "dead_letters_aging"
"""Kinds of the two alerts; their subject is the version's key."""
_CLASSES_TOLD = 5


@dataclass(frozen=True)
class Standing:
    """Present dead letters of a version, or those that an alert spoke of.

    Attributes:
        open: how many.
        aged: how many of them are open for longer than the limit.
    """

    open: int
    aged: int


@dataclass(frozen=True)
class AlertWish:
    """What has to happen to one of the two alerts.

    Attributes:
        kind: `MANY` or `AGING`.
        change: raise (somebody has to be told), restate (there are fewer: only the message is
            brought up to date) or clear.
    """

    kind: str
    change: Literal["raise", "restate", "clear"]


def look_at_all_dead_letters(context: Context) -> None:
    """The same look for every version: age is noticed where nothing is collected, too."""
    for version in list_versions(context.ledger):
        look_at_dead_letters(context, version.version_no, version.key)


def look_at_dead_letters(context: Context, version_no: int, key: str) -> None:
    """Raise, renew or clear the two alerts of a version's dead letters; else write nothing."""
    now = context.clock()
    limit = operating(context.ledger, version_no).dead_letter_age
    with context.ledger.read() as connection:
        counts = count_dead_letters(connection, context.ledger, version_no, to_text(now - limit))
        told = _told(connection, key)
    standing = Standing(int(counts["letters"].sum()), int(counts["aged"].sum()))
    wishes = decide_dead_letter_alerts(standing, Standing(told.get(MANY, 0), told.get(AGING, 0)))
    if not wishes:
        return
    hours = int(limit.total_seconds() // 3600)
    messages = {MANY: _many(counts), AGING: _aging(counts, hours, now)}
    with context.ledger.write() as connection:
        for wish in wishes:
            _fulfil(connection, wish, key, messages[wish.kind], to_text(now))


def decide_dead_letter_alerts(now: Standing, told: Standing) -> tuple[AlertWish, ...]:
    """What has to happen to the alerts, given what they said last (0 where none is open)."""
    pairs = ((MANY, now.open, told.open), (AGING, now.aged, told.aged))
    wishes: list[AlertWish] = []
    for kind, count, known in pairs:
        if count > known:
            wishes.append(AlertWish(kind, "raise"))
        elif count == 0 and known:
            wishes.append(AlertWish(kind, "clear"))
        elif count < known:
            wishes.append(AlertWish(kind, "restate"))
    return tuple(wishes)


def _told(connection: Connection, key: str) -> dict[str, int]:
    """How many dead letters each open alert speaks of: what its message, ours, begins with."""
    rows = connection.execute(
        select(alerts.c.kind, alerts.c.message).where(
            alerts.c.subject == key,
            alerts.c.kind.in_((MANY, AGING)),
            alerts.c.cleared_at.is_(None),
        )
    )
    return {row.kind: int(row.message.split(" ", 1)[0]) for row in rows}


def _fulfil(connection: Connection, wish: AlertWish, key: str, message: str, at: str) -> None:
    if wish.change == "raise":
        raise_alert(connection, wish.kind, key, message, at)
    elif wish.change == "clear":
        clear_alerts(connection, key, at, (wish.kind,))
    else:
        # Nobody has to be told that there are fewer, so `times` stays as it is.
        connection.execute(
            update(alerts)
            .where(
                alerts.c.kind == wish.kind,
                alerts.c.subject == key,
                alerts.c.cleared_at.is_(None),
            )
            .values(message=message)
        )


def _many(counts: pl.DataFrame) -> str:
    count = int(counts["letters"].sum())
    return f"{count} dead letter{'s are' if count != 1 else ' is'} open: {_by_class(counts)}"


def _aging(counts: pl.DataFrame, hours: int, now: datetime) -> str:
    count = int(counts["aged"].sum())
    oldest = counts["oldest_at"].min()
    age = 0 if oldest is None else int((now - from_text(str(oldest))).total_seconds() // 3600)
    return (
        f"{count} dead letter{'s are' if count != 1 else ' is'} open for more than {hours} hours; "
        f"the oldest for {age} hours"
    )


def _by_class(counts: pl.DataFrame) -> str:
    largest = counts.sort("letters", "failure_class", descending=[True, False])
    shown = [
        f"{letters} {name}"
        for letters, name in largest.head(_CLASSES_TOLD)
        .select("letters", "failure_class")
        .iter_rows()
    ]
    rest = int(largest["letters"].slice(_CLASSES_TOLD).sum())
    return ", ".join(shown) + (f", {rest} of other classes" if rest else "")
