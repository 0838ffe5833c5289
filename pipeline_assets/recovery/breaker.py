"""The circuit breaker: a version whose last results are mostly unusable is held for a while.

Belongs here: the decision over the last results, how long a version pauses after each trip, the
probation that follows, and reading what they decide on. Does not belong here: the hold itself
(`holds.py`), taking it off in time (`releases.py`), the counting (`resources/ledger/backlog.py`).

A trip ends by itself after the pause of the operating settings, twice as long for each further
trip in a row. Then the version is on probation: one batch at a time, until enough results have
come in to decide again. Trips are in a row as long as no such decision went well in between. A
release by command starts all anew: no probation, and the first pause is the short one again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from decimal import Decimal

from sqlalchemy import Connection

from pipeline_assets.operating import Operating, operating
from pipeline_assets.provider_jobs.operate import OPERATOR_CANCELLED
from pipeline_assets.recovery.holds import Hold, Release, as_hold, as_release, hold_within
from pipeline_assets.versions import OpenVersion
from resources.clock import from_text
from resources.context import Context
from resources.ledger.backlog import NO_MOVE_YET, Span, count_results, move_that_reached
from resources.ledger.engine import Ledger
from resources.ledger.moves import version_chain
from resources.ledger.versions import moves_of, newest_move

LONGEST_PAUSE = timedelta(hours=24)
"""Doubling ends here; a longer pause of the settings stays as long as it is."""
NOT_COUNTED = ("auth", "quota")
"""Failure classes that say nothing of the version: they hold it under their own name."""
_DOUBLINGS = 12
"""So many double the shortest pause, a minute, beyond the longest one."""


@dataclass(frozen=True)
class BreakerPolicy:
    """What the breaker follows.

    Attributes:
        window: how many of the last results it looks at; None switches it off.
        least: it says nothing before so many results.
        floor: the least share of usable ones, from 0 to 1.
        pause: after the first trip; None for only by command.
    """

    window: int | None
    least: int
    floor: Decimal
    pause: timedelta | None

    @property
    def enough(self) -> int:
        """Results that a decision needs: a window that can never hold the least is full instead."""
        return self.least if self.window is None else min(self.least, self.window)


@dataclass(frozen=True)
class Window:
    """The last results of a version since its breaker was last released.

    Attributes:
        results: how many there are, at most the policy's window.
        usable: how many of them have the disposition `succeeded`.
        by_class: failure class → results, for the rest.
    """

    results: int
    usable: int
    by_class: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Trip:
    """The version has to be held.

    Attributes:
        reason: a sentence for people.
        until: when it is tried again; None for only by command.
    """

    reason: str
    until: datetime | None


@dataclass(frozen=True)
class BreakerState:
    """Where the breaker of a version stands.

    Attributes:
        window: the last results.
        trips: trips in a row, the one that holds the version now included.
        probation: it was released by itself and too few results have come in since.
        ends_at: when the hold that the breaker put on ends by itself; None where there is no such
            hold or it ends only by command.
        held: the breaker holds the version now.
        seen: the version's newest move when all this was read.
    """

    window: Window
    trips: int
    probation: bool
    ends_at: datetime | None
    held: bool
    seen: int


def policy_of(settings: Operating) -> BreakerPolicy:
    """The breaker's policy in the operating settings."""
    return BreakerPolicy(
        window=settings.breaker_window,
        least=settings.breaker_least,
        floor=settings.breaker_floor,
        pause=settings.breaker_pause,
    )


def decide_breaker(
    window: Window, policy: BreakerPolicy, now: datetime, trips: int = 0
) -> Trip | None:
    """Does the window trip the breaker?

    Args:
        window: the last results.
        policy: what counts as too few usable ones.
        now: the time.
        trips: trips in a row before this one.
    """
    if policy.window is None or window.results < policy.enough:
        return None
    if window.usable >= policy.floor * window.results:
        return None
    pause = pause_after(policy.pause, trips + 1)
    return Trip(_sentence(window, policy), None if pause is None else now + pause)


def pause_after(pause: timedelta | None, trips: int) -> timedelta | None:
    """How long a version pauses after so many trips in a row; None for only by command.

    Raises:
        ValueError: fewer than one trip.
    """
    if trips < 1:
        raise ValueError(f"found {trips} trips; expected at least one, or there is no pause")
    if pause is None:
        return None
    return min(pause * 2 ** min(trips - 1, _DOUBLINGS), max(pause, LONGEST_PAUSE))


