"""Handing a prepared job to its provider, and settling a submission that was left open.

Belongs here: the order of intent, call and record of the call. Does not belong here: the
provider's format, the decision about a missing answer (`adoption.py`), the rows (`life.py`).

The intent, with the account that it goes to, is durable before the call. Whatever happens then,
the next worker finds either the answer or the open intent, and looks for the job before anything
is sent again.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial
from typing import Literal

from pipeline_assets.provider_jobs.adoption import (
    Absent,
    Adopt,
    Quarantine,
    Wait,
    decide_adoption,
)
from pipeline_assets.provider_jobs.life import (
    Submission,
    hold_version,
    write_accepted,
    write_calling,
    write_input,
    write_intent,
    write_later,
    write_not_created,
    write_quarantined,
    write_unanswered,
)
from pipeline_assets.recovery.holds import hold_of
from resources.clock import from_text, to_text
from resources.context import Context
from resources.ledger.alerts import raise_alert
from resources.ledger.intents import fingerprint, intents_of
from resources.ledger.jobs import JobRow, find_job, known_provider_jobs
from resources.ledger.leases import BackgroundHeartbeat, Lease, fenced
from resources.providers.port import (
    Ambiguous,
    BatchClient,
    Intent,
    Job,
    NewJob,
    ProviderError,
    Refused,
    Unavailable,
    Unreachable,
)

IDEMPOTENT = frozenset({"bedrock"})
"""Providers that answer a repeated create with the job that they already have."""

HOLDING = frozenset({"auth", "quota", "invalid_request", "unsupported"})
"""Refusals that the same call meets again until somebody acts: the version is held."""

REFUSALS = 20
"""After so many refusals in a row of any kind the version is held as well."""

INPUT_GONE = "input_not_found"
"""Code of a refusal by which a provider does not have the uploaded input (`port.BatchClient`)."""

HandedOver = Literal["submitted", "no_room", "held", "not_created", "open", "passed_by"]


def hand_over(
    context: Context, lease: Lease, job: JobRow, submission: Submission
) -> tuple[HandedOver, str]:
    """Submit a prepared job once.

    Returns:
        What came of it, and a sentence about it: `submitted`; `no_room` under the shared limits;
        `held`, the version's budget does not allow it and nothing was sent; `not_created`, tried
        later; `open`, to be settled by `settle`; `passed_by`, another worker was faster.

    Raises:
        ArtifactDamaged: the request file's bytes are not those that were frozen.
        LeaseLost: another worker has the batch.
    """
    context.artifacts.verify("request", job.request_artifact)
    client = submission.client
    account = fingerprint(context.ledger, client.account())
    again = job.provider in IDEMPOTENT and job.account_fingerprint == account
    intended = write_intent(
        context,
        lease,
        job,
        account,
        submission.capability,
        again=again,
        budget=submission.budget,
    )
    if intended is None:
        return _why_not(context, job)
    new = NewJob(
        intent=_intent(context, intended),
        request_file=context.artifacts.require("request", intended.request_artifact),
        size=intended.request_bytes,
        window_hours=submission.window_hours,
        on_uploaded=partial(_uploaded, context, lease, intended),
    )
    try:
        # An upload may take longer than the lease lasts.
        with BackgroundHeartbeat(context.ledger, lease):
            write_calling(context, lease, intended)
            created = client.create(new)
    except Ambiguous as error:
        write_unanswered(context, lease, intended)
        return "open", str(error)
    except (Unreachable, Unavailable) as error:
        write_not_created(context, lease, intended, "refused", str(error), error_class="transport")
        return "not_created", str(error)
    except Refused as error:
        _refused(context, lease, intended, error)
        return "not_created", str(error)
    write_accepted(context, lease, intended, created, submission, "the provider took the job")
    return "submitted", created.job_id


def _uploaded(context: Context, lease: Lease, job: JobRow, ref: str) -> None:
    """The input is there; the create call goes out next.

    Raises:
        LeaseLost: another worker has the batch; the provider is not called.
    """
    write_input(context, lease, job, ref)
    write_calling(context, lease, job)


def settle(context: Context, lease: Lease, job: JobRow, submission: Submission) -> str:
    """Look for the job of an open or quarantined submission and act on what is found.

    Returns:
        A sentence about what came of it.

    Raises:
        Unavailable, Unreachable, Refused: the provider cannot be asked; nothing was changed.
    """
    client = submission.client
    account = fingerprint(context.ledger, client.account())
    intent = _intent(context, job)
    found = client.find(intent)
    names = [entry.job_id for entry in (*found.jobs, *found.maybe)]
    with context.ledger.read() as connection:
        taken = known_provider_jobs(connection, job.provider, names)
    decision = decide_adoption(
        found,
        same_account=account == job.account_fingerprint,
        taken=taken,
        called_at=_called_at(context, job),
        now=context.ledger.clock(),
    )
    if isinstance(decision, Adopt):
        reason = f"the provider's job {decision.job.job_id} was found and is the batch's"
        write_accepted(context, lease, job, decision.job, submission, reason)
        _cancel_extra(context, lease, job, client, decision.extra)
        return reason
    if isinstance(decision, Absent):
        reason = "there is no job for it in the account that the intent went to"
        write_not_created(context, lease, job, "absent", reason, wait=timedelta())
        return reason
    if isinstance(decision, Wait):
        write_later(context, lease, job, to_text(decision.until))
        return decision.reason
    assert isinstance(decision, Quarantine)  # noqa: S101 - the decision has four kinds
    write_quarantined(context, lease, job, decision.reason, to_text(decision.recheck_at))
    return decision.reason


def _why_not(context: Context, job: JobRow) -> tuple[HandedOver, str]:
    now = find_job(context.ledger, job.id)
    with context.ledger.read() as connection:
        found = hold_of(connection, job.version_no)
    if now is not None and now.state == "prepared" and found is not None:
        return "held", f"the version is held: {found.reason}"
    if now is not None and now.state == "prepared":
        return "no_room", "the limits that all jobs of the account share leave no room for it now"
    return "passed_by", "another worker moved it"


def _called_at(context: Context, job: JobRow) -> datetime:
    newest = intents_of(context.ledger, job)[-1]
    return from_text(newest.called_at or newest.recorded_at)


def _intent(context: Context, job: JobRow) -> Intent:
    newest = intents_of(context.ledger, job)[-1]
    return Intent(
        intent_id=newest.intent_id,
        batch_key=job.batch_key,
        model=job.model,
        records=job.expected_records,
        recorded_at=from_text(newest.recorded_at),
        input_ref=job.input_ref,
    )


def _refused(context: Context, lease: Lease, job: JobRow, error: Refused) -> None:
    wait = None if error.retry_after is None else timedelta(seconds=error.retry_after)
    write_not_created(
        context,
        lease,
        job,
        "refused",
        f"refused: {error.failure}, {error.code or 'no code'}",
        error_class=error.failure,
        error_code=error.code,
        wait=wait,
        # One that was uploaded just now may not be known yet; an older one is gone.
        forget_input=error.code == INPUT_GONE and job.input_ref is not None,
    )
    refusals = sum(entry.outcome == "refused" for entry in intents_of(context.ledger, job))
    if error.failure in HOLDING or refusals >= REFUSALS:
        hold_version(
            context,
            job.version_no,
            f"{job.provider} refused {job.id}: {error.failure} ({error.code or 'no code'})",
            kind=error.failure if error.failure in ("auth", "quota") else "refused",
        )


def _cancel_extra(
    context: Context, lease: Lease, job: JobRow, client: BatchClient, extra: tuple[Job, ...]
) -> None:
    """More than one job of a batch: all but the first are ended, and an operator is told."""
    for loser in extra:
        try:
            client.cancel(loser.job_id)
            what = "was cancelled"
        except ProviderError as error:
            what = f"could not be cancelled ({type(error).__name__})"
        with fenced(context.ledger, lease) as connection:
            raise_alert(
                connection,
                "second_job",
                job.id,
                f"the provider has a second job {loser.job_id} for it, which {what}; check it "
                "with the provider",
                context.ledger.now(),
            )
