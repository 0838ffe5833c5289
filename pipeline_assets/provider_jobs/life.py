"""The commits in the life of a job: each function is one fenced transaction's writes.

Belongs here: what is written together. Does not belong here: calling a provider
(`hand_over.py`, `monitor.py`, `fetch.py`) and decisions (`adoption.py`, `polling.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import msgspec
from sqlalchemy import Connection

from pipeline_assets.costs.gate import BudgetGate
from pipeline_assets.operating import Operating
from pipeline_assets.provider_jobs.limits import value_of
from pipeline_assets.provider_jobs.polling import FIRST_DELAY, internal_deadline, next_delay
from pipeline_assets.recovery.holds import HoldKind, hold
from resources.clock import to_text
from resources.context import Context
from resources.ledger.alerts import clear_alerts, raise_alert
from resources.ledger.batches import records_of, reload_batch
from resources.ledger.intents import record_intent, settle_intent, stamp_intent
from resources.ledger.jobs import JobRow, move_job, reload_job, update_job
from resources.ledger.leases import Lease, fenced, push_expiry, require_time_left
from resources.ledger.moves import Cause, batch_chain, move_records
from resources.ledger.reservations import release_reservation, reserve
from resources.providers.capabilities import Capability
from resources.providers.port import BatchClient, Counts, Job, RemoteFile

STAGE = "submit"
_ID_LENGTH, _STATUS_LENGTH, _CODE_LENGTH = 256, 128, 128


class JobUnnameable(Exception):
    """A provider named a job in a way that the ledger cannot keep."""

    def __init__(self, provider: str, length: int) -> None:
        super().__init__(
            f"{provider} gave a job id of {length} characters; at most {_ID_LENGTH} are expected. "
            "The job exists: attach it by a shorter name with `tallybook batch attach`."
        )


@dataclass(frozen=True)
class Submission:
    """What a job is handed over with.

    Attributes:
        client: the provider's, for the account in use.
        capability: limits of provider, model, endpoint and mode, those of an operator included.
        settings: operating settings of the version.
        window_hours: how long the provider may take, where it lets one choose; 0 where unknown.
        budget: stands before the hand-over; None where no budget is set or nothing is handed over.
    """

    client: BatchClient
    capability: Capability
    settings: Operating
    window_hours: int
    budget: BudgetGate | None = None


class RemoteFiles(msgspec.Struct, frozen=True):
    """What the ledger keeps of a job's files: those to fetch, and all that may be deleted."""

    files: list[RemoteFile]
    refs: list[str]


def remote_files(row: JobRow) -> RemoteFiles | None:
    """The files of a job that has ended at its provider; None for one that has none there."""
    if row.remote_files is None:
        return None
    return msgspec.json.decode(row.remote_files, type=RemoteFiles)


def counts_text(counts: Counts | None) -> str | None:
    """Counts as the ledger keeps them."""
    return None if counts is None else msgspec.json.encode(counts).decode()


def write_intent(
    context: Context,
    lease: Lease,
    job: JobRow,
    account: str,
    capability: Capability,
    *,
    again: bool,
    budget: BudgetGate | None = None,
) -> JobRow | None:
    """Make the intent durable and take the job's share of shared limits.

    Args:
        context: the open resources.
        lease: the job's.
        job: prepared.
        account: fingerprint of where it goes.
        capability: for its limits, those of an operator included.
        again: use the number of the last submission (an idempotent create).
        budget: of the version; one that the job could pass holds the version.

    Returns:
        The job as it is now; None if it is not prepared any more, its version's budget does not
        allow it, or the limits leave no room.
    """
    with fenced(context.ledger, lease) as connection:
        now = reload_job(connection, job)
        if now.state != "prepared":
            return None
        if budget is not None and budget.hold_before(connection, now) is not None:
            return None
        fits = reserve(
            connection,
            context.ledger,
            now,
            account,
            max_tokens=value_of(capability.enqueued_tokens),
            max_jobs=value_of(capability.jobs_in_flight),
        )
        if not fits:
            return None
        number = (now.submissions or 0) + (0 if again and now.submissions else 1)
        intent_id = f"{now.batch_key}-{number}"
        cause = context.cause(f"intent {intent_id} recorded", STAGE)
        record_intent(connection, now, intent_id, account, cause.at)
        update_job(
            connection,
            lease,
            now,
            submissions=number,
            intent_id=intent_id,
            account_fingerprint=account,
            # What was uploaded under another account cannot be seen from this one.
            input_ref=now.input_ref if now.account_fingerprint == account else None,
            error_class=None,
            error_code=None,
            # Whoever comes after a crash looks for the job before anything is sent again.
            next_poll_at=cause.at,
        )
        move_job(connection, context.ledger, now, "prepared", "submitting", cause)
        return reload_job(connection, now)


