"""Dagster's runs that a retention policy lets go.

Belongs here: reading them and deleting them. Does not belong here: the decision
(`pipeline_assets/retention/policy.py`) and runs that look alive (`leftover_runs.py`).
"""

from __future__ import annotations

from datetime import UTC, datetime

import dagster as dg

from pipeline_assets.cli.dagster_instance import instance_home, open_instance, told
from pipeline_assets.cli.leftover_runs import PARTITION_TAG
from pipeline_assets.retention.policy import RetentionPolicy, Run, decide_runs
from resources.settings import Settings


def prune_runs(
    settings: Settings,
    policy: RetentionPolicy,
    open_versions: set[str],
    now: datetime,
    *,
    trial: bool,
) -> tuple[list[Run], dict[str, int]]:
    """Delete the runs that may go, with their events; those that went, and why others stay.

    Args:
        settings: where Dagster's instance is; without one there is nothing to do.
        policy: the age.
        open_versions: keys of versions with open records.
        now: the time.
        trial: tell, and delete nothing.

    Raises:
        InstanceUnusable: Dagster's storage cannot be opened or written.
    """
    if not instance_home(settings).is_dir():
        return [], {}
    with open_instance(settings) as instance, told(instance_home(settings)):
        runs = [_run(record) for record in instance.get_run_records()]
        going, kept = decide_runs(runs, open_versions, policy.before("runs", now))
        if not trial:
            for run in going:
                instance.delete_run(run.run_id)
    return going, kept


def _run(record: dg.RunRecord) -> Run:
    run = record.dagster_run
    ended = record.end_time
    if ended is None and run.is_finished:
        # A run that never started has no end of its own.
        ended = record.update_timestamp.replace(tzinfo=UTC).timestamp()
    return Run(
        run_id=run.run_id,
        job=run.job_name,
        assets=tuple(sorted(key.to_user_string() for key in run.asset_selection or ())),
        partition=run.tags.get(PARTITION_TAG),
        succeeded=run.is_success,
        ended_at=datetime.fromtimestamp(ended, UTC)
        if run.is_finished and ended is not None
        else None,
    )
