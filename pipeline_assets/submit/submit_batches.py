"""Handing a version's batches to their provider, each by its own mode.

Belongs here: which batches, in which order, and what has to be true first. Does not belong here:
the life of a job at a provider (`provider_jobs`), online calls (`answer_online.py`), the built-in
provider (`answer_embedded.py`), canaries (`canary`), and what becomes of results (`collect`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta

from pipeline_assets.canary.run import pass_canary
from pipeline_assets.operating import Operating, operating
from pipeline_assets.provider_jobs.clients import LazyClient, job_client
from pipeline_assets.provider_jobs.hand_over import hand_over
from pipeline_assets.provider_jobs.life import Submission, write_later
from pipeline_assets.provider_jobs.limits import capability_of, with_operating
from pipeline_assets.submit.answer_embedded import answer_embedded
from pipeline_assets.submit.answer_online import answer_online
from pipeline_assets.versions import OpenVersion
from resources.clock import to_text
from resources.context import Context
from resources.ledger.jobs import JobRow, find_jobs, was_submitted
from resources.ledger.leases import held
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
    """

    batches: int = 0
    records: int = 0
    waiting: dict[str, str] = field(default_factory=dict)

    def add(self, records: int) -> None:
        """Count one batch."""
        self.batches += 1
        self.records += records


EVERY_BATCH = "every batch"


def submit_batches(context: Context, version: OpenVersion) -> SubmitReport:
    """Submit every batch of the version that may be submitted now.

    Raises:
        ArtifactDamaged: a request file's bytes are not those that were frozen.
        LeaseHeld: another worker is at one of the batches.
        ProviderError: the provider cannot be used at all; nothing was sent.
    """
    report = SubmitReport()
    if version.spec.mode == "embedded" and version.held is None:
        for batch in answer_embedded(context, version):
            report.add(batch.expected_records)
        return report
    todo = _prepared(context, version)
    if not todo:
        return report
    held_for = version.held
    if held_for is not None:
        report.waiting[EVERY_BATCH] = f"the version is held: {held_for}"
        return report
    with job_client(context, version) as client:
        _check_model(context, version, client)
        gate = pass_canary(context, version, client)
        if gate.gate != "open":
            report.waiting[EVERY_BATCH] = f"canary: {gate.reason}"
            return report
        settings = operating(context.ledger, version.version_no)
        for job in todo:
            if _held_meanwhile(context, version):
                report.waiting[EVERY_BATCH] = "the version was held while it was being submitted"
                break
            _submit_one(context, version, job, client, settings, report)
    return report


def _prepared(context: Context, version: OpenVersion) -> list[JobRow]:
    """Batches to hand over now, and online ones that were left half answered."""
    now = context.ledger.now()
    jobs = find_jobs(
        context.ledger,
        ("prepared", "submitting", "submitted", "running"),
        version_no=version.version_no,
        machine="batch",
    )
    return [
        job
        for job in jobs
        if (job.state == "prepared" or job.mode == "online")
        and (job.next_poll_at is None or job.next_poll_at <= now)
    ]


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
    report: SubmitReport,
) -> None:
    with held(context.ledger, job.lease_name, context.worker) as lease:
        if job.mode == "online":
            stopped = answer_online(context, lease, version, job, settings)
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
        )
        outcome, sentence = hand_over(context, lease, job, submission)
        if outcome == "submitted":
            report.add(job.expected_records)
            return
        if outcome == "no_room":
            later = context.ledger.clock() + NO_ROOM_PAUSE
            write_later(context, lease, job, to_text(later))
        report.waiting[job.id] = sentence