def write_input(context: Context, lease: Lease, job: JobRow, ref: str) -> None:
    """The input is uploaded; known before the job is, so that it is never uploaded twice."""
    with fenced(context.ledger, lease) as connection:
        update_job(connection, lease, job, input_ref=ref)


def write_calling(context: Context, lease: Lease, job: JobRow) -> None:
    """The create call goes out now, under a lease with all of its time left.

    A worker may have been frozen since the intent. Whoever takes the batch over after it waits for
    the lease to run out, and counts the time in which a job may not be listed from this moment:
    by then a call that went out has timed out (`registry.CALL_SECONDS`), and its job is listed
    (`adoption.GRACE`). So absence is never taken for what was only late.

    Raises:
        LeaseLost: another worker has the batch, or may have; the provider is not to be called.
    """
    with fenced(context.ledger, lease) as connection:
        until = push_expiry(connection, context.ledger, lease)
        stamp_intent(connection, job.intent_id, context.ledger.now())
    require_time_left(context.ledger, lease, until)


def write_unanswered(context: Context, lease: Lease, job: JobRow) -> None:
    """The create call ended without an answer: its job is looked for, a little later."""
    later = context.ledger.clock() + next_delay(0, context.rng)
    with fenced(context.ledger, lease) as connection:
        update_job(connection, lease, job, next_poll_at=to_text(later))
        stamp_intent(connection, job.intent_id, context.ledger.now())


def write_accepted(
    context: Context, lease: Lease, job: JobRow, found: Job, submission: Submission, reason: str
) -> None:
    """The provider has the job: batch and records are submitted.

    Raises:
        JobUnnameable: its id is too long.
    """
    if len(found.job_id) > _ID_LENGTH:
        raise JobUnnameable(job.provider, len(found.job_id))
    with fenced(context.ledger, lease) as connection:
        now = reload_job(connection, job)
        if now.state not in ("submitting", "quarantined"):
            return
        cause = context.cause(reason, STAGE)
        moment = context.ledger.clock()
        hours = value_of(submission.capability.deadline_hours) or submission.window_hours
        deadline = found.expires_at or (
            (found.created_at or moment) + timedelta(hours=hours) if hours else None
        )
        inner = internal_deadline(deadline, moment, submission.settings.deadline_lead)
        update_job(
            connection,
            lease,
            now,
            provider_job_id=found.job_id,
            raw_status=found.raw_status[:_STATUS_LENGTH],
            last_counts=counts_text(found.counts),
            submitted_at=cause.at,
            changed_at=cause.at,
            provider_deadline_at=None if deadline is None else to_text(deadline),
            internal_deadline_at=None if inner is None else to_text(inner),
            next_poll_at=to_text(moment + FIRST_DELAY * context.rng.random()),
            polls=0,
            poll_failures=0,
            error_class=None,
            error_code=None,
        )
        settle_intent(connection, now.intent_id, "accepted", cause.at, reason, job_id=found.job_id)
        clear_alerts(connection, now.id, cause.at)
        move_job(connection, context.ledger, now, now.state, "submitted", cause)
        if now.machine == "batch":
            _move_members(connection, context, now, "prepared", "submitted", cause)


def write_not_created(
    context: Context,
    lease: Lease,
    job: JobRow,
    outcome: str,
    reason: str,
    *,
    error_class: str | None = None,
    error_code: str | None = None,
    wait: timedelta | None = None,
    forget_input: bool = False,
) -> None:
    """There is no job: it is prepared again, and not submitted before `wait` is over.

    Without a `wait` it is a draw that grows with the number of submissions.
    """
    with fenced(context.ledger, lease) as connection:
        now = reload_job(connection, job)
        if now.state not in ("submitting", "quarantined"):
            return
        cause = context.cause(reason, STAGE)
        if wait is None:
            wait = next_delay(now.submissions or 1, context.rng)
        later = context.ledger.clock() + wait
        settle_intent(connection, now.intent_id, outcome, cause.at, reason)
        release_reservation(connection, now, cause.at)
        changes: dict[str, Any] = {"input_ref": None} if forget_input else {}
        update_job(
            connection,
            lease,
            now,
            next_poll_at=to_text(later),
            error_class=error_class,
            error_code=None if error_code is None else error_code[:_CODE_LENGTH],
            **changes,
        )
        clear_alerts(connection, now.id, cause.at)
        move_job(connection, context.ledger, now, now.state, "prepared", cause)