def trips_in_a_row(events: Sequence[Hold | Release], passed: Callable[[Release, int], bool]) -> int:
    """How many trips follow each other, counted back from the newest event.

    Args:
        events: holds and releases of the breaker, oldest first.
        passed: did a decision go well between this release and the move with this number?
    """
    trips, until = 0, NO_MOVE_YET
    for event in reversed(events):
        if isinstance(event, Hold):
            trips, until = trips + 1, event.move_no
        elif event.by_command or passed(event, until):
            break
        if trips > _DOUBLINGS:
            break
    return trips


def read_breaker(
    connection: Connection, ledger: Ledger, version_no: int, policy: BreakerPolicy
) -> BreakerState:
    """Where the breaker of a version stands, by the journal and the last results."""
    moves = moves_of(connection, version_no)
    found = [event for move in moves for event in (as_hold(move), as_release(move)) if event]
    events = [event for event in found if event.kind == "breaker"]
    releases = [event for event in events if isinstance(event, Release)]
    released = releases[-1] if releases else None
    held = as_hold(moves[-1]) if moves else None
    if held is not None and held.kind != "breaker":
        held = None
    counted = _counted(version_no, released.move_no if released else 0)

    def passed(release: Release, until: int) -> bool:
        return _passed(connection, ledger, _counted(version_no, release.move_no, until), policy)

    trips = trips_in_a_row(events, passed)
    probation = (
        held is None
        and released is not None
        and not released.by_command
        and _window(connection, ledger, counted, policy.enough).results < policy.enough
    )
    return BreakerState(
        window=_window(connection, ledger, counted, policy.window or policy.least),
        trips=trips,
        probation=probation,
        ends_at=None if held is None else _end(held, policy, trips),
        held=held is not None,
        seen=moves[-1].move_no if moves else 0,
    )


def look_at_breaker(context: Context, version: OpenVersion) -> Hold | None:
    """Hold the version if its last results say so; to be called when results have come in.

    Returns:
        The hold that was put on now; None if none was.
    """
    return trip_breaker(context, version.version_no)


def trip_breaker(context: Context, version_no: int) -> Hold | None:
    """The same by the version's number."""
    ledger = context.ledger
    policy = policy_of(operating(ledger, version_no))
    if policy.window is None:
        return None
    with ledger.read() as connection:
        move = newest_move(connection, version_no)
        if move is None or move.to_state != "active":
            return None
        state = read_breaker(connection, ledger, version_no, policy)
    trip = decide_breaker(state.window, policy, context.clock(), state.trips)
    if trip is None:
        return None
    with ledger.write() as connection:
        ledger.dialect.lock_chain(connection, version_chain(version_no))
        move = newest_move(connection, version_no)
        # Released in the meantime: what was counted is from before the release.
        if move is None or move.move_no != state.seen:
            return None
        hold_within(connection, context, version_no, "breaker", trip.reason)
        return as_hold(newest_move(connection, version_no))


def on_probation(context: Context, version_no: int) -> bool:
    """Is only one batch at a time to be handed over?"""
    ledger = context.ledger
    policy = policy_of(operating(ledger, version_no))
    if policy.window is None:
        return False
    with ledger.read() as connection:
        return read_breaker(connection, ledger, version_no, policy).probation


def _end(held: Hold, policy: BreakerPolicy, trips: int) -> datetime | None:
    # One that is switched off holds nothing any longer.
    pause = timedelta() if policy.window is None else pause_after(policy.pause, trips)
    return None if pause is None else from_text(held.since) + pause


def _passed(connection: Connection, ledger: Ledger, span: Span, policy: BreakerPolicy) -> bool:
    """Was the first decision of a span a good one?"""
    reached = move_that_reached(connection, ledger, span, policy.enough)
    if reached is None:
        return False
    size = policy.window or policy.least
    window = _window(connection, ledger, replace(span, until=reached), size)
    return window.results >= policy.enough and window.usable >= policy.floor * window.results


def _counted(version_no: int, after: int, until: int = NO_MOVE_YET) -> Span:
    return Span(version_no, after, until, OPERATOR_CANCELLED, NOT_COUNTED)


def _window(connection: Connection, ledger: Ledger, span: Span, size: int) -> Window:
    results = usable = 0
    by_class: dict[str, int] = {}
    for disposition, failure, count in count_results(connection, ledger, span, size).iter_rows():
        results += count
        if disposition == "succeeded":
            usable += count
        else:
            name = failure or disposition
            by_class[name] = by_class.get(name, 0) + count
    return Window(results, usable, by_class)


def _sentence(window: Window, policy: BreakerPolicy) -> str:
    classes = sorted(window.by_class.items(), key=lambda item: (-item[1], item[0]))
    what = ", ".join(f"{count} {name}" for name, count in classes)
    return (
        f"only {window.usable} of the last {window.results} results are usable, the floor is "
        f"{policy.floor:.0%} ({what})"
    )
