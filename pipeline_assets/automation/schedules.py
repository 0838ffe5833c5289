"""The schedules: the account of every version, and the alerts of work that stands still.

Belongs here: Dagster's side of it: when they come and what they ask for. Does not belong here: the
decision about accounts (`reports.py`), and looking for what stands still (`stuck_job.py`).
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

import dagster as dg

from partitions.definition import register
from pipeline_assets.automation.busy import busy_versions
from pipeline_assets.automation.jobs import (
    MAX_RUNTIME_SECONDS,
    MAX_RUNTIME_TAG,
    reconcile_versions,
)
from pipeline_assets.automation.reports import decide_reports
from pipeline_assets.automation.stuck_facts import report_facts
from pipeline_assets.automation.stuck_job import stuck_work
from resources.context_resource import ContextResource

REPORT = dg.AssetKey("reconciliation_report")


@dg.schedule(
    job=reconcile_versions,
    cron_schedule="17 * * * *",
    default_status=dg.DefaultScheduleStatus.STOPPED,
    description="Every hour: the account of each version that has open work, or that moved since "
    "its newest account.",
)
def hourly_reconciliation(
    context: dg.ScheduleEvaluationContext, tallybook: ContextResource
) -> list[dg.RunRequest] | dg.SkipReason:
    """Request the account of every version that needs a new one."""
    with tallybook.open() as opened:
        facts = report_facts(opened.ledger)
    wanted = decide_reports(
        facts,
        _reported_at(context.instance, [fact.key for fact in facts]),
        busy_versions(context.instance),
    )
    if not wanted:
        return dg.SkipReason(f"the accounts of all {len(facts)} active versions are up to date")
    register(context.instance, wanted)
    return [
        dg.RunRequest(
            partition_key=key,
            tags={"tallybook/why": "reconciliation", MAX_RUNTIME_TAG: str(MAX_RUNTIME_SECONDS)},
        )
        for key in wanted
    ]


@dg.schedule(
    job=stuck_work,
    cron_schedule="*/15 * * * *",
    default_status=dg.DefaultScheduleStatus.STOPPED,
    description="Every 15 minutes: raises and clears alerts of batches, records, reviews, canaries "
    "and sources that stand still.",
)
def stuck_work_alerts() -> dg.RunRequest:
    """Request a look."""
    return dg.RunRequest()


def _reported_at(instance: dg.DagsterInstance, keys: Iterable[str]) -> dict[str, datetime]:
    """When the newest account of each version was made."""
    found = {}
    for key in keys:
        records = instance.fetch_materializations(
            dg.AssetRecordsFilter(asset_key=REPORT, asset_partitions=[key]), limit=1
        ).records
        if records:
            found[key] = datetime.fromtimestamp(records[0].timestamp, UTC)
    return found
