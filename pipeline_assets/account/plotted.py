"""The numbers of a version that people plot over time, as metadata of an asset.

Belongs here: which ones, and their names. Does not belong here: the figures themselves
(`status.py`, `operational.py`, `disk.py`, `pipeline_assets/costs`) and reporting them (`asset.py`).
"""

from __future__ import annotations

from pipeline_assets.account.machine_facts import CostReader, VersionReading, costs_now, read_facts
from resources.context import Context

_HOUR = 3600


def plotted_numbers(
    context: Context, key: str, read_costs: CostReader = costs_now
) -> dict[str, int | float]:
    """The numbers of a version that are known now.

    One that is not known is left out, since a 0 would be plotted as one. Where nothing is open its
    age is 0: that is known.

    Args:
        context: the open resources.
        key: the version.
        read_costs: what reads its costs; for a caller that has read them already.

    Raises:
        MalformedVersionKey, VersionNeverUsed: there is no such version here.
    """
    (version,) = read_facts(context, (key,), read_costs).versions
    return {name: value for name, value in _numbers(version).items() if value is not None}


def _numbers(version: VersionReading) -> dict[str, int | float | None]:
    now, jobs, cost, disk = version.status, version.jobs, version.costs.account, version.disk
    ages = now.ages.open_records
    each, least = cost.cost_per_accepted, cost.at_least
    return {
        "accepted": now.accepted,
        "accepted items": cost.accepted,
        "published": now.publication.published,
        "review backlog": now.review_backlog,
        "dead letters": now.dead_letters,
        "failures": sum(jobs.failures.values()),
        "unreconciled records": sum(jobs.unreconciled.values()),
        "retry rate": None if jobs.retry_rate is None else round(jobs.retry_rate, 4),
        "cost per accepted item, USD": None if each is None else float(each),
        "cost per accepted item at least, USD": None if least is None else float(least),
        "oldest open record, hours": _hours(ages.max),
        "age of open records p50, hours": _hours(ages.p50),
        "age of open records p90, hours": _hours(ages.p90),
        "disk bytes": disk.artifact_bytes + disk.ledger_bytes,
    }


def _hours(seconds: float | None) -> float:
    return 0.0 if seconds is None else round(seconds / _HOUR, 2)
