"""The one place where a worker can be stopped, killed or made to fail, and the simulated clock.

Belongs here: passing places, counting them and doing what the plan says there. Does not belong
here: which worker goes on (`schedule.py`).

Only one worker runs at a time. A worker gives way only where it holds no open transaction, since
all of them share one connection to one database in memory.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from greenlet import greenlet

from resources.artifacts import ArtifactStoreFull
from resources.ledger.errors import LedgerUnreachable
from tests.faults.simulation.plan import Disturbance, Place

START = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)
TICK = timedelta(milliseconds=250)
"""How far the clock goes on at each write transaction and provider call."""
LONGEST_CALL = timedelta(seconds=120)
"""How long a call to a provider lasts at most: its client's own timeout ends it.

No fence reaches a provider. A worker that renews its lease and calls at once is safe as long as
the call, and the time until a new job is listed, are over before the lease is.
"""
PLACE_NAME = "memory"


class Killed(BaseException):
    """A worker dies: nothing of it goes on, not even what it would do on its way out."""


class SimulatedClock:
    """A clock that goes on only when it is told to."""

    def __init__(self) -> None:
        self.moment = START

    def __call__(self) -> datetime:
        return self.moment

    def go_on(self, step: timedelta) -> None:
        """Let time pass."""
        self.moment += step


@dataclass
class Worker:
    """One process: its greenlet, and whether it lives, sleeps or has nothing to do."""

    name: str
    number: int
    body: greenlet | None = None
    dead: bool = False
    idle: bool = False
    asleep_until: int = 0
    renewed_at: datetime | None = None


@dataclass
class Gate:
    """Where every durable step passes.

    Attributes:
        clock: the time of everybody.
        planned: what is still to happen, by place and count.
        hub: the scheduler; a worker that gives way goes there.
    """

    clock: SimulatedClock
    planned: dict[tuple[Place, int], Disturbance] = field(default_factory=dict)
    hub: greenlet | None = None
    current: Worker | None = None
    counts: dict[Place, int] = field(default_factory=dict)
    steps: int = 0
    log: Callable[[str], None] = lambda line: None
    on_failure: Callable[[str], None] = lambda what: None

    def start(self, disturbances: tuple[Disturbance, ...], hub: greenlet) -> None:
        """Begin a schedule."""
        self.planned = {(each.place, each.nth): each for each in disturbances}
        self.counts = dict.fromkeys(
            ("read", "begin", "commit", "committed", "call", "answered", "artifact"), 0
        )
        self.steps = 0
        self.hub = hub
        self.current = None
        self.clock.moment = START

    def alive(self) -> None:
        """A worker that was killed does nothing any more.

        Raises:
            Killed: it was.
        """
        if self.current is not None and self.current.dead:
            raise Killed

    def pass_by(self, place: Place, what: str = "") -> None:
        """A worker comes to a place where it may be disturbed.

        Raises:
            Killed: it dies here.
            LedgerUnreachable, sqlite3.OperationalError, ArtifactStoreFull: the step fails here.
        """
        worker = self.current
        if worker is None:
            return
        if worker.dead:
            raise Killed
        self.steps += 1
        self.counts[place] = count = self.counts[place] + 1
        self.log(f"{worker.name} {place} {count} {what}")
        disturbance = self.planned.pop((place, count), None)
        if disturbance is not None:
            self._disturb(worker, disturbance)

    def _disturb(self, worker: Worker, it: Disturbance) -> None:
        self.log(f"{worker.name} ! {it.what}")
        if it.what == "kill":
            worker.dead = True
            raise Killed
        if it.what == "switch":
            self.give_way()
            return
        if it.what == "stall":
            self.clock.go_on(timedelta(seconds=it.seconds))
            worker.asleep_until = self.steps + it.patience
            self.give_way()
            return
        self.on_failure(it.place)
        self._fail(it)

    def timed_out(self) -> bool:
        """Has the present worker's call lasted for longer than its client allows?"""
        worker = self.current
        if worker is None or worker.renewed_at is None:
            return False
        return self.clock() - worker.renewed_at > LONGEST_CALL

    def _fail(self, it: Disturbance) -> None:
        if it.place == "artifact":
            from pathlib import Path

            raise ArtifactStoreFull(Path(PLACE_NAME))
        if it.place == "commit":
            error = sqlite3.OperationalError("planned")
            error.sqlite_errorcode = (
                sqlite3.SQLITE_FULL if it.what == "full" else sqlite3.SQLITE_IOERR
            )
            raise error
        if it.place == "answered":
            raise AnswerLost
        raise LedgerUnreachable(PLACE_NAME, "the connection was lost")

    def give_way(self) -> None:
        """Let the scheduler choose who goes on."""
        worker, hub = self.current, self.hub
        assert worker is not None
        assert hub is not None
        hub.switch()
        if worker.dead:
            raise Killed


class AnswerLost(Exception):
    """The provider acted and its answer did not arrive; the client turns it into its own error."""
