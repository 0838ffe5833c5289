"""Running one schedule: workers in turn, one at a time, until nothing is left to do.

Belongs here: who goes on, restarts of the killed, the clock when everybody waits. Does not belong
here: what is judged (`oracles.py`).
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from greenlet import getcurrent, greenlet

from resources.artifacts import ArtifactStoreFull
from resources.clock import from_text
from resources.context import Context
from resources.ledger.errors import LedgerError
from resources.ledger.leases import LeaseHeld, LeaseLost
from resources.ledger.moves import StateChanged
from resources.providers.port import ProviderError
from tests.faults.simulation.gate import Killed, Worker
from tests.faults.simulation.oracles import COMPLETE
from tests.faults.simulation.plan import Plan
from tests.faults.simulation.workers import STEPS, eligible, grant_wish, next_moment
from tests.faults.simulation.world import World

MOST_STEPS = 8_000
MOST_WAITS = 400
"""Jumps of the clock while everybody waits: a schedule that needs more does not end."""
EXPECTED = (
    LeaseHeld,
    LeaseLost,
    LedgerError,
    ArtifactStoreFull,
    ProviderError,
    StateChanged,
)
"""What a command may end with: each says what is wrong and what helps."""


@dataclass(frozen=True)
class Outcome:
    """What a schedule came to.

    Attributes:
        violations: sentences; empty where everything held.
        steps: places passed.
        digest: of the log of all steps.
        log: the steps themselves, where they were asked for.
    """

    violations: tuple[str, ...]
    steps: int
    digest: str
    log: tuple[str, ...]


class Scheduler:
    """One schedule."""

    def __init__(self, world: World, plan: Plan) -> None:
        self._world = world
        self._plan = plan
        self._rng = random.Random(plan.seed)
        self._workers: list[Worker] = []
        self._born = 0
        self._wishes = list(plan.wishes)
        self._waits = 0
        self._wished = -1
        self._stepwise = False

    def run(self, reached: Callable[[], bool] | None = None) -> None:
        """Until nothing is left to do, or it goes on for too long.

        Args:
            reached: end as soon as this holds, asked after each step; None for never.
        """
        self._stepwise = reached is not None
        gate = self._world.gate
        for number in range(self._plan.workers):
            self._workers.append(self._new_worker(number))
        turn = 0
        while gate.steps < MOST_STEPS and self._waits < MOST_WAITS:
            worker = self._next(turn)
            if self._world.oracles.violations or (reached is not None and reached()):
                break
            if worker is None:
                if not self._wait():
                    break
                continue
            turn = worker.number + 1
            self._switch_to(worker)
        else:
            self._world.oracles.accuse("the schedule does not come to an end")
        self._end_all()

    def _end_all(self) -> None:
        for worker in self._workers:
            worker.dead = True
            if worker.body is not None and worker.body:
                worker.body.throw(Killed)

    def _next(self, turn: int) -> Worker | None:
        count = len(self._workers)
        order = [self._workers[(turn + offset) % count] for offset in range(count)]
        steps = self._world.gate.steps
        awake = [worker for worker in order if worker.asleep_until <= steps]
        for worker in awake:
            if not worker.idle:
                return worker
        for worker in order:
            if worker.asleep_until > steps:
                worker.asleep_until = 0
                return worker
        return None

    def _switch_to(self, worker: Worker) -> None:
        gate = self._world.gate
        assert worker.body is not None
        gate.current = worker
        worker.body.switch()
        gate.current = None
        # Others that found nothing to do may find something after what this one did.
        if not worker.idle:
            for other in self._workers:
                other.idle = False
        if worker.dead:
            self._workers[worker.number] = self._new_worker(worker.number)

    def _new_worker(self, number: int) -> Worker:
        self._born += 1
        worker = Worker(name=f"w{number}.{self._born}", number=number)
        worker.body = greenlet(lambda: self._live(worker), parent=getcurrent())
        return worker

    def _live(self, worker: Worker) -> None:
        context = self._world.context(worker.name, self._rng)
        try:
            while True:
                self._one_step(worker, context)
        except Killed:
            return

    def _one_step(self, worker: Worker, context: Context) -> None:
        world, gate = self._world, self._world.gate
        step = self._choose(worker)
        worker.idle = step is None
        before = world.oracles.changes
        if step is not None:
            gate.log(f"{worker.name} {step}")
            try:
                if step in STEPS:
                    STEPS[step](world, context, self._plan)
                elif not grant_wish(world, context, step):
                    return
                else:
                    self._wishes.remove(step)
                    gate.log(f"{worker.name} {step} done")
            except EXPECTED as error:
                gate.log(f"{worker.name} {step} ended: {type(error).__name__}: {error}")
                worker.idle = True
            except Exception as error:  # noqa: BLE001 - whatever it is, it is reported
                world.oracles.accuse(f"{step} ended with {type(error).__name__}: {error}")
                worker.idle = True
        # Whoever finds another one at everything, or changes nothing, has nothing to do for now.
        if worker.idle or world.oracles.changes == before:
            worker.idle = True
            gate.give_way()
        elif self._stepwise:
            gate.give_way()

    def _choose(self, worker: Worker) -> str | None:
        """What to do next; different workers prefer different steps."""
        world = self._world
        if self._wishes and worker.number == 0 and self._wished != self._waits:
            self._wished = self._waits
            return self._wishes[0]
        found = eligible(world, self._plan)
        # Another one after each wait: a job that is slow must not keep the rest from its turn.
        turn = worker.number + (0 if self._stepwise else self._waits)
        return found[turn % len(found)] if found else None

    def _wait(self) -> bool:
        """Everybody waits: let time pass until the next thing can happen. False if none will."""
        world = self._world
        moment = next_moment(world, self._plan, patient=self._waits % 4 == 1)
        if moment is None and not eligible(world, self._plan):
            return False
        self._waits += 1
        if moment is not None:
            step = from_text(moment) - world.clock()
            world.clock.go_on(max(step, timedelta()) + timedelta(milliseconds=1))
        world.gate.log(f"wait until {world.ledger.now()}")
        for worker in self._workers:
            worker.idle = False
        return True


_BEGUN: dict[str, str] = {
    "frozen": "SUM(state = 'prepared') = COUNT(*) FROM batches",
    "submitted": "SUM(state IN ('submitted', 'running')) = COUNT(*) FROM batches",
    "ended": "SUM(state = 'results_available') = COUNT(*) FROM batches",
    "collected": f"SUM(state IN {COMPLETE}) = COUNT(*) FROM batches",
    "judged": f"SUM(state IN {COMPLETE} AND (collected_artifact IS NULL "
    "OR staging_artifact IS NOT NULL)) = COUNT(*) FROM batches",
    "retried": "SUM(state = 'results_available') = COUNT(*) FROM batches "
    "WHERE manifest_no > (SELECT MIN(manifest_no) FROM batches)",
}
"""What holds when everything has come so far."""


def begin(world: World, plan: Plan) -> bool:
    """Make the world as it is when the plan begins; False if something is wrong before it."""
    if plan.start == "nothing":
        world.reset(plan, getcurrent())
        return True
    before = plan.prefix
    key = (plan.start, before)
    if key not in world.snapshots:
        world.reset(before, getcurrent())
        sql = f"SELECT {_BEGUN[plan.start]}"

        def reached() -> bool:
            return world.driver.execute(sql).fetchone()[0] == 1

        Scheduler(world, before).run(reached)
        if not world.oracles.violations and not reached():
            world.oracles.accuse(f"undisturbed, it never comes to be {plan.start}")
        if world.oracles.violations:
            return False
        world.snapshots[key] = world.snapshot()
    world.go_on_from(world.snapshots[key], plan, getcurrent())
    return True


def run_schedule(world: World, plan: Plan, *, keep_log: bool = False) -> Outcome:
    """Run one schedule from nothing and judge it.

    Args:
        world: this process's world.
        plan: what happens.
        keep_log: keep the steps.
    """
    lines: list[str] = []
    world.gate.log = lines.append
    if begin(world, plan):
        lines.clear()  # of what was before it
        Scheduler(world, plan).run()
    world.gate.current = None
    # What goes wrong later than the first violation says nothing more.
    if not world.oracles.violations:
        world.oracles.judge_end()
    text = "\n".join(lines)
    return Outcome(
        violations=tuple(world.oracles.violations),
        steps=world.gate.steps,
        digest=hashlib.sha256(text.encode()).hexdigest(),
        log=tuple(lines) if keep_log else (),
    )
