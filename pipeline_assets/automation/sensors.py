"""The sensors that ask for runs: when a provider's job allows one, and when retries are due.

Belongs here: Dagster's side of it: ticks, run requests, keeping out of the way of a run. Does not
belong here: the look (`provider_jobs/monitor.py`) and the decision (`pending.py`).

No run waits for a provider. A tick asks every job that is due, within Dagster's time limit, and
requests a run of a version only where the ledger has work for one.
"""

from datetime import datetime

import dagster as dg

from partitions.definition import register
from pipeline_assets.automation.busy import busy_versions
from pipeline_assets.automation.jobs import (
    MAX_RUNTIME_SECONDS,
    MAX_RUNTIME_TAG,
    advance_version,
    retry_version,
)
from pipeline_assets.automation.pending import Pending, due_versions, pending_versions, run_key
from pipeline_assets.ingest.event_alerts import look_at_dead_events
from pipeline_assets.provider_jobs.monitor import TickReport, look_at_due_jobs
from pipeline_assets.recovery.dead_letter_alerts import look_at_all_dead_letters
from pipeline_assets.recovery.releases import look_at_holds
from resources.context_resource import ContextResource

INTERVAL_SECONDS = 30


@dg.sensor(
    job=advance_version,
    minimum_interval_seconds=INTERVAL_SECONDS,
    default_status=dg.DefaultSensorStatus.STOPPED,
    description="Asks provider jobs that are due how they are, and requests a run of each version "
    "that has results to collect, batches to submit or accepted records to publish.",
)
def provider_batch_monitor(
    context: dg.SensorEvaluationContext, tallybook: ContextResource
) -> dg.SensorResult | dg.SkipReason:
    """Poll what is due, then request what the ledger has work for."""
    busy = busy_versions(context.instance)
    with tallybook.open() as opened:
        report = look_at_due_jobs(opened)
        released = look_at_holds(opened)
        look_at_all_dead_letters(opened)
        look_at_dead_events(opened)
        pending, troubles = pending_versions(opened)
        now = opened.clock()
    _tell(context, report, troubles)
    for key in released:
        context.log.info(f"{key} is released: the cause of its hold is gone")
    return _requests(context, pending, now, busy) or dg.SkipReason(_summary(report, len(pending)))


@dg.sensor(
    job=retry_version,
    minimum_interval_seconds=INTERVAL_SECONDS,
    default_status=dg.DefaultSensorStatus.STOPPED,
    description="Requests a run of each version that has records due for another attempt.",
)
def retry_due(
    context: dg.SensorEvaluationContext, tallybook: ContextResource
) -> dg.SensorResult | dg.SkipReason:
    """Ask the ledger what is due; the decision about each record was made when it failed."""
    busy = busy_versions(context.instance)
    with tallybook.open() as opened:
        due = due_versions(opened)
        now = opened.clock()
    return _requests(context, due, now, busy) or dg.SkipReason(
        f"{len(due)} versions have retries due"
    )


def _requests(
    context: dg.SensorEvaluationContext, pending: list[Pending], now: datetime, busy: set[str]
) -> dg.SensorResult | None:
    """A run of each version with work that no run is at; None if there is none.

    A version that was busy before the ledger was read is left alone, too: its states were those
    of a run under way.
    """
    busy |= busy_versions(context.instance)
    wanted = [work for work in pending if work.key not in busy]
    register(context.instance, [work.key for work in wanted])
    if not wanted:
        return None
    return dg.SensorResult(
        run_requests=[
            dg.RunRequest(
                run_key=run_key(work, now),
                partition_key=work.key,
                tags={
                    "tallybook/why": ",".join(work.why),
                    MAX_RUNTIME_TAG: str(MAX_RUNTIME_SECONDS),
                },
            )
            for work in wanted
        ]
    )


def _tell(
    context: dg.SensorEvaluationContext, report: TickReport, troubles: dict[str, str]
) -> None:
    for name, what in report.settled.items():
        context.log.info(f"{name}: {what}")
    for name, what in {**report.troubles, **troubles}.items():
        context.log.warning(f"{name}: {what}")
    if report.ended:
        context.log.info(f"done at the provider: {', '.join(report.ended)}")


def _summary(report: TickReport, pending: int) -> str:
    return (
        f"{report.looked} jobs looked at, {len(report.ended)} done, {report.left} left for the "
        f"next tick, {pending} versions with work"
    )
