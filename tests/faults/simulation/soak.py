"""Many schedules in several processes.

Belongs here: dividing the work, the time limit, the report. Does not belong here: one schedule.
"""

from __future__ import annotations

import json
import multiprocessing
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any

PROCESSES = 2
CHUNK = 250
"""Schedules between two words of a process about how far it is."""


@dataclass
class SoakReport:
    """What a soak came to.

    Attributes:
        schedules: how many were run.
        failures: seed → violations.
        seconds: how long it took.
    """

    schedules: int = 0
    seconds: float = 0.0
    failures: dict[int, tuple[str, ...]] = field(default_factory=dict)


def soak(seeds: int, first: int, minutes: float, failures: Path) -> SoakReport:
    """Run seeds `first` to `first + seeds - 1` in two processes, at most for so long.

    Args:
        seeds: how many.
        first: the first of them.
        minutes: no further chunk is begun after so long.
        failures: failing seeds are written there, a JSON line each, as they are found.

    Raises:
        ChildProcessError: a process ended before it was done.
    """
    # A fresh interpreter each: the database engine of the parent is not to be shared.
    spawn = multiprocessing.get_context("spawn")
    started = time.monotonic()
    report = SoakReport()
    pipes: dict[Any, SpawnProcess] = {}
    for number in range(PROCESSES):
        reader, writer = spawn.Pipe(duplex=False)
        arguments = (writer, first + number, first + seeds, PROCESSES, started + minutes * 60)
        child = spawn.Process(target=_run_many, args=arguments, daemon=True)
        child.start()
        writer.close()
        pipes[reader] = child
    failures.parent.mkdir(parents=True, exist_ok=True)
    with failures.open("w", encoding="utf-8") as file:
        while pipes:
            for pipe in wait(list(pipes)):
                if not _take(pipe, report, file.write):
                    child = pipes.pop(pipe)
                    child.join()
                    if child.exitcode:
                        raise ChildProcessError(
                            f"a process of the soak ended with status {child.exitcode}; see above"
                        )
            report.seconds = time.monotonic() - started
            _tell(report)
    return report


def _take(pipe: Any, report: SoakReport, write: Callable[[str], object]) -> bool:
    """Add what a process says; False when it has said everything."""
    try:
        count, failed = pipe.recv()
    except EOFError:
        return False
    report.schedules += count
    for seed, violations in failed:
        report.failures[seed] = violations
        line = json.dumps({"seed": seed, "violations": violations})
        write(f"{line}\n")
    return True


def _tell(report: SoakReport) -> None:
    rate = report.schedules / max(report.seconds, 0.001)
    sys.stderr.write(
        f"{report.schedules} schedules, {len(report.failures)} failing, {rate:.1f} a second\n"
    )


def _run_many(pipe: Any, first: int, end: int, step: int, last_moment: float) -> None:
    # Only the processes that run schedules need the product.
    from tests.faults.simulation.plan import draw
    from tests.faults.simulation.runner import Simulation

    with Simulation() as simulation:
        count, failed = 0, []
        for seed in range(first, end, step):
            outcome = simulation.run(draw(seed))
            count += 1
            if outcome.violations:
                failed.append((seed, outcome.violations))
            if count == CHUNK:
                pipe.send((count, failed))
                count, failed = 0, []
                # The monotonic clock is one for all processes of a machine.
                if time.monotonic() > last_moment:
                    break
        pipe.send((count, failed))
    pipe.close()
