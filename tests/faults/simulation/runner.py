"""A process's simulation: the world with everything unreal put in place.

Belongs here: opening and closing it. Does not belong here: one schedule (`schedule.py`), many
(`soak.py`).
"""

from __future__ import annotations

import gc
from contextlib import ExitStack
from types import TracebackType
from typing import Self

from pipeline_assets.provider_jobs import life
from resources.ledger import leases
from tests.faults.simulation.plan import Plan
from tests.faults.simulation.schedule import Outcome, run_schedule
from tests.faults.simulation.stubs import Replacement, all_replacements, installed
from tests.faults.simulation.workers import settings_of
from tests.faults.simulation.world import World

COLLECT_EVERY = 200
"""Schedules between two runs of the cyclic collector."""
SPIED = ("acquire", "push_expiry", "release", "seal")


class Simulation:
    """Runs schedules; while it is open, the names in `stubs` stand for something else."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._runs = 0

    def __enter__(self) -> Self:
        self.world = World()
        self.world.settings = settings_of(self.world)
        spies = [
            Replacement(leases, name, self.world.oracles.spy(name, getattr(leases, name)))
            for name in SPIED
        ]
        pushes = next(spy.value for spy in spies if spy.name == "push_expiry")
        spies.append(Replacement(life, "push_expiry", pushes))
        world = self.world
        self._stack.enter_context(
            installed(all_replacements(world.store, world.client, world.ledger, spies))
        )
        gc.collect()
        gc.freeze()
        gc.disable()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()
        gc.enable()
        gc.unfreeze()
        self.world.ledger.close()

    def run(self, plan: Plan, *, keep_log: bool = False) -> Outcome:
        """Run one schedule."""
        self._runs += 1
        if self._runs % COLLECT_EVERY == 0:
            gc.collect()
        return run_schedule(self.world, plan, keep_log=keep_log)
