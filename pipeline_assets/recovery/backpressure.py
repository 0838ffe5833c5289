"""Backpressure: nothing new is submitted while the later stages are too far behind.

Belongs here: the decision over what waits, with its hysteresis, and putting the hold on. Does not
belong here: the hold itself (`holds.py`), taking it off in time (`releases.py`), the counting
(`resources/ledger/backlog.py`).

A version is held when a queue reaches its limit, and goes on when every queue that it was held
for is down to four fifths of its own, so that it is not held and released by turns.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, fields

from sqlalchemy import Connection

from pipeline_assets.operating import Operating, operating
from pipeline_assets.recovery.holds import Hold, hold_of, hold_within
from resources.context import Context
from resources.ledger.backlog import count_in_states
from resources.ledger.engine import Ledger
from resources.ledger.versions import state_of

LOW_PERCENT = 80
"""A queue at its limit is low again at so many percent of it."""

_STATES = {"staging": "collected", "review": "awaiting_review", "publication": "accepted"}


@dataclass(frozen=True)
class Backlog:
    """Records of a version that wait in front of a later stage.

    Attributes:
        staging: collected and not judged.
        review: waiting for a reviewer.
        publication: accepted and not published.
    """

    staging: int
    review: int
    publication: int


@dataclass(frozen=True)
class Limits:
    """How long each queue may become; None for no limit."""

    staging: int | None
    review: int | None
    publication: int | None


QUEUES: tuple[str, ...] = tuple(entry.name for entry in fields(Backlog))


def limits_of(settings: Operating) -> Limits:
    """The limits in the operating settings."""
    return Limits(
        staging=settings.backlog_staging,
        review=settings.backlog_review,
        publication=settings.backlog_publication,
    )


def decide_backpressure(
    backlog: Backlog, limits: Limits, held_for: Collection[str] | None = None
) -> str | None:
    """Why nothing new may be submitted; None if it may.

    Args:
        backlog: what waits.
        limits: how much may.
        held_for: queues that the version is held for now; None where it is not held. A queue that
            was not behind then does not prolong the hold unless it reaches its own limit.

    Returns:
        A sentence that names the queues; `queues_in` reads them back.
    """
    behind = [
        f"{name} ({waiting} records, limit {limit}, goes on at {limit * LOW_PERCENT // 100})"
        for name in QUEUES
        if (limit := getattr(limits, name)) is not None
        and _is_behind(waiting := getattr(backlog, name), limit, name in (held_for or ()))
    ]
    return f"behind their limits: {', '.join(behind)}" if behind else None


def queues_in(reason: str) -> frozenset[str]:
    """The queues that a reason names; all of them for a reason in other words."""
    named = frozenset(re.findall(r"(\w+) \(\d+ records, limit", reason)) & frozenset(QUEUES)
    return named or frozenset(QUEUES)


def read_backlog(connection: Connection, ledger: Ledger, version_no: int) -> Backlog:
    """What of a version waits now."""
    counts = count_in_states(connection, ledger, version_no, tuple(_STATES.values()))
    return Backlog(**{name: counts[state] for name, state in _STATES.items()})


def backlog_reason(context: Context, version_no: int, held: Hold | None) -> str | None:
    """Why a version may not submit now, or has to go on waiting; None if neither.

    Args:
        context: the open resources.
        version_no: the version.
        held: the hold for backpressure that it is under.
    """
    limits = limits_of(operating(context.ledger, version_no))
    if limits == Limits(None, None, None):
        return None
    with context.ledger.read() as connection:
        backlog = read_backlog(connection, context.ledger, version_no)
    return decide_backpressure(backlog, limits, None if held is None else queues_in(held.reason))


def look_at_backpressure(context: Context, version_no: int) -> Hold | None:
    """Hold an active version if the later stages are behind; to be called before submitting.

    Returns:
        The hold that was put on now; None if none was.
    """
    with context.ledger.read() as connection:
        if state_of(connection, version_no) != "active":
            return None
    reason = backlog_reason(context, version_no, None)
    if reason is None:
        return None
    with context.ledger.write() as connection:
        if not hold_within(connection, context, version_no, "backpressure", reason):
            return None
        return hold_of(connection, version_no)


def _is_behind(waiting: int, limit: int, held: bool) -> bool:
    return waiting * 100 > limit * LOW_PERCENT if held else waiting >= limit
