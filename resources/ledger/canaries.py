"""Canaries in the ledger: one row each, found by the combination that they vouch for.

Belongs here: making and finding them, and storing a verdict. Does not belong here: the made-up
documents and the verdict itself (`pipeline_assets/canary`), the job's life (`jobs.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from sqlalchemy import Connection, func, insert, select, update

from resources.ledger.engine import Ledger
from resources.ledger.leases import Lease
from resources.ledger.moves import Cause, move_canary
from resources.ledger.schema import canaries
from resources.ledger.transitions import START


@dataclass(frozen=True)
class CanaryRow:
    """A canary as it is shown and as gates decide on it."""

    canary_no: int
    canary_id: str
    combination: str
    version_no: int
    provider: str
    mode: str
    model: str
    endpoint: str | None
    sdk_version: str
    state: str
    provider_job_id: str | None
    raw_status: str | None
    expected_records: int
    prepared_at: str
    results: str | None
    findings: str | None
    judged_at: str | None
    expires_at: str | None


@dataclass(frozen=True)
class CanaryPlan:
    """A canary that is about to be stored."""

    batch_key: str
    combination: str
    version_no: int
    provider: str
    mode: str
    model: str
    endpoint: str
    sdk_version: str
    request_artifact: str
    request_bytes: int
    records: int
    input_tokens: int


def count_canaries(ledger: Ledger, combination: str) -> int:
    """How many canaries a combination ever had."""
    with ledger.read() as connection:
        return connection.execute(
            select(func.count()).where(canaries.c.combination == combination)
        ).scalar_one()


def store_canary(
    connection: Connection, ledger: Ledger, plan: CanaryPlan, number: int, cause: Cause
) -> int:
    """Store a prepared canary; its number is returned.

    Raises:
        IntegrityError: another worker stored the canary of this number first.
    """
    key = connection.execute(
        insert(canaries).values(
            canary_id=f"canary-{plan.combination[:12]}-{number}",
            batch_key=plan.batch_key,
            combination=plan.combination,
            version_no=plan.version_no,
            provider=plan.provider,
            mode=plan.mode,
            model=plan.model,
            endpoint=plan.endpoint,
            sdk_version=plan.sdk_version,
            request_artifact=plan.request_artifact,
            request_bytes=plan.request_bytes,
            expected_records=plan.records,
            input_tokens=plan.input_tokens,
            state="prepared",
            polls=0,
            submissions=0,
            prepared_at=cause.at,
        )
    ).inserted_primary_key
    assert key is not None  # noqa: S101 - a single insert returns its key
    move_canary(connection, ledger.dialect, int(key[0]), START, "prepared", cause)
    return int(key[0])


def newest_canary(ledger: Ledger, combination: str) -> CanaryRow | None:
    """The newest canary of a combination, or None."""
    with ledger.read() as connection:
        row = connection.execute(
            select(canaries)
            .where(canaries.c.combination == combination)
            .order_by(canaries.c.canary_no.desc())
            .limit(1)
        ).first()
    return None if row is None else _canary(row)


def load_canary(ledger: Ledger, canary_no: int) -> CanaryRow:
    """The canary of a number."""
    with ledger.read() as connection:
        return _canary(
            connection.execute(select(canaries).where(canaries.c.canary_no == canary_no)).one()
        )


def list_canaries(ledger: Ledger) -> list[CanaryRow]:
    """Every canary, newest first."""
    with ledger.read() as connection:
        rows = connection.execute(select(canaries).order_by(canaries.c.canary_no.desc()))
        return [_canary(row) for row in rows]


def store_verdict(connection: Connection, lease: Lease, canary_no: int, **values: object) -> None:
    """Write what a canary came to: results, findings, judged_at, expires_at."""
    connection.execute(
        update(canaries)
        .where(canaries.c.canary_no == canary_no)
        .values(**values, lease_owner=lease.owner, fencing_token=lease.token)
    )


def _canary(row: object) -> CanaryRow:
    return CanaryRow(**{field.name: getattr(row, field.name) for field in fields(CanaryRow)})


def count_failed(connection: Connection, version_no: int) -> int:
    """Canaries of a version that did not come back right and that nobody has dropped."""
    return connection.execute(
        select(func.count())
        .select_from(canaries)
        .where(canaries.c.version_no == version_no, canaries.c.state == "failed")
    ).scalar_one()
