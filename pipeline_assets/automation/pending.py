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

import polars as pl

from pipeline_assets.canary.run import gate_of
from pipeline_assets.expected_errors import EXPECTED_ERRORS
from pipeline_assets.operating import operating
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
        why: closed words: `submit`, `answer`, `collect`, `canary`, `publish`, `retry`, `corrected`.
        mark: the same as long as the work is the same.
    """

    key: str
    why: tuple[str, ...]
    mark: str


def pending_versions(context: Context) -> tuple[list[Pending], dict[str, str]]:
    """Versions with work, and versions that cannot be looked at with the reason."""
    found: list[Pending] = []
    troubles: dict[str, str] = {}
    jobs = find_jobs(context.ledger, WORKING_STATES)
    to_publish = _to_publish(context)
    for version in list_versions(context.ledger):
        own = [job for job in jobs if job.version_no == version.version_no]
        accepted = to_publish.get(version.version_no, "")
        if version.state == "retired" or not (own or accepted):
            continue
        try:
            why = _why(context, version, own)
        except EXPECTED_ERRORS as error:
            troubles[version.key] = str(error)
            continue
        if accepted:
            why.add("publish")
        if why:
            found.append(Pending(version.key, tuple(sorted(why)), _mark(own, why, accepted)))
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
    due = [job for job in jobs if job.next_poll_at is None or job.next_poll_at <= now]
    why = {word for job in due if (word := _wants(job, active=version.state == "active"))}
    if "submit" in why and _one_is_out(jobs) and on_probation(context, version.version_no):
        why.discard("submit")
    if why & {"submit", "answer"} and any(job.mode != "embedded" for job in jobs):
        gate = gate_of(context, open_version(context, version.key)).gate
        if gate in ("waiting", "closed"):
            why -= {"submit", "answer"}
    return why


def _wants(job: JobRow, *, active: bool) -> str | None:
    """What a due job waits for; None where it waits for nothing that a run does."""
    if job.state == "results_available":
        return "collect"
    if not active:
        return None
    if job.mode == "embedded":
        # Left behind: by a manifest that was materialised alone, or by a run that died.
        return "answer"
    if job.state == "prepared":
        return "submit" if job.machine == "batch" else "canary"
    return "answer" if job.machine == "batch" and job.mode == "online" else None


def _one_is_out(jobs: list[JobRow]) -> bool:
    """A batch was handed over and its results are not in; on probation no other one may go."""
    out = ("submitting", "submitted", "running", "results_available")
    return any(job.machine == "batch" and job.state in out for job in jobs)


def _to_publish(context: Context) -> dict[int, str]:
    """Versions with accepted records that the next run publishes, and which those are.

    A run publishes what it judged; these were accepted by a reviewer, or a run died before it
    published them. A version whose promote policy is manual waits for its command.
    """
    ledger = context.ledger
    with ledger.read() as connection:
        accepted = ledger.dialect.fetch(
            connection,
            "SELECT r.version_no, COUNT(*), MAX(r.record_no) FROM record_state s "
            "JOIN records r ON r.record_no = s.record_no WHERE s.state = 'accepted' "
            "GROUP BY r.version_no",
            {"version_no": pl.Int64, "records": pl.Int64, "newest": pl.Int64},
        )
    return {
        version_no: f"{records}.{newest}"
        for version_no, records, newest in accepted.iter_rows()
        if operating(ledger, version_no).promote == "auto"
    }


def _mark(jobs: list[JobRow], why: set[str], accepted: str) -> str:
    states = sorted(
        (job.machine, job.no, job.state, job.submissions or 0, job.poll_failures or 0)
        for job in jobs
    )
    told = (states, sorted(why), accepted)
    return hashlib.sha256(repr(told).encode()).hexdigest()[:16]
