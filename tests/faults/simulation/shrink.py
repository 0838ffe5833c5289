"""Making a failing schedule small: one thing less at a time, as long as it still fails.

Belongs here: only that. Does not belong here: which things there are (`plan.smaller`).
"""

from __future__ import annotations

from collections.abc import Callable

from tests.faults.simulation.plan import Plan, smaller

MOST_TRIES = 600


def shrink(plan: Plan, fails: Callable[[Plan], bool]) -> Plan:
    """The smallest plan found that still fails.

    Args:
        plan: a failing one.
        fails: does a plan fail?
    """
    tries = 0
    best, again = plan, True
    while again:
        again = False
        for candidate in smaller(best):
            if tries >= MOST_TRIES:
                return best
            tries += 1
            if fails(candidate):
                best, again = candidate, True
                break
    return best