def write_quarantined(
    context: Context, lease: Lease, job: JobRow, reason: str, recheck_at: str
) -> None:
    """It is not known whether the provider has the job; nothing is sent until that is settled."""
    with fenced(context.ledger, lease) as connection:
        now = reload_job(connection, job)
        if now.state not in ("submitting", "quarantined"):
            return
        cause = context.cause(reason, STAGE)
        update_job(connection, lease, now, next_poll_at=recheck_at)
        settle_intent(connection, now.intent_id, "quarantined", cause.at, reason)
        raise_alert(connection, "quarantined", now.id, reason, cause.at)
        if now.state == "submitting":
            move_job(connection, context.ledger, now, "submitting", "quarantined", cause)


def write_answering(context: Context, lease: Lease, job: JobRow, account: str, stage: str) -> None:
    """Intent, submission and start of a job that is answered by online calls, before the first."""
    with fenced(context.ledger, lease) as connection:
        now = reload_job(connection, job)
        if now.state != "prepared":
            return
        cause = context.cause(f"answered by {now.provider} online", stage)
        update_job(
            connection,
            lease,
            now,
            intent_id=now.batch_key,
            provider_job_id=f"online-{now.batch_key}",
            account_fingerprint=account,
            submitted_at=cause.at,
            raw_status="answering",
        )
        for from_state, to_state in (
            ("prepared", "submitting"),
            ("submitting", "submitted"),
            ("submitted", "running"),
        ):
            move_job(connection, context.ledger, now, from_state, to_state, cause)
        if now.machine == "batch":
            _move_members(connection, context, now, "prepared", "submitted", cause)


def write_later(context: Context, lease: Lease, job: JobRow, next_poll_at: str) -> None:
    """Nothing is known yet; look again then."""
    with fenced(context.ledger, lease) as connection:
        update_job(connection, lease, job, next_poll_at=next_poll_at)


def write_ended(context: Context, lease: Lease, job: JobRow, found: Job) -> None:
    """The job has ended at its provider: its results can be fetched, if it left any."""
    with fenced(context.ledger, lease) as connection:
        now = reload_job(connection, job)
        if now.state not in ("submitted", "running"):
            return
        cause = context.cause(f"the provider says {found.raw_status[:_STATUS_LENGTH]!r}", "monitor")
        files = RemoteFiles(list(found.files), list(found.remote))
        update_job(
            connection,
            lease,
            now,
            provider_outcome=found.outcome or "completed",
            raw_status=found.raw_status[:_STATUS_LENGTH],
            last_counts=counts_text(found.counts),
            changed_at=cause.at,
            next_poll_at=cause.at,
            polls=now.polls + 1,
            poll_failures=0,
            remote_files=msgspec.json.encode(files).decode(),
            error_class=found.error_class or now.error_class,
            error_code=(found.error_code or now.error_code or "")[:_CODE_LENGTH] or None,
        )
        release_reservation(connection, now, cause.at)
        clear_alerts(connection, now.id, cause.at)
        if found.outcome == "provider_failed":
            raise_alert(
                connection,
                "job_failed",
                now.id,
                f"the provider failed the job as a whole ({found.error_code or 'no code'})",
                cause.at,
            )
        move_job(connection, context.ledger, now, now.state, "results_available", cause)


def hold_version(
    context: Context, version_no: int, reason: str, kind: HoldKind = "refused"
) -> None:
    """Stop new submissions of a version; what is under way goes on. A held one stays as it is."""
    hold(context, version_no, kind, reason)


def _move_members(
    connection: Connection,
    context: Context,
    job: JobRow,
    from_state: str,
    to_state: str,
    cause: Cause,
) -> None:
    members = records_of(connection, context.ledger, reload_batch(connection, job.no))
    move_records(
        connection,
        context.ledger.dialect,
        members,
        from_state,
        to_state,
        cause,
        batch_chain(job.no),
    )


def discard_records(connection: Connection, context: Context, job: JobRow, cause: Cause) -> None:
    """An operator gave a batch up: its records are cancelled."""
    if job.machine == "batch":
        _move_members(connection, context, job, "prepared", "cancelled", cause)
