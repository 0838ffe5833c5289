"""`python -m tests.faults.simulation`: a soak, one seed, or the list of planted bugs.

Belongs here: arguments and words. Does not belong here: any work.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

# Before Polars is loaded: frames of a few rows gain nothing from threads.
os.environ.setdefault("POLARS_MAX_THREADS", "1")


def main(given: list[str] | None = None) -> int:
    """Run what was asked for; 1 if something was violated, or a planted bug was not caught."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=1000, help="how many schedules")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--minutes", type=float, default=20, help="at most so long")
    parser.add_argument("--seed", type=int, help="run this one alone, and shrink it if it fails")
    parser.add_argument("-v", "--verbose", action="store_true", help="print the steps")
    parser.add_argument("--mutate", default=None, help="plant this bug")
    parser.add_argument("--mutations", action="store_true", help="plant every bug in turn")
    parser.add_argument("--most", type=int, default=2000, help="schedules a planted bug is given")
    parser.add_argument(
        "--failures", type=Path, default=Path("data/state/soak/failures.jsonl"), help="their seeds"
    )
    asked = parser.parse_args(given)
    if asked.mutations:
        return _mutations(asked.most)
    if asked.seed is not None or asked.mutate is not None:
        return _one(asked.seed, asked.mutate, asked.most, verbose=asked.verbose)
    return _soak(asked)


def _soak(asked: argparse.Namespace) -> int:
    from tests.faults.simulation.soak import soak

    report = soak(asked.seeds, asked.first, asked.minutes, asked.failures)
    rate = report.schedules / max(report.seconds, 0.001)
    print(f"{rate:.1f} schedules a second for {report.seconds / 60:.1f} minutes in two processes")
    for seed, violations in sorted(report.failures.items())[:10]:
        print(f"seed {seed}: {'; '.join(violations)}")
    if report.failures:
        print(f"all failing seeds: {asked.failures}")
        print("again: python -m tests.faults.simulation --seed N -v")
    print(f"schedules={report.schedules} violations={len(report.failures)}")
    return 1 if report.failures else 0


def _mutations(most: int) -> int:
    from tests.faults.simulation.hunt import hunt
    from tests.faults.simulation.mutations import MUTATIONS
    from tests.faults.simulation.runner import Simulation

    missed = 0
    with Simulation() as simulation:
        for name, mutation in MUTATIONS.items():
            caught = hunt(simulation, name, most)
            missed += caught.seed is None
            found = "NOT CAUGHT" if caught.seed is None else caught.violation
            print(
                f"{name:28} invariant {mutation.invariant:2}: {caught.schedules:5} schedules: "
                f"{found}",
                flush=True,
            )
    print(f"{len(MUTATIONS)} planted bugs, {missed} not caught")
    return 1 if missed else 0


def _one(seed: int | None, mutate: str | None, most: int, *, verbose: bool) -> int:
    from tests.faults.simulation.hunt import hunt
    from tests.faults.simulation.mutations import MUTATIONS
    from tests.faults.simulation.plan import Plan, draw
    from tests.faults.simulation.runner import Simulation
    from tests.faults.simulation.shrink import shrink
    from tests.faults.simulation.stubs import installed

    with Simulation() as simulation:
        if seed is None:
            assert mutate is not None
            seed = hunt(simulation, mutate, most).seed
            if seed is None:
                print(f"{mutate} was not caught in {most} schedules")
                return 1
        planted = MUTATIONS[mutate].plant() if mutate is not None else []
        with installed(planted):
            plan = draw(seed)
            outcome = simulation.run(plan, keep_log=True)
            if outcome.violations:
                first = outcome.violations[0]

                def fails(smaller: Plan) -> bool:
                    return first in simulation.run(smaller).violations

                plan = shrink(plan, fails)
                outcome = simulation.run(plan, keep_log=True)
    if verbose:
        print("\n".join(outcome.log))
    print(plan)
    print(f"seed {seed}, {outcome.steps} steps, digest {outcome.digest}")
    for violation in outcome.violations:
        print(f"violated: {violation}")
    return 1 if outcome.violations else 0


if __name__ == "__main__":
    sys.exit(main())
