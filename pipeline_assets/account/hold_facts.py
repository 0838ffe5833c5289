"""What holds a version, or soon may: its hold, the breaker's window, the queues and their limits.

Belongs here: these facts as `tallybook status` tells them. Does not belong here: what decides on
them (`pipeline_assets/recovery`).
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection

from pipeline_assets.operating import Operating
from pipeline_assets.recovery.backpressure import (
    LOW_PERCENT,
    QUEUES,
    Limits,
    limits_of,
    read_backlog,
)
from pipeline_assets.recovery.breaker import BreakerState, policy_of, read_breaker
from pipeline_assets.recovery.holds import ENDS_BY_ITSELF, Hold, HoldKind, hold_of
from resources.clock import to_text
from resources.ledger.engine import Ledger

_ENDS: dict[HoldKind, str] = {
    "backpressure": f"by itself, when the queues are down to {LOW_PERCENT} % of their limits",
}
_BY_COMMAND = "by command"


@dataclass(frozen=True)
class HoldFacts:
    """The hold that a version is under.

    Attributes:
        kind: what it is for.
        reason: a sentence for people.
        since: when it was put on, UTC.
        actor: who or what put it on.
        ends_by_itself: no command is needed.
        ends_at: when it ends by itself, UTC; None where no time is known.
        ends: how it ends, for people. A command may end it earlier, whatever it is for.
    """

    kind: HoldKind
    reason: str
    since: str
    actor: str
    ends_by_itself: bool
    ends_at: str | None
    ends: str


@dataclass(frozen=True)
class BreakerFacts:
    """What the circuit breaker sees.

    Attributes:
        window: how many of the last results it looks at; None where it is switched off.
        results: how many there are since it was last released.
        usable: how many of them are usable.
        usable_percent: the same as a percentage; None without results.
        floor_percent: the version is held below it.
        enough: results that a decision needs.
        trips: trips in a row.
        on_probation: one batch at a time is handed over until enough results are in.
    """

    window: int | None
    results: int
    usable: int
    usable_percent: float | None
    floor_percent: int
    enough: int
    trips: int
    on_probation: bool


@dataclass(frozen=True)
class QueueFacts:
    """Records in front of a later stage.

    Attributes:
        queue: staging, review or publication.
        records: how many wait.
        limit: nothing new is submitted from here on; None for no limit.
    """

    queue: str
    records: int
    limit: int | None


def hold_facts(
    connection: Connection, ledger: Ledger, version_no: int, settings: Operating
) -> tuple[HoldFacts | None, BreakerFacts, tuple[QueueFacts, ...]]:
    """The hold of a version, what its breaker sees, and its queues."""
    state = read_breaker(connection, ledger, version_no, policy_of(settings))
    held = hold_of(connection, version_no)
    return (
        None if held is None else _hold(held, state),
        _breaker(state, settings),
        _queues(connection, ledger, version_no, limits_of(settings)),
    )


def _hold(held: Hold, breaker: BreakerState) -> HoldFacts:
    ends_at = None if breaker.ends_at is None else to_text(breaker.ends_at)
    by_itself = held.kind in ENDS_BY_ITSELF and (held.kind != "breaker" or ends_at is not None)
    ends = _ENDS.get(held.kind, "by itself" if by_itself else _BY_COMMAND)
    return HoldFacts(
        kind=held.kind,
        reason=held.reason,
        since=held.since,
        actor=held.actor,
        ends_by_itself=by_itself,
        ends_at=ends_at,
        ends=ends,
    )


def _breaker(state: BreakerState, settings: Operating) -> BreakerFacts:
    policy, window = policy_of(settings), state.window
    share = round(100 * window.usable / window.results, 1) if window.results else None
    return BreakerFacts(
        window=policy.window,
        results=window.results,
        usable=window.usable,
        usable_percent=share,
        floor_percent=int(policy.floor * 100),
        enough=policy.enough,
        trips=state.trips,
        on_probation=state.probation,
    )


def _queues(
    connection: Connection, ledger: Ledger, version_no: int, limits: Limits
) -> tuple[QueueFacts, ...]:
    backlog = read_backlog(connection, ledger, version_no)
    return tuple(QueueFacts(name, getattr(backlog, name), getattr(limits, name)) for name in QUEUES)
