"""What an operator may do to a job: attach, discard, cancel. Each with a reason on record.

Belongs here: the checks and the writes. Does not belong here: the command line, and what happens
to jobs by themselves (`hand_over.py`, `monitor.py`).
"""

from __future__ import annotations

from pipeline_assets.operating import operating
from pipeline_assets.provider_jobs.life import Submission, discard_records, write_accepted
from pipeline_assets.provider_jobs.limits import capability_of
from resources.context import Context
from resources.ledger.alerts import clear_alerts
from resources.ledger.intents import settle_intent
from resources.ledger.jobs import (
    JobRow,
    find_job,
    known_provider_jobs,
    move_job,
    reload_job,
    update_job,
)
from resources.ledger.leases import Lease, fenced, held
from resources.ledger.moves import Cause
from resources.ledger.reservations import release_reservation
from resources.providers.port import BatchClient

OPERATOR_CANCELLED = "operator_cancelled"
"""Error class of a job that an operator ended: its unanswered records are wanted by nobody."""
TAKEN_STATES = ("submitted", "running", "results_available")
LOST = "lost"
"""Outcome of a job that an operator gave up though the provider had taken it."""


class UnknownJob(LookupError):
    """A name that no batch, canary or provider job of this ledger has."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"there is no batch, canary or provider job {name!r} here; `tallybook batch list` "
            "shows their names"
        )


class NotNow(Exception):
    """A job is in a state that an operator's wish does not fit."""

    def __init__(self, job: JobRow, wish: str, wanted: str) -> None:
        super().__init__(f"{job.id} is {job.state} and cannot be {wish}: expected {wanted}")


class JobTaken(Exception):
    """A provider's job already belongs to something in the ledger."""

    def __init__(self, job_id: str) -> None:
        super().__init__(
            f"the provider's job {job_id!r} already belongs to another batch; a job is never "
            "counted twice. Check the id with the provider."
        )


def require_job(context: Context, name: str) -> JobRow:
    """The job of a name.

    Raises:
        UnknownJob: there is none.
    """
    job = find_job(context.ledger, name)
    if job is None:
        raise UnknownJob(name)
    return job


def attach(
    context: Context, job: JobRow, job_id: str, client: BatchClient, reason: str, actor: str
) -> None:
    """Say that the provider's job is this batch's.

    Raises:
        NotNow: it is not in doubt whether the provider has it.
        JobTaken: the job belongs to something else.
        JobMissing: the provider does not know the job under this account.
    """
    if job.state not in ("submitting", "quarantined"):
        raise NotNow(job, "attached", "one that is quarantined or submitting")
    with context.ledger.read() as connection:
        if known_provider_jobs(connection, job.provider, [job_id]):
            raise JobTaken(job_id)
    found = client.retrieve(job_id)
    settings = operating(context.ledger, job.version_no)
    submission = Submission(client, capability_of(job), settings, window_hours=0)
    with held(context.ledger, job.lease_name, context.worker) as lease:
        write_accepted(context, lease, job, found, submission, f"attached by {actor}: {reason}")


def discard(context: Context, job: JobRow, reason: str, actor: str) -> str:
    """Give a job up. What the provider may still do with it is nobody's business here.

    A batch that was never taken is cancelled with its records. One that the provider took counts
    as collected with nothing: every record without an answer is missing, and can be retried.

    Returns:
        The new state.

    Raises:
        NotNow: it is complete, or its results are being reconciled.
    """
    with (
        held(context.ledger, job.lease_name, context.worker) as lease,
        fenced(context.ledger, lease) as connection,
    ):
        now = reload_job(connection, job)
        cause = Cause(f"discarded: {reason}", actor, context.ledger.now(), "batch discard")
        if now.state in ("prepared", "quarantined"):
            if now.state == "quarantined":
                settle_intent(connection, now.intent_id, "discarded", cause.at, reason)
            discard_records(connection, context, now, cause)
            move_job(connection, context.ledger, now, now.state, "cancelled", cause)
            target = "cancelled"
        elif now.state in TAKEN_STATES and now.mode == "batch":
            update_job(
                connection,
                lease,
                now,
                provider_outcome=LOST,
                remote_files=None,
                next_poll_at=cause.at,
            )
            if now.state != "results_available":
                move_job(connection, context.ledger, now, now.state, "results_available", cause)
            target = "results_available"
        else:
            raise NotNow(now, "discarded", "one that is not complete")
        release_reservation(connection, now, cause.at)
        clear_alerts(connection, now.id, cause.at)
    return target


def cancel(context: Context, job: JobRow, client: BatchClient, reason: str, actor: str) -> None:
    """Ask the provider to end a job; finished rows are collected, the others are cancelled.

    Raises:
        NotNow: the provider does not have it, or is done with it.
    """
    if job.state not in ("submitted", "running") or job.provider_job_id is None:
        raise NotNow(job, "cancelled", "one that the provider is at; discard one that it never had")
    with held(context.ledger, job.lease_name, context.worker) as lease:
        client.cancel(job.provider_job_id)
        _write_cancelled(context, lease, job, reason, actor)


def _write_cancelled(context: Context, lease: Lease, job: JobRow, reason: str, actor: str) -> None:
    with fenced(context.ledger, lease) as connection:
        now = reload_job(connection, job)
        at = context.ledger.now()
        cause = Cause(f"cancelled by {actor}: {reason}", actor, at, "batch cancel")
        update_job(
            connection,
            lease,
            now,
            cancel_requested_at=at,
            error_class=OPERATOR_CANCELLED,
            error_code=None,
            next_poll_at=at,
        )
        if now.state == "submitted":
            move_job(connection, context.ledger, now, "submitted", "running", cause)
