"""Running the job of a processing version from the command line, through Dagster.

Belongs here: one run in this process, and its outcome in one line. Does not belong here: the
instance (`dagster_instance.py`), leftovers (`leftover_runs.py`), and what a person is shown
(`app.py` and its modules).

The run goes through the instance, so that it, its lineage and its partition are in the user
interface; Dagster's own log lines stay off the terminal and are in the run's event log.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass

import dagster as dg

from partitions.definition import register
from partitions.processing_version import find_spec
from pipeline_assets.automation.jobs import process_version
from pipeline_assets.cli.dagster_instance import instance_home, open_instance, told
from pipeline_assets.cli.leftover_runs import (
    LeftoverRun,
    close_leftover_runs,
    close_leftovers,
    leftover_runs,
)
from pipeline_assets.definitions import build_definitions
from resources.clock import Clock, system_clock
from resources.context import Progress
from resources.context_resource import StepBroke, process_tags
from resources.processes import this_process
from resources.settings import Settings

__all__ = [
    "LeftoverRun",
    "RunOutcome",
    "close_leftover_runs",
    "leftover_runs",
    "open_instance",
    "run_job",
    "run_version",
]

_QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


@dataclass(frozen=True)
class RunOutcome:
    """How a run ended.

    Attributes:
        run_id: Dagster's id.
        success: every step succeeded and no blocking check failed.
        error_line: what went wrong, for a person; None on success.
        closed: dead runs that were closed before this one began.
    """

    run_id: str
    success: bool
    error_line: str | None
    closed: tuple[LeftoverRun, ...]


def run_version(
    settings: Settings,
    key: str,
    *,
    source_moved: bool = False,
    progress: Progress | None = None,
    clock: Clock = system_clock,
) -> RunOutcome:
    """Run every stage for one processing version.

    Args:
        settings: where things are.
        key: the processing version.
        source_moved: take the folder as the new place of a source of the same name.
        progress: where the stages tell how far they are.
        clock: the time.

    Raises:
        see `run_job`.
    """
    scan = {"source_documents": {"config": {"source_moved": source_moved}}}
    return run_job(settings, key, process_version.name, scan, progress=progress, clock=clock)


def run_job(
    settings: Settings,
    key: str,
    job: str,
    ops: Mapping[str, object],
    *,
    run_id: str | None = None,
    progress: Progress | None = None,
    clock: Clock = system_clock,
) -> RunOutcome:
    """Run one job for one processing version in this process.

    Args:
        settings: where things are.
        key: the processing version.
        job: the job's name.
        ops: configuration by asset.
        run_id: Dagster's id of the run; made now by default.
        progress: where the stages tell how far they are.
        clock: the time.

    Raises:
        MalformedVersionKey, UnknownVersion, InvalidSpec: there is no such version; nothing ran.
        InstanceUnusable: Dagster's storage does not work.
        KeyboardInterrupt: the run was interrupted; it is closed.
        Exception: a mistake in the code, as it was raised; the run is marked as failed.
    """
    find_spec(key, settings.spec_folders)
    run_id = run_id or str(uuid.uuid4())
    try:
        with open_instance(settings) as instance, told(instance_home(settings)):
            closed = tuple(close_leftovers(instance, clock()))
            register(instance, [key])
            error_line = _execute(settings, instance, run_id, key, job, ops, progress)
    except StepBroke as broken:
        raise broken.error from None
    except dg.DagsterExecutionInterruptedError as error:
        raise KeyboardInterrupt from error
    return RunOutcome(run_id, error_line is None, error_line, closed)


def _execute(
    settings: Settings,
    instance: dg.DagsterInstance,
    run_id: str,
    key: str,
    job_name: str,
    ops: Mapping[str, object],
    progress: Progress | None,
) -> str | None:
    """Run the job; what went wrong, if it is something that a person is told."""
    definitions = build_definitions(settings, progress=progress)
    job = definitions.resolve_job_def(job_name)
    try:
        job.execute_in_process(
            run_config={**_QUIET, "ops": dict(ops)},
            instance=instance,
            partition_key=key,
            tags=process_tags(this_process(), run_id),
            run_id=run_id,
        )
    except dg.Failure as failure:
        return failure.description or "the run failed"
    except dg.DagsterError:
        told_by_check = _failed_check(instance, run_id)
        if told_by_check is None:
            raise
        return told_by_check
    return None


def _failed_check(instance: dg.DagsterInstance, run_id: str) -> str | None:
    """What the failed checks of a run say; None if none failed."""
    entries = instance.all_logs(run_id, of_type=dg.DagsterEventType.ASSET_CHECK_EVALUATION)
    events = [entry.dagster_event for entry in entries if entry.dagster_event is not None]
    failed = [event.asset_check_evaluation_data for event in events]
    return (
        "; ".join(
            f"check {check.check_name} failed: {check.description}"
            for check in failed
            if not check.passed and check.blocking
        )
        or None
    )
