"""One look at every job that is due: open submissions are settled, running jobs are polled.

Belongs here: the order, the time budget and what a look writes. Does not belong here: what a look
means (`polling.py`, `adoption.py`), fetching results (`fetch.py`, in a run of its own).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta

from pipeline_assets.operating import operating
from pipeline_assets.provider_jobs.hand_over import settle
from pipeline_assets.provider_jobs.life import Submission, counts_text, write_ended
from pipeline_assets.provider_jobs.limits import capability_of, value_of
from pipeline_assets.provider_jobs.polling import PollDecision, PollPolicy, decide_poll, next_delay
from resources.clock import to_text
from resources.context import Context
from resources.ledger.alerts import clear_alerts, raise_alert
from resources.ledger.jobs import UNDECIDED, JobRow, due_jobs, move_job, reload_job, update_job
from resources.ledger.leases import Lease, LeaseHeld, LeaseLost, fenced, held
from resources.providers.port import (
    BatchClient,
    Job,
    JobMissing,
    ProviderError,
    Refused,
    Unavailable,
    Unreachable,
)
from resources.providers.registry import batch_client

BUDGET_SECONDS = 40.0
"""A sensor is given 60 s by Dagster; a tick that is cut loses its cursor."""
POLL_TIMEOUT_SECONDS = 15.0
JOBS_A_TICK = 500
FAILURES_BEFORE_ALERT = 3

Connect = Callable[[JobRow], BatchClient]


@dataclass
class TickReport:
    """What a tick came to.

    Attributes:
        looked: jobs looked at.
        ended: names of jobs that are done at their provider.
        settled: names of submissions that were looked into, with what was found.
        troubles: names of jobs that could not be looked at, with why.
        left: due jobs that the time did not allow for.
    """

    looked: int = 0
    ended: list[str] = field(default_factory=list)
    settled: dict[str, str] = field(default_factory=dict)
    troubles: dict[str, str] = field(default_factory=dict)
    left: int = 0


class _Clients:
    """One client a provider and endpoint for the length of a tick."""

    def __init__(self, connect: Connect) -> None:
        self._connect = connect
        self._open: dict[tuple[str, str | None], BatchClient] = {}

    def of(self, job: JobRow) -> BatchClient:
        key = (job.provider, job.endpoint)
        if key not in self._open:
            self._open[key] = self._connect(job)
        return self._open[key]

    def close(self) -> None:
        for client in self._open.values():
            client.close()


def look_at_due_jobs(
    context: Context,
    *,
    budget_seconds: float = BUDGET_SECONDS,
    limit: int = JOBS_A_TICK,
    connect: Connect | None = None,
    monotonic: Callable[[], float] = time.monotonic,
) -> TickReport:
    """Look at the jobs that are due, the longest due first, within a budget of real time.

    Args:
        context: the open resources.
        budget_seconds: no further job is begun after so long.
        limit: at most so many jobs.
        connect: makes a client for a job; from the environment by default.
        monotonic: real seconds.
    """
    report = TickReport()
    due = due_jobs(context.ledger, context.ledger.now(), limit)
    clients = _Clients(connect or (lambda job: _connect(context, job)))
    started = monotonic()
    try:
        for position, job in enumerate(due):
            if monotonic() - started > budget_seconds:
                report.left = len(due) - position
                break
            _look(context, job, clients, report)
    finally:
        clients.close()
    return report


def _connect(context: Context, job: JobRow) -> BatchClient:
    return batch_client(
        context.settings, job.provider, job.endpoint, timeout_seconds=POLL_TIMEOUT_SECONDS
    )


def _look(context: Context, job: JobRow, clients: _Clients, report: TickReport) -> None:
    try:
        with held(context.ledger, job.lease_name, context.worker) as lease:
            with context.ledger.read() as connection:
                now = reload_job(connection, job)
            if now.state != job.state:
                return
            report.looked += 1
            try:
                _look_under_lease(context, lease, now, clients, report)
            except ProviderError as error:
                report.troubles[job.id] = str(error)
                _write_trouble(context, lease, now, error)
    except (LeaseHeld, LeaseLost):
        return  # another worker is at it


def _look_under_lease(
    context: Context, lease: Lease, job: JobRow, clients: _Clients, report: TickReport
) -> None:
    client = clients.of(job)
    settings = operating(context.ledger, job.version_no)
    capability = capability_of(job)
    if job.state in UNDECIDED:
        submission = Submission(client, capability, settings, window_hours=0)
        report.settled[job.id] = settle(context, lease, job, submission)
        return
    assert job.provider_job_id is not None  # noqa: S101 - a submitted job has its id
    found = client.retrieve(job.provider_job_id)
    policy = PollPolicy(
        settings.deadline_policy, settings.no_progress, bool(value_of(capability.counts_live))
    )
    decision = decide_poll(job, found, counts_text(found.counts), context.ledger.clock(), policy)
    if decision.state == "results_available":
        write_ended(context, lease, job, found)
        report.ended.append(job.id)
        return
    if decision.cancel:
        client.cancel(found.job_id)
    _write_look(context, lease, job, found, decision)


def _write_look(
    context: Context, lease: Lease, job: JobRow, found: Job, decision: PollDecision
) -> None:
    with fenced(context.ledger, lease) as connection:
        now = reload_job(connection, job)
        cause = context.cause(f"the provider says {found.raw_status[:128]!r}", "monitor")
        values: dict[str, object] = {
            "raw_status": found.raw_status[:128],
            "last_counts": counts_text(found.counts),
            "polls": now.polls + 1,
            "poll_failures": 0,
            "next_poll_at": to_text(context.ledger.clock() + next_delay(now.polls, context.rng)),
        }
        if decision.changed:
            values["changed_at"] = cause.at
        if decision.cancel:
            values["cancel_requested_at"] = cause.at
        update_job(connection, lease, now, **values)
        for kind, message in decision.alerts.items():
            raise_alert(connection, kind, now.id, message, cause.at)
        if decision.changed:
            stale = tuple({"no_progress", "unknown_status", "unreachable"} - set(decision.alerts))
            clear_alerts(connection, now.id, cause.at, stale)
        if decision.state == "running":
            move_job(connection, context.ledger, now, "submitted", "running", cause)


def _write_trouble(context: Context, lease: Lease, job: JobRow, error: ProviderError) -> None:
    """A look that failed says nothing about the job: it is asked again, later each time."""
    with fenced(context.ledger, lease) as connection:
        now = reload_job(connection, job)
        failures = (now.poll_failures or 0) + 1
        asked = getattr(error, "retry_after", None)
        delay = next_delay(failures, context.rng)
        if asked is not None:
            delay = max(delay, timedelta(seconds=asked))
        moment = context.ledger.clock()
        update_job(
            connection,
            lease,
            now,
            poll_failures=failures,
            next_poll_at=to_text(moment + delay),
        )
        lasting = isinstance(error, (Refused, JobMissing)) and failures > 1
        if failures >= FAILURES_BEFORE_ALERT or lasting or not _is_transient(error):
            raise_alert(connection, "unreachable", now.id, str(error), to_text(moment))


def _is_transient(error: ProviderError) -> bool:
    return isinstance(error, (Unavailable, Unreachable, JobMissing, Refused))
