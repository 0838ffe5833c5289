"""Groups of an online batch: which slices are answered, and which may have been paid twice.

Belongs here: their rows. Does not belong here: calling a provider (`submit`).
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, case, func, insert, select, update

from resources.ledger.engine import Ledger
from resources.ledger.schema import online_groups


@dataclass(frozen=True)
class OnlineCosts:
    """What the online calls of a batch came to.

    Attributes:
        calls: calls made in groups that are finished.
        possibly_paid: calls that may have been paid though their answer was never stored:
            ambiguous ones, and all of a group that was started and had to be started again.
        unfinished: groups that were started and are not stored yet.
    """

    calls: int
    possibly_paid: int
    unfinished: int


def finished_groups(ledger: Ledger, batch_no: int) -> set[int]:
    """The groups of a batch whose answers are stored."""
    with ledger.read() as connection:
        rows = connection.execute(
            select(online_groups.c.group_no).where(
                online_groups.c.batch_no == batch_no, online_groups.c.finished_at.is_not(None)
            )
        )
        return {int(row[0]) for row in rows}


def start_group(
    connection: Connection, batch_no: int, group_no: int, first: int, records: int, at: str
) -> None:
    """Write that a group's calls begin.

    Where an earlier start neither finished nor was kept, it broke off between its calls: each of
    them may have been paid.
    """
    table = online_groups.c
    broke_off = case(
        (table.kept_at.is_(None) | (table.kept_at < table.started_at), table.records), else_=0
    )
    again = connection.execute(
        update(online_groups)
        .where(table.batch_no == batch_no, table.group_no == group_no)
        .values(
            starts=table.starts + 1,
            started_at=at,
            possibly_paid=table.possibly_paid + broke_off,
        )
    ).rowcount
    if not again:
        connection.execute(
            insert(online_groups).values(
                batch_no=batch_no,
                group_no=group_no,
                first_index=first,
                records=records,
                starts=1,
                started_at=at,
                calls=0,
                possibly_paid=0,
            )
        )


def end_group(
    connection: Connection,
    batch_no: int,
    group_no: int,
    calls: int,
    possibly_paid: int,
    at: str,
    *,
    whole: bool,
) -> None:
    """Write that a group's answers so far are stored; `whole` if none is missing."""
    table = online_groups.c
    connection.execute(
        update(online_groups)
        .where(table.batch_no == batch_no, table.group_no == group_no)
        .values(
            kept_at=at,
            finished_at=at if whole else None,
            calls=table.calls + calls,
            possibly_paid=table.possibly_paid + possibly_paid,
        )
    )


def online_costs(ledger: Ledger, batch_no: int) -> OnlineCosts:
    """What the calls of a batch came to so far."""
    table = online_groups.c
    with ledger.read() as connection:
        calls, paid, total, finished = connection.execute(
            select(
                func.coalesce(func.sum(table.calls), 0),
                func.coalesce(func.sum(table.possibly_paid), 0),
                func.count(),
                func.count(table.finished_at),
            ).where(table.batch_no == batch_no)
        ).one()
    return OnlineCosts(int(calls), int(paid), int(total) - int(finished))
