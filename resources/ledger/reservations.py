"""Reservations: what is taken of limits that all jobs of an account share.

Belongs here: taking, giving back and counting, safe between workers. Does not belong here: how
large a limit is (`resources/providers/capabilities.py`, operating settings).
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, delete, func, insert, select, update

from resources.ledger.engine import Ledger
from resources.ledger.jobs import JobRow
from resources.ledger.schema import reservations


@dataclass(frozen=True)
class Taken:
    """What open reservations of a pool add up to."""

    tokens: int
    jobs: int


def pool_of(job: JobRow, account: str) -> str:
    """The pool that a job draws on: limits hold for a provider, account and model."""
    return f"{job.provider}:{account}:{job.model}"


def reserve(
    connection: Connection,
    ledger: Ledger,
    job: JobRow,
    account: str,
    *,
    max_tokens: int | None,
    max_jobs: int | None,
) -> bool:
    """Take the job's tokens and its slot, if both fit; a job alone in its pool always fits.

    A job that is larger than the whole limit was let through when it was prepared; the provider
    decides then.
    """
    pool = pool_of(job, account)
    ledger.dialect.lock_chain(connection, f"pool:{pool}")
    connection.execute(
        delete(reservations).where(
            reservations.c.machine == job.machine, reservations.c.subject_no == job.no
        )
    )
    taken = _taken(connection, pool)
    tokens = job.input_tokens or 0
    if taken.jobs and (
        (max_tokens is not None and taken.tokens + tokens > max_tokens)
        or (max_jobs is not None and taken.jobs >= max_jobs)
    ):
        return False
    connection.execute(
        insert(reservations).values(
            machine=job.machine,
            subject_no=job.no,
            pool=pool,
            tokens=tokens,
            reserved_at=ledger.now(),
        )
    )
    return True


def release_reservation(connection: Connection, job: JobRow, at: str) -> None:
    """Give back what a job took; it is a no-op where nothing is taken."""
    connection.execute(
        update(reservations)
        .where(
            reservations.c.machine == job.machine,
            reservations.c.subject_no == job.no,
            reservations.c.released_at.is_(None),
        )
        .values(released_at=at)
    )


def taken_of(ledger: Ledger, pool: str) -> Taken:
    """What is taken of a pool now."""
    with ledger.read() as connection:
        return _taken(connection, pool)


def _taken(connection: Connection, pool: str) -> Taken:
    tokens, jobs = connection.execute(
        select(func.coalesce(func.sum(reservations.c.tokens), 0), func.count()).where(
            reservations.c.pool == pool, reservations.c.released_at.is_(None)
        )
    ).one()
    return Taken(int(tokens), int(jobs))
