"""How many workers, calls and records a batch, from what a pilot measured. Pure.

Belongs here: the rules of thumb and the limits that they keep to. Does not belong here: measuring
(`facts.py`) and the capability table (`resources/providers/capabilities.py`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from resources.providers.capabilities import Capability

MEMORY_SHARE = 0.7
"""Of the machine's memory: the rest is for the database, the page cache and whatever else runs."""
FILE_SHARE = 0.9
"""Of a provider's limits on a job: the sample's mean is not the archive's."""
MOST_A_CORE = 2
"""Worker processes a core: waiting for the disk cannot be told from waiting for a busy core."""
MOST_WORKERS, MOST_CALLS = 64, 256
"""What the settings `parser_workers` and `online_concurrency` take."""


@dataclass(frozen=True)
class Machine:
    """What the pilot ran on.

    Attributes:
        cores: processors that this process may use.
        memory_bytes: physical memory; None where the system does not tell.
    """

    cores: int
    memory_bytes: int | None


@dataclass(frozen=True)
class Advice:
    """A recommended figure.

    Attributes:
        value: the figure; None where nothing was measured that tells.
        why: what it follows from, in one sentence.
    """

    value: int | None
    why: str


def parser_workers(
    machine: Machine, wall_s: float, cpu_s: float, worker_rss: int, main_rss: int
) -> Advice:
    """Worker processes that parse.

    So many that the processors are busy: a worker that computes a share b of its time leaves room
    for 1/b of them on a core, two at most, as far as the memory of all fits.

    Args:
        machine: what it runs on.
        wall_s: seconds that documents took in their workers, added up.
        cpu_s: seconds of processor time in them.
        worker_rss: highest resident memory of a worker, in bytes.
        main_rss: highest resident memory of the process beside them, in bytes.
    """
    if wall_s <= 0 or worker_rss <= 0:
        return Advice(None, "nothing was parsed by workers")
    busy = min(1.0, max(1 / MOST_A_CORE, cpu_s / wall_s))
    by_cores = max(1, round(machine.cores / busy))
    share = min(1.0, cpu_s / wall_s)
    why = f"{machine.cores} cores, {share:.0%} of a worker's time is computing"
    if machine.memory_bytes is None:
        return Advice(min(MOST_WORKERS, by_cores), f"{why}; the memory is not known")
    room = machine.memory_bytes * MEMORY_SHARE - main_rss
    by_memory = max(1, math.floor(room / worker_rss))
    if by_memory < by_cores:
        why = f"{_mib(worker_rss)} a worker, {_mib(machine.memory_bytes)} of memory"
    return Advice(min(MOST_WORKERS, by_cores, by_memory), why)


def online_calls(
    asked: int, latency_s: float | None, pushed_back: int, calls: int, overhead_s: float
) -> Advice:
    """Online calls that may be under way at once.

    Twice as many where the provider never pushed back, half as many where it did for more than one
    call in fifty; and never more than this machine keeps busy, which is latency over its own time
    for a call.

    Args:
        asked: what the pilot was set to.
        latency_s: mean seconds of a call; None where none was made.
        pushed_back: calls that were refused for their rate, or for want of capacity.
        calls: calls in all.
        overhead_s: seconds of this machine for each call.
    """
    if latency_s is None or not calls:
        return Advice(None, "no online call was made")
    if pushed_back * 50 > calls:
        return Advice(
            max(1, asked // 2),
            f"{pushed_back} of {calls} calls were pushed back at {asked} at once",
        )
    most = max(1, math.floor(latency_s / overhead_s)) if overhead_s > 0 else MOST_CALLS
    wanted = min(MOST_CALLS, asked if pushed_back else asked * 2, most)
    return Advice(
        max(1, wanted), f"a call takes {latency_s:.2f} s, {pushed_back} of {calls} were pushed back"
    )


def batch_records(
    capability: Capability | None, declared: int, line_bytes: float | None, tokens: float | None
) -> Advice:
    """Records of a batch: as many as a job of the provider takes, within the spec's own limit.

    Args:
        capability: the provider's row; None for a provider that has no jobs.
        declared: `batch_records` of the spec.
        line_bytes: mean bytes of a request; None where none was made.
        tokens: mean estimated prompt tokens of a request; None where not known.
    """
    limits = {"the spec's batch_records": declared}
    if capability is not None:
        if capability.max_records is not None:
            limits["records a job"] = capability.max_records.value
        if capability.max_bytes is not None and line_bytes:
            limits["bytes a job"] = int(capability.max_bytes.value * FILE_SHARE / line_bytes)
        if capability.enqueued_tokens is not None and tokens:
            limits["waiting tokens"] = int(capability.enqueued_tokens.value * FILE_SHARE / tokens)
    why = min(limits, key=lambda name: limits[name])
    found = max(1, limits[why])
    if capability is not None and capability.min_records is not None:
        found = max(found, capability.min_records.value)
    return Advice(found, f"limited by {why}")


def _mib(count: int) -> str:
    return f"{count / 2**20:.0f} MiB"
