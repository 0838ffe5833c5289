"""Looking for a planted bug: schedules one after another until an oracle sees it.

Belongs here: only that. Does not belong here: the bugs (`mutations.py`).
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.faults.simulation.mutations import MUTATIONS
from tests.faults.simulation.plan import draw
from tests.faults.simulation.runner import Simulation
from tests.faults.simulation.stubs import installed


@dataclass(frozen=True)
class Caught:
    """How a planted bug fared.

    Attributes:
        schedules: schedules until it was seen, or all that were run.
        seed: where it was seen; None if it never was.
        violation: the first thing that was seen.
    """

    schedules: int
    seed: int | None
    violation: str


def hunt(simulation: Simulation, name: str, most: int) -> Caught:
    """Plant a bug and run schedules until it is caught."""
    with installed(MUTATIONS[name].plant()):
        simulation.world.snapshots.clear()
        try:
            for seed in range(most):
                outcome = simulation.run(draw(seed))
                if outcome.violations:
                    return Caught(seed + 1, seed, outcome.violations[0])
        finally:
            simulation.world.snapshots.clear()
    return Caught(most, None, "")
