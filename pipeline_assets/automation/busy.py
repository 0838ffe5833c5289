"""Which versions a run is at, as Dagster knows; every sensor and schedule keeps out of its way.

Belongs here: that question, and the tag it is asked by. Does not belong here: what else a version
may have to do (`pending.py`).
"""

from __future__ import annotations

import dagster as dg

PARTITION_TAG = "dagster/partition"
_UNFINISHED = [
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]
_RUNS_LOOKED_AT = 200


def busy_versions(instance: dg.DagsterInstance) -> set[str]:
    """Versions that a run is at now: a second one would only meet its leases."""
    runs = instance.get_runs(filters=dg.RunsFilter(statuses=_UNFINISHED), limit=_RUNS_LOOKED_AT)
    return {run.tags[PARTITION_TAG] for run in runs if PARTITION_TAG in run.tags}
