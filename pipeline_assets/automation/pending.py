"""Which versions have work for a run now, as the ledger says; pure decision behind the sensor.

Belongs here: reading the ledger and deciding. Does not belong here: Dagster (`sensors.py`),
looking at providers (`provider_jobs/monitor.py`).

The decision is made from states, never from events: whatever was missed is found at the next
look, and whatever was done is not asked for again.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime

from pipeline_assets.canary.run import gate_of
from pipeline_assets.expected_errors import EXPECTED_ERRORS
from pipeline_assets.recovery.breaker import on_probation
from pipeline_assets.versions import open_version
from resources.context import Context
from resources.ledger.jobs import JobRow, find_jobs
from resources.ledger.retries import waiting_retries
from resources.ledger.versions import FrozenVersion, list_versions

RETRY_MINUTES = 10
"""The same work is asked for again after so long, if a run failed to do it."""

WORKING_STATES = ("prepared", "submitting", "submitted", "running", "results_available")


@dataclass(frozen=True)
class Pending:
    """A version with work for a run.

    Attributes:
        key: the version, which is the partition.
        why: closed words: `submit`, `answer`, `collect`, `canary`, `retry`.
        mark: the same as long as the work is the same.
    """

    key: str
    why: tuple[str, ...]
    mark: str


def pending_versions(context: Context) -> tuple[list[Pending], dict[str, str]]:
    """Versions with work, and versions that cannot be looked at with the reason."""
    found: list[Pending] = []
    troubles: dict[str, str] = {}
    jobs = [job for job in find_jobs(context.ledger, WORKING_STATES) if job.mode != "embedded"]
    for version in list_versions(context.ledger):
        own = [job for job in jobs if job.version_no == version.version_no]
        if not own or version.state == "retired":
            continue
        try:
            why = _why(context, version, own)
        except EXPECTED_ERRORS as error:
            troubles[version.key] = str(error)
            continue
        if why:
            found.append(Pending(version.key, tuple(sorted(why)), _mark(own, why)))
    return found, troubles


def due_versions(context: Context) -> list[Pending]:
    """Active versions with records that are due for another attempt."""
    now = context.ledger.now()
    active = {
        version.version_no: version.key
        for version in list_versions(context.ledger)
        if version.state == "active"
    }
    return [
        Pending(active[version_no], ("retry",), f"retry-{records}-{first_due}")
        for version_no, records, first_due in waiting_retries(context.ledger).iter_rows()
        if version_no in active and first_due <= now
    ]


def run_key(pending: Pending, now: datetime) -> str:
    """The name of the run for this work: the same work is not asked for twice in ten minutes."""
    bucket = int(now.timestamp() // (RETRY_MINUTES * 60))
    return f"{pending.key}:{pending.mark}:{bucket}"


def _why(context: Context, version: FrozenVersion, jobs: list[JobRow]) -> set[str]:
    now = context.ledger.now()
    why: set[str] = set()
    for job in jobs:
        due = job.next_poll_at is None or job.next_poll_at <= now
        if job.state == "results_available" and due:
            why.add("collect")
        elif version.state == "active" and job.machine == "batch":
            if job.state == "prepared" and due:
                why.add("submit")
            elif job.mode == "online" and due:
                why.add("answer")
        elif version.state == "active" and job.state == "prepared" and due:
            why.add("canary")
    if "submit" in why and _one_is_out(jobs) and on_probation(context, version.version_no):
        why.discard("submit")
    if why & {"submit", "answer"}:
        gate = gate_of(context, open_version(context, version.key)).gate
        if gate in ("waiting", "closed"):
            why -= {"submit", "answer"}
    return why


def _one_is_out(jobs: list[JobRow]) -> bool:
    """A batch was handed over and its results are not in; on probation no other one may go."""
    out = ("submitting", "submitted", "running", "results_available")
    return any(job.machine == "batch" and job.state in out for job in jobs)


def _mark(jobs: list[JobRow], why: set[str]) -> str:
    states = sorted(
        (job.machine, job.no, job.state, job.submissions or 0, job.poll_failures or 0)
        for job in jobs
    )
    return hashlib.sha256(repr((states, sorted(why))).encode()).hexdigest()[:16]
