"""A workload as the ledger knows it, for reading: which there are, and which one is meant.

Belongs here: looking a name up, and choosing the one workload of a table. Does not belong here:
opening a workload (`pipeline_assets/workloads`), which may have been taken away since.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection, select

from resources.context import Context
from resources.ledger.schema import processing_versions


class WorkloadNeverUsed(LookupError):
    """A workload that nothing was ever processed under in this ledger."""

    def __init__(self, name: str, used: Sequence[str]) -> None:
        super().__init__(
            f"nothing was processed under workload {name!a} here (used so far: "
            f"{', '.join(used) or 'none'}). Check --workload and --state."
        )


class SeveralWorkloads(ValueError):
    """A table has the columns of one workload, and entries of several were asked for."""

    def __init__(self, found: Sequence[str]) -> None:
        super().__init__(
            f"there are entries of {len(found)} workloads ({', '.join(found)}), and a table has "
            "the columns of one: name it with --workload, or export JSON lines (--format jsonl)."
        )


def used_workloads(connection: Connection) -> list[str]:
    """Every workload that anything was processed under, sorted."""
    found = connection.execute(select(processing_versions.c.workload).distinct())
    return sorted(found.scalars())


def require_used(context: Context, workload: str) -> None:
    """Refuse a workload that the ledger does not know.

    Raises:
        WorkloadNeverUsed: nothing was processed under it.
    """
    with context.ledger.read() as connection:
        used = used_workloads(connection)
    if workload not in used:
        raise WorkloadNeverUsed(workload, used)


def only_workload(context: Context, shown: Sequence[str]) -> str:
    """The one workload of a table.

    Args:
        context: the open resources.
        shown: workloads of the entries that were asked for. Where there are none the table is
            empty, and its columns are those of the workload that was worked under, or else of
            the one that the source folder is for.

    Raises:
        SeveralWorkloads: there is more than one.
    """
    found = sorted(set(shown))
    if not found:
        with context.ledger.read() as connection:
            found = used_workloads(connection)
        return found[0] if len(found) == 1 else context.settings.source_workload
    if len(found) > 1:
        raise SeveralWorkloads(found)
    return found[0]
