"""Jobs at providers: the part of a batch or a canary that lives outside, under one shape.

Belongs here: finding such jobs, their columns and their moves. Does not belong here: records of
a batch (`batches.py`), answers of a canary (`canaries.py`), and every decision
(`pipeline_assets/provider_jobs`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal

from sqlalchemy import Connection, Table, select, update

from resources.ledger.engine import Ledger
from resources.ledger.leases import Lease
from resources.ledger.moves import Cause, MoveReceipt, move_batch, move_canary
from resources.ledger.schema import batches, canaries

JobMachine = Literal["batch", "canary"]

OPEN_AT_PROVIDER = ("submitted", "running")
"""The provider has the job and is not done."""
UNDECIDED = ("submitting", "quarantined")
"""It is not settled whether the provider has the job."""

_TABLES: dict[JobMachine, Table] = {"batch": batches, "canary": canaries}
_NAMES: dict[JobMachine, tuple[str, str]] = {
    "batch": ("batch_no", "batch_id"),
    "canary": ("canary_no", "canary_id"),
}


@dataclass(frozen=True)
class JobRow:
    """A batch or canary as the life of its job needs it; times are the ledger's text."""

    machine: JobMachine
    no: int
    id: str
    batch_key: str
    version_no: int
    state: str
    provider: str
    mode: str
    model: str
    endpoint: str | None
    account_fingerprint: str | None
    request_artifact: str
    request_bytes: int
    expected_records: int
    input_tokens: int | None
    input_ref: str | None
    submissions: int | None
    intent_id: str | None
    provider_job_id: str | None
    provider_outcome: str | None
    raw_status: str | None
    submitted_at: str | None
    provider_deadline_at: str | None
    internal_deadline_at: str | None
    next_poll_at: str | None
    polls: int
    poll_failures: int | None
    last_counts: str | None
    changed_at: str | None
    cancel_requested_at: str | None
    remote_files: str | None
    remote_deleted_at: str | None
    error_class: str | None
    error_code: str | None

    @property
    def lease_name(self) -> str:
        """The lease that every step on this job commits under."""
        return f"{self.machine}:{self.id}"


def find_jobs(
    ledger: Ledger,
    states: Sequence[str],
    *,
    version_no: int | None = None,
    machine: JobMachine | None = None,
) -> list[JobRow]:
    """Jobs in one of the states, oldest first, canaries before batches."""
    with ledger.read() as connection:
        return [
            job
            for kind in _TABLES
            if machine in (None, kind)
            for job in _find(connection, kind, states, version_no)
        ]


def due_jobs(ledger: Ledger, at: str, limit: int) -> list[JobRow]:
    """Jobs that are to be looked at by `at`, the longest due first; embedded ones never are."""
    with ledger.read() as connection:
        due = [job for kind in _TABLES for job in _due(connection, kind, at, limit)]
    return sorted(due, key=lambda job: (job.next_poll_at or "", job.machine, job.no))[:limit]


def find_job(ledger: Ledger, name: str) -> JobRow | None:
    """The job of a batch id, canary id or provider job id."""
    with ledger.read() as connection:
        for kind, table in _TABLES.items():
            _, text_id = _NAMES[kind]
            row = connection.execute(
                select(table).where((table.c[text_id] == name) | (table.c.provider_job_id == name))
            ).first()
            if row is not None:
                return _job(kind, row)
    return None


def job_of_batch(connection: Connection, batch_no: int) -> JobRow:
    """The job of a batch, inside a transaction."""
    row = connection.execute(select(batches).where(batches.c.batch_no == batch_no)).one()
    return _job("batch", row)


def reload_job(connection: Connection, job: JobRow) -> JobRow:
    """The job as it is now, inside a transaction."""
    table = _TABLES[job.machine]
    row = connection.execute(select(table).where(_key(job) == job.no)).one()
    return _job(job.machine, row)


def update_job(connection: Connection, lease: Lease, job: JobRow, **values: object) -> None:
    """Write columns of a job's row, with the lease that they are written under."""
    connection.execute(
        update(_TABLES[job.machine])
        .where(_key(job) == job.no)
        .values(**values, lease_owner=lease.owner, fencing_token=lease.token)
    )


def move_job(
    connection: Connection,
    ledger: Ledger,
    job: JobRow,
    from_state: str,
    to_state: str,
    cause: Cause,
) -> MoveReceipt:
    """Move a job's batch or canary.

    Raises:
        IllegalTransition: the table has no such move.
        StateChanged: it is in another state.
    """
    mover = move_batch if job.machine == "batch" else move_canary
    return mover(connection, ledger.dialect, job.no, from_state, to_state, cause)


def known_provider_jobs(connection: Connection, provider: str, job_ids: Sequence[str]) -> set[str]:
    """Those of the ids that some batch or canary of the provider already has."""
    found: set[str] = set()
    for table in _TABLES.values():
        rows = connection.execute(
            select(table.c.provider_job_id).where(
                table.c.provider == provider, table.c.provider_job_id.in_(list(job_ids))
            )
        )
        found.update(str(row[0]) for row in rows)
    return found


def was_submitted(ledger: Ledger, version_no: int) -> bool:
    """Was any job of the version ever handed over?"""
    with ledger.read() as connection:
        return any(
            connection.execute(
                select(table.c.version_no)
                .where(table.c.version_no == version_no, table.c.submitted_at.is_not(None))
                .limit(1)
            ).first()
            is not None
            for table in _TABLES.values()
        )


def _find(
    connection: Connection, kind: JobMachine, states: Sequence[str], version_no: int | None
) -> list[JobRow]:
    table = _TABLES[kind]
    wanted = select(table).where(table.c.state.in_(states)).order_by(table.c[_NAMES[kind][0]])
    if version_no is not None:
        wanted = wanted.where(table.c.version_no == version_no)
    return [_job(kind, row) for row in connection.execute(wanted)]


def _due(connection: Connection, kind: JobMachine, at: str, limit: int) -> list[JobRow]:
    table = _TABLES[kind]
    rows = connection.execute(
        select(table)
        .where(
            table.c.state.in_((*OPEN_AT_PROVIDER, *UNDECIDED)),
            table.c.mode == "batch",
            table.c.next_poll_at <= at,
        )
        .order_by(table.c.next_poll_at)
        .limit(limit)
    )
    return [_job(kind, row) for row in rows]


def _key(job: JobRow) -> Any:
    return _TABLES[job.machine].c[_NAMES[job.machine][0]]


def _job(kind: JobMachine, row: object) -> JobRow:
    number, text_id = _NAMES[kind]
    given = {"machine": kind, "no": getattr(row, number), "id": getattr(row, text_id)}
    rest = {
        field.name: getattr(row, field.name) for field in fields(JobRow) if field.name not in given
    }
    return JobRow(**given, **rest)
