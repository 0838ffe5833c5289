"""Handing a version's batches to their provider, each by its own mode.

Belongs here: which batches, in which order, and what has to be true first. Does not belong here:
the life of a job at a provider (`provider_jobs`), online calls (`answer_online.py`), the built-in
provider (`answer_embedded.py`), canaries (`canary`), what holds a version (`recovery`), and what
becomes of results (`collect`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta

from pipeline_assets.canary.run import pass_canary
from pipeline_assets.costs.gate import BudgetGate, open_gate
from pipeline_assets.operating import Operating, operating
from pipeline_assets.provider_jobs.clients import LazyClient, job_client
from pipeline_assets.provider_jobs.hand_over import hand_over
from pipeline_assets.provider_jobs.life import Submission, write_later
from pipeline_assets.provider_jobs.limits import capability_of, with_operating
from pipeline_assets.recovery.backpressure import look_at_backpressure
from pipeline_assets.recovery.breaker import look_at_breaker, on_probation
from pipeline_assets.recovery.holds import Hold, hold_of
from pipeline_assets.recovery.releases import look_at_hold
from pipeline_assets.submit.answer_embedded import answer_embedded
from pipeline_assets.submit.answer_online import answer_online
from pipeline_assets.versions import OpenVersion
from resources.clock import to_text
from resources.context import Context
from resources.ledger.jobs import JobRow, find_jobs, reload_job, was_submitted
from resources.ledger.leases import Lease, LeaseHeld, held
from resources.ledger.versions import state_of
from resources.providers.registry import online_client

NO_ROOM_PAUSE = timedelta(minutes=1)
"""A batch that found no room under a shared limit is looked at again after so long."""


@dataclass
class SubmitReport:
    """What was handed over, and what was not.

    Attributes:
        batches: batches handed over or answered.
        records: records in them.
        waiting: batches that stay prepared, or all of them under `every batch`, with the reason.
        held: the hold that nothing is submitted under; None where the version is not held.
    """

    batches: int = 0
    records: int = 0
    waiting: dict[str, str] = field(default_factory=dict)
    held: Hold | None = None

    def add(self, records: int) -> None:
        """Count one batch."""
        self.batches += 1
        self.records += records


EVERY_BATCH = "every batch"
ON_PROBATION = "the version is on probation after its breaker tripped: one batch at a time"
_TO_HAND_OVER = ("prepared", "submitting", "submitted", "running")
_OUT = ("submitting", "submitted", "running", "results_available", "reconciling")
"""Batches that were handed over and whose results are not counted yet."""


def submit_batches(context: Context, version: OpenVersion) -> SubmitReport:
    """Submit every batch of the version that may be submitted now.

    A batch that another worker is at is left to it, and named in the report.

    Raises:
        ArtifactDamaged: a request file's bytes are not those that were frozen.
        ProviderError: the provider cannot be used at all; nothing was sent.
    """
    report = SubmitReport()
    # First what ends by itself, with nothing to submit too: nobody else may come by.
    look_at_hold(context, version.version_no)
    todo = _todo(context, version)
    if not todo:
        return report
    settings = operating(context.ledger, version.version_no)
    gate = open_gate(context, version, settings)
    report.held = _hold(context, version, gate)
    if report.held is not None:
        report.waiting[EVERY_BATCH] = f"the version is held: {report.held.reason}"
    elif version.spec.mode == "embedded":
        _answer_here(context, version, len(todo), report)
    else:
        _hand_over_all(context, version, todo, settings, gate, report)
    return report


def _todo(context: Context, version: OpenVersion) -> list[JobRow]:
    """Batches to hand over now, and those answered in the run that were left half answered."""
    now = context.ledger.now()
    jobs = find_jobs(context.ledger, _TO_HAND_OVER, version_no=version.version_no, machine="batch")
    return [job for job in jobs if _may_go(job, now)]


def _may_go(job: JobRow, now: str) -> bool:
    resumable = job.mode != "batch" and job.state in _TO_HAND_OVER
    return (job.state == "prepared" or resumable) and (
        job.next_poll_at is None or job.next_poll_at <= now
    )


def _hold(context: Context, version: OpenVersion, gate: BudgetGate | None) -> Hold | None:
    """The hold that the version is under, put on now if there is a reason to."""
    # All of them leave a held version alone.
    look_at_breaker(context, version)
    look_at_backpressure(context, version.version_no)
    if gate is not None:
        gate.hold_used_up()
    with context.ledger.read() as connection:
        return hold_of(connection, version.version_no)


def _answer_here(
    context: Context, version: OpenVersion, batches: int, report: SubmitReport
) -> None:
    most = None
    if on_probation(context, version.version_no):
        most = 0 if _results_are_coming(context, version) else 1
        if batches > most:
            report.waiting[EVERY_BATCH] = ON_PROBATION
    answered, waiting = answer_embedded(context, version, most)
    for batch in answered:
        report.add(batch.expected_records)
    report.waiting |= waiting


def _results_are_coming(context: Context, version: OpenVersion) -> bool:
    """Are there batches of an embedded provider that were answered and not collected?"""
    answered = ("results_available", "reconciling")
    return bool(find_jobs(context.ledger, answered, version_no=version.version_no, machine="batch"))


def _hand_over_all(
    context: Context,
    version: OpenVersion,
    todo: list[JobRow],
    settings: Operating,
    budget: BudgetGate | None,
    report: SubmitReport,
) -> None:
    with job_client(context, version) as client:
        _check_model(context, version, client)
        try:
            gate = pass_canary(context, version, client, budget)
        except LeaseHeld as error:
            report.waiting[EVERY_BATCH] = f"canary: {error}"
            return
        if gate.gate != "open":
            report.waiting[EVERY_BATCH] = f"canary: {gate.reason}"
            return
        one_at_a_time = on_probation(context, version.version_no)
        taken = one_at_a_time and _is_out(context, version)
        for job in todo:
            if _held_meanwhile(context, version):
                report.waiting[EVERY_BATCH] = "the version was held while it was being submitted"
                break
            if job.state == "prepared" and taken:
                report.waiting[job.id] = ON_PROBATION
                continue
            taken = one_at_a_time
            _submit_one(context, version, job, client, settings, budget, report)


def _is_out(context: Context, version: OpenVersion) -> bool:
    return bool(find_jobs(context.ledger, _OUT, version_no=version.version_no, machine="batch"))


def _check_model(context: Context, version: OpenVersion, client: LazyClient) -> None:
    """Before the first upload of a version: is there such a model for this account?

    Raises:
        ModelUnavailable: there is none.
    """
    spec = version.spec
    if was_submitted(context.ledger, version.version_no):
        return
    if spec.mode == "batch":
        client.get().check_model(spec.model)
    else:
        online_client(context.settings, spec.provider, spec.endpoint).check_model(spec.model)


def _held_meanwhile(context: Context, version: OpenVersion) -> bool:
    with context.ledger.read() as connection:
        return state_of(connection, version.version_no) != "active"


def _submit_one(
    context: Context,
    version: OpenVersion,
    job: JobRow,
    client: LazyClient,
    settings: Operating,
    budget: BudgetGate | None,
    report: SubmitReport,
) -> None:
    try:
        with held(context.ledger, job.lease_name, context.worker) as lease:
            with context.ledger.read() as connection:
                now = reload_job(connection, job)
            # Another worker may have been at it between the look and the lease.
            if _may_go(now, context.ledger.now()):
                _submit_under(context, lease, version, now, client, settings, budget, report)
    except LeaseHeld as error:
        report.waiting[job.id] = str(error)


def _submit_under(
    context: Context,
    lease: Lease,
    version: OpenVersion,
    job: JobRow,
    client: LazyClient,
    settings: Operating,
    budget: BudgetGate | None,
    report: SubmitReport,
) -> None:
    if job.mode == "online":
        stopped = answer_online(context, lease, version, job, settings, budget)
        if stopped is None:
            report.add(job.expected_records)
        else:
            report.waiting[job.id] = stopped
        return
    assert version.spec.request is not None  # noqa: S101 - the spec's own check
    submission = Submission(
        client.get(),
        with_operating(capability_of(job), settings, context.ledger.now()[:10]),
        settings,
        version.spec.request.window_hours,
        budget,
    )
    outcome, sentence = hand_over(context, lease, job, submission)
    if outcome == "submitted":
        report.add(job.expected_records)
        return
    if outcome == "no_room":
        later = context.ledger.clock() + NO_ROOM_PAUSE
        write_later(context, lease, job, to_text(later))
    report.waiting[job.id] = sentence
