"""What a restored ledger must not take for granted: that nothing happened since the backup.

Belongs here: expired leases, held versions, and jobs that may have been submitted since. Does not
belong here: bringing the rows back (`restore.py`), and looking for a job (`provider_jobs`).

Two ledgers with one id must not both submit, so every version is held until somebody says that the
earlier one works no more. And a job that was only prepared when the backup was made may be at its
provider by now: it counts as submitted without an answer, so whoever looks at it next looks for it
in the provider's account before anything is sent again.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, select, text, update

from pipeline_assets.recovery.holds import hold_within
from resources.context import Context
from resources.ledger.intents import record_intent, stamp_intent
from resources.ledger.jobs import UNDECIDED, JobRow, find_jobs, move_job, reload_job, update_job
from resources.ledger.leases import Lease, fenced, held
from resources.ledger.reservations import reserve
from resources.ledger.schema import leases, processing_versions

STAGE = "restore"

# The account that a provider's jobs went to last: what was submitted since went there too.
_ACCOUNT = text(
    "SELECT i.account_fingerprint FROM intents i "
    "LEFT JOIN batches b ON i.machine = 'batch' AND b.batch_no = i.subject_no "
    "LEFT JOIN canaries c ON i.machine = 'canary' AND c.canary_no = i.subject_no "
    "WHERE COALESCE(b.provider, c.provider) = :provider ORDER BY i.intent_no DESC LIMIT 1"
)


@dataclass(frozen=True)
class Doubts:
    """Jobs of a restored ledger that may be further on than it knows.

    Attributes:
        looked_for: they will be looked for at their provider before anything is sent.
        unlooked: they cannot be: no job of their provider was ever submitted from this ledger, so
            it is not known which account to look in.
        online: batches that are answered call by call: what was answered since is paid again.
    """

    looked_for: tuple[str, ...]
    unlooked: tuple[str, ...]
    online: tuple[str, ...]


def expire_leases(connection: Connection, at: str) -> int:
    """Let every lease of the earlier machine's workers run out; returns how many were held."""
    return connection.execute(
        update(leases).where(leases.c.expires_at > at).values(expires_at=at)
    ).rowcount


def hold_versions(connection: Connection, context: Context, reason: str) -> tuple[str, ...]:
    """Hold every version that would submit; the keys of those that are held by this."""
    rows = connection.execute(
        select(processing_versions.c.version_no, processing_versions.c.key).order_by(
            processing_versions.c.version_no
        )
    ).all()
    return tuple(
        row.key
        for row in rows
        if hold_within(connection, context, row.version_no, "operator", reason)
    )


def doubt_jobs(context: Context, made_at: str) -> Doubts:
    """Let every job that may have been submitted since the backup be looked for first.

    Args:
        context: the restored place.
        made_at: the moment of the backup: jobs since then are not older.
    """
    looked_for, unlooked, online = [], [], []
    for job in find_jobs(context.ledger, ("prepared", *UNDECIDED, "submitted", "running")):
        if job.mode == "online":
            online.append(job.id)
        elif job.mode == "batch" and job.state in ("prepared", *UNDECIDED):
            account = _account(context, job)
            (unlooked if account is None else looked_for).append(job.id)
            if account is not None:
                _doubt(context, job, account, made_at)
    return Doubts(tuple(looked_for), tuple(unlooked), tuple(online))


def _account(context: Context, job: JobRow) -> str | None:
    if job.state in UNDECIDED:
        return job.account_fingerprint
    with context.ledger.read() as connection:
        found = connection.execute(_ACCOUNT, {"provider": job.provider}).scalar()
    return None if found is None else str(found)


def _doubt(context: Context, job: JobRow, account: str, made_at: str) -> None:
    with (
        held(context.ledger, job.lease_name, context.worker) as lease,
        fenced(context.ledger, lease) as connection,
    ):
        if job.state == "prepared":
            _assume_intent(connection, context, lease, job, account, made_at)
        now = context.ledger.now()
        job = reload_job(connection, job)
        # The earlier machine's last call may have been a moment ago: its job may not be listed yet.
        stamp_intent(connection, job.intent_id, now)
        update_job(connection, lease, job, next_poll_at=now)


def _assume_intent(
    connection: Connection, context: Context, lease: Lease, job: JobRow, account: str, made_at: str
) -> None:
    """The intent that was recorded since, if one was; it went out after the backup was made."""
    reserve(connection, context.ledger, job, account, max_tokens=None, max_jobs=None)
    number = (job.submissions or 0) + 1
    intent_id = f"{job.batch_key}-{number}"
    record_intent(connection, job, intent_id, account, made_at)
    update_job(
        connection,
        lease,
        job,
        submissions=number,
        intent_id=intent_id,
        account_fingerprint=account,
        input_ref=job.input_ref if job.account_fingerprint == account else None,
        error_class=None,
        error_code=None,
    )
    cause = context.cause("it may have been submitted since the backup was made", STAGE)
    move_job(connection, context.ledger, job, "prepared", "submitting", cause)
