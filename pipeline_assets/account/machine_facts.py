"""Everything that the metrics tell, read at one moment.

Belongs here: gathering it. Does not belong here: names and forms of metrics (`metric_table.py`,
`openmetrics.py`), and each figure's meaning, which its own module has.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

import polars as pl
from sqlalchemy import Connection

from pipeline_assets.account.disk import DiskFacts, disk_facts
from pipeline_assets.account.operational import OperationalFacts, operational_facts
from pipeline_assets.account.status import Status, status
from pipeline_assets.alerting.kinds import KINDS, kind_of
from pipeline_assets.costs.account import CostAccount, cost_account
from pipeline_assets.known_version import known_version
from resources.context import Context
from resources.ledger.alerts import open_alerts
from resources.ledger.engine import Ledger
from resources.ledger.versions import list_versions
from resources.one_moment import at_one_moment

_LAST = """
SELECT (SELECT MAX(made_at) FROM reports WHERE version_no = ? AND batch_no IS NULL),
    (SELECT MAX(c.closed_at) FROM report_closings c JOIN reports r ON r.report_no = c.report_no
        WHERE r.version_no = ?),
    (SELECT MAX(audit_no) FROM audits WHERE version_no = ? OR version_no IS NULL)
"""


@dataclass(frozen=True)
class Costs:
    """What a version cost, and when that was read.

    Attributes:
        account: the account.
        at: the moment that it is of.
    """

    account: CostAccount
    at: datetime


CostReader = Callable[[Context, str], Costs]


def costs_now(context: Context, key: str) -> Costs:
    """The cost of a version as it is now."""
    return Costs(cost_account(context, key), context.clock())


@dataclass(frozen=True)
class LastLooks:
    """When somebody last vouched for a version; each is None where nobody did.

    Attributes:
        reported_at: the newest kept report of the whole version.
        closed_at: the newest closing.
        audited_at: the newest audit that the version was part of.
        audit_findings: what that audit found.
    """

    reported_at: str | None
    closed_at: str | None
    audited_at: str | None
    audit_findings: int | None


@dataclass(frozen=True)
class VersionReading:
    """One version.

    Attributes:
        status: where it stands.
        jobs: how its jobs fare.
        disk: what it takes and will take.
        costs: what it cost.
        looks: when somebody last vouched for it.
    """

    status: Status
    jobs: OperationalFacts
    disk: DiskFacts
    costs: Costs
    looks: LastLooks


@dataclass(frozen=True)
class Reading:
    """Everything, at one moment.

    Attributes:
        at: that moment.
        versions: oldest first.
        alerts: (kind, severity) → open alerts; every known kind is there.
        backed_up_at: when a backup was finished last; None if none ever was.
    """

    at: datetime
    versions: tuple[VersionReading, ...]
    alerts: dict[tuple[str, str], int]
    backed_up_at: str | None


def read_facts(
    context: Context, keys: Sequence[str] | None = None, read_costs: CostReader = costs_now
) -> Reading:
    """Read what the metrics tell, in one transaction.

    Args:
        context: the open resources.
        keys: the versions; every version that was ever used by default.
        read_costs: what reads the costs of a version; the one figure that may be of an earlier
            moment, if it says so.

    Raises:
        MalformedVersionKey, VersionNeverUsed: one of the keys is of no version here.
        LedgerError: the ledger cannot be read.
    """
    with at_one_moment(context) as now:
        ledger = now.ledger
        used = [version.key for version in list_versions(ledger)]
        wanted = used if keys is None else [known_version(now, key).key for key in keys]
        jobs = {facts.processing_version: facts for facts in operational_facts(now, wanted)}
        with ledger.read() as connection:
            return Reading(
                at=now.clock(),
                versions=tuple(
                    _version(connection, now, jobs[key], read_costs(now, key))
                    for key in used
                    if key in wanted
                ),
                alerts=_alerts(ledger),
                backed_up_at=ledger.dialect.fetch(
                    connection, "SELECT MAX(made_at) FROM backups", {"made_at": pl.String}
                ).item(),
            )


def _version(
    connection: Connection, context: Context, jobs: OperationalFacts, costs: Costs
) -> VersionReading:
    key = jobs.processing_version
    number = known_version(context, key).version_no
    return VersionReading(
        status=status(context, key),
        jobs=jobs,
        disk=disk_facts(context, number),
        costs=costs,
        looks=_looks(connection, context.ledger, number),
    )


def _looks(connection: Connection, ledger: Ledger, version_no: int) -> LastLooks:
    reported, closed, audit_no = ledger.dialect.fetch(
        connection,
        _LAST,
        {"reported": pl.String, "closed": pl.String, "audit_no": pl.Int64},
        (version_no, version_no, version_no),
    ).row(0)
    audited: str | None = None
    findings: int | None = None
    if audit_no is not None:
        audited, findings = ledger.dialect.fetch(
            connection,
            "SELECT made_at, findings FROM audits WHERE audit_no = ?",
            {"made_at": pl.String, "findings": pl.Int64},
            (audit_no,),
        ).row(0)
    return LastLooks(reported, closed, audited, findings)


def _alerts(ledger: Ledger) -> dict[tuple[str, str], int]:
    found = Counter(alert.kind for alert in open_alerts(ledger))
    return {(kind, kind_of(kind).severity): found.get(kind, 0) for kind in sorted({*KINDS, *found})}
