"""The sensors of alerts: one that sends them, two that raise and clear them as runs end.

Belongs here: Dagster's side of it: ticks, and which run of a job and version ended last. Does not
belong here: what is told and how (`alerting/deliver.py`), the words (`alerting/run_failures.py`).

They are on from the start: a switch that somebody has to find is how alerts stay unheard. What
switches sending on is a configured channel; without one a tick skips before it opens anything.
"""

from __future__ import annotations

import dagster as dg

from pipeline_assets.alerting.channels import configured_channels
from pipeline_assets.alerting.deliver import DeliveryReport, deliver_alerts
from pipeline_assets.alerting.run_failures import (
    clear_run_failed,
    raise_run_failed,
    run_message,
    run_subject,
)
from pipeline_assets.automation.jobs import advance_version, process_version, retry_version
from resources.context_resource import PID_TAG, ContextResource

SEND_SECONDS = 60
RUNS_SECONDS = 30
PARTITION_TAG = "dagster/partition"
_ENDED = [dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE]
_RUNS_LOOKED_AT = 50
_JOBS = frozenset(job.name for job in (process_version, advance_version, retry_version))


@dg.sensor(
    minimum_interval_seconds=SEND_SECONDS,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Tells the configured channels (webhook, mail) which alerts are new, go on or are "
    "over; skips where no channel is configured.",
)
def alert_sender(context: dg.SensorEvaluationContext, tallybook: ContextResource) -> dg.SkipReason:
    """Tell what is owed; it starts no run, so every tick is a skip that says what was done."""
    channels = configured_channels(tallybook.opening.settings)
    if not channels:
        return dg.SkipReason("no channel for alerts is configured")
    with tallybook.open() as opened:
        report = deliver_alerts(opened, channels=channels)
    for outcome in report.failed:
        context.log.warning(f"{outcome.channel}: {outcome.problem}")
    return dg.SkipReason(_summary(report))


@dg.run_failure_sensor(
    minimum_interval_seconds=RUNS_SECONDS,
    default_status=dg.DefaultSensorStatus.RUNNING,
    monitor_all_code_locations=True,
    description="Raises an alert when a run fails, once for each version and job.",
)
def run_failure_alert(context: dg.RunFailureSensorContext, tallybook: ContextResource) -> None:
    """Raise `run_failed`, unless a later run of the same job and version has succeeded already."""
    run = context.dagster_run
    if not _is_ours(run) or _ended_last(context.instance, run) == dg.DagsterRunStatus.SUCCESS:
        return
    steps = [event.step_key for event in context.get_step_failure_events() if event.step_key]
    with tallybook.open() as opened:
        raise_run_failed(opened, _subject(run), run_message(run.run_id, steps))


@dg.run_status_sensor(
    run_status=dg.DagsterRunStatus.SUCCESS,
    minimum_interval_seconds=RUNS_SECONDS,
    default_status=dg.DefaultSensorStatus.RUNNING,
    monitor_all_code_locations=True,
    description="Clears the alert of a failed run when a later one of its version and job "
    "succeeds.",
)
def run_success_clears_alert(
    context: dg.RunStatusSensorContext, tallybook: ContextResource
) -> None:
    """Clear `run_failed`, unless a later run of the same job and version has failed since."""
    run = context.dagster_run
    if not _is_ours(run) or _ended_last(context.instance, run) == dg.DagsterRunStatus.FAILURE:
        return
    with tallybook.open() as opened:
        clear_run_failed(opened, _subject(run))


def _is_ours(run: dg.DagsterRun) -> bool:
    """Is it a run of this project, whoever started it?

    A run of `tallybook run` belongs to no code location, so the sensors watch all of them; on an
    instance that others share, their runs are left to them.
    """
    return run.job_name in _JOBS or PID_TAG in run.tags


def _subject(run: dg.DagsterRun) -> str:
    return run_subject(run.job_name, run.tags.get(PARTITION_TAG))


def _ended_last(instance: dg.DagsterInstance, run: dg.DagsterRun) -> dg.DagsterRunStatus:
    """How the newest ended run of the job and version ended.

    The two sensors tick on their own, so the order in which they see runs says nothing.
    """
    partition = run.tags.get(PARTITION_TAG)
    tags = {} if partition is None else {PARTITION_TAG: partition}
    filters = dg.RunsFilter(job_name=run.job_name, statuses=_ENDED, tags=tags)
    for other in instance.get_runs(filters=filters, limit=_RUNS_LOOKED_AT):
        if other.tags.get(PARTITION_TAG) == partition:
            return other.status
    return run.status


def _summary(report: DeliveryReport) -> str:
    if report.busy:
        return "another sender is at it"
    if not report.outcomes:
        return "nothing to tell"
    return "; ".join(
        f"{outcome.channel}: {outcome.told} told, {outcome.left} left"
        for outcome in report.outcomes
    )
