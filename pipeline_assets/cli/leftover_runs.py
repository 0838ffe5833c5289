"""Runs that nobody works on any more, though Dagster still shows them as running.

Belongs here: telling them, and closing them. Does not belong here: what the ledger kept of them
(its leases and states need no run).

With the default launcher a run whose machine died stays "started" for ever: it counts against the
limit of runs, and its partition shows as being materialised.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

import dagster as dg

from pipeline_assets.automation.jobs import MAX_RUNTIME_SECONDS, MAX_RUNTIME_TAG
from pipeline_assets.cli.dagster_instance import instance_home, open_instance, told
from resources.clock import Clock, system_clock
from resources.context_resource import tagged_process
from resources.processes import is_alive
from resources.settings import Settings

PARTITION_TAG = "dagster/partition"
_WORKED_ON = (
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
)


@dataclass(frozen=True)
class LeftoverRun:
    """A run that looks alive and is not, or may not be.

    Attributes:
        run_id: Dagster's id.
        job: what ran.
        version: the processing version; None if the run had none.
        age: since it was created.
        why: how it is known.
        dead: nobody works on it for certain, so it may be closed.
    """

    run_id: str
    job: str
    version: str | None
    age: timedelta
    why: str
    dead: bool


def leftover_runs(settings: Settings, *, clock: Clock = system_clock) -> list[LeftoverRun]:
    """Every leftover of the state folder's instance, oldest first.

    Raises:
        InstanceUnusable: Dagster's storage cannot be opened.
    """
    with open_instance(settings) as instance, told(instance_home(settings)):
        return find_leftovers(instance, clock())


def close_leftover_runs(settings: Settings, *, clock: Clock = system_clock) -> list[LeftoverRun]:
    """Mark every dead leftover as failed; those that were closed are returned.

    Raises:
        InstanceUnusable: Dagster's storage cannot be opened or written.
    """
    with open_instance(settings) as instance, told(instance_home(settings)):
        return close_leftovers(instance, clock())


def close_leftovers(instance: dg.DagsterInstance, now: datetime) -> list[LeftoverRun]:
    """Mark the dead leftovers of an open instance as failed."""
    closed = []
    for leftover in find_leftovers(instance, now):
        run = instance.get_run_by_id(leftover.run_id)
        # It may have ended between the look and now.
        if leftover.dead and run is not None and not run.is_finished:
            instance.report_run_failed(run, f"Closed as a leftover: {leftover.why}.")
            closed.append(leftover)
    return closed


def find_leftovers(instance: dg.DagsterInstance, now: datetime) -> list[LeftoverRun]:
    """The leftovers of an open instance, oldest first."""
    # NOT_STARTED too: a run of the command line is created in the process that works on it.
    statuses = [dg.DagsterRunStatus.NOT_STARTED, *_WORKED_ON]
    records = instance.get_run_records(filters=dg.RunsFilter(statuses=statuses), ascending=True)
    found = (judge(record.dagster_run, record.create_timestamp, now) for record in records)
    return [leftover for leftover in found if leftover is not None]


def judge(run: dg.DagsterRun, created: datetime, now: datetime) -> LeftoverRun | None:
    """Whether a run that is not finished is a leftover.

    Args:
        run: not finished.
        created: when it was created; without a zone it is UTC, as Dagster stores it.
        now: the time.
    """
    process = tagged_process(run.tags, run.run_id)
    alive = None if process is None else is_alive(process)
    age = now - (created if created.tzinfo else created.replace(tzinfo=now.tzinfo))
    limit = timedelta(seconds=_max_runtime(run.tags))
    if process is not None and alive is False:
        why, dead = f"process {process.pid} on {process.host} has ended", True
    elif alive or (process is None and run.status not in _WORKED_ON):
        return None
    elif age > limit:
        why, dead = f"it is older than its limit of {limit.total_seconds():.0f} s", True
    elif process is not None:
        why, dead = f"it belongs to {process.host}, which cannot be seen from here", False
    else:
        return None
    return LeftoverRun(run.run_id, run.job_name, run.tags.get(PARTITION_TAG), age, why, dead)


def _max_runtime(tags: Mapping[str, str]) -> int:
    given = tags.get(MAX_RUNTIME_TAG, "")
    return int(given) if given.isdecimal() else MAX_RUNTIME_SECONDS
