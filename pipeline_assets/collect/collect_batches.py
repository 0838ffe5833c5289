"""Collecting: results of a batch become dispositions of its attempts, before anything is judged.

Belongs here: which batches, and the order of the steps. Does not belong here: matching lines
(`evidence.py`, `reconcile.py`), the transaction that completes a batch (`settle.py`), the
download (`pipeline_assets/provider_jobs`).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from pipeline_assets.canary.run import settle_canaries
from pipeline_assets.collect.evidence import EVIDENCE_DAMAGED, Verified, reconcile_batch
from pipeline_assets.collect.settle import settle, write_incident
from pipeline_assets.operating import operating
from pipeline_assets.provider_jobs.cleanup import delete_remote
from pipeline_assets.provider_jobs.clients import LazyClient, job_client
from pipeline_assets.provider_jobs.results import NotCollectable, fetch_results, write_fetched
from pipeline_assets.versions import OpenVersion
from resources.context import Context
from resources.garbage import without_garbage_collector
from resources.ledger.alerts import clear_alerts
from resources.ledger.batches import (
    COMPLETE,
    Batch,
    find_batches,
    reload_batch,
    retried_batches,
)
from resources.ledger.jobs import find_jobs, job_of_batch
from resources.ledger.leases import Lease, LeaseHeld, fenced, held
from resources.ledger.moves import move_batch


@dataclass
class CollectReport:
    """What was reconciled.

    Attributes:
        batches: how many batches.
        dispositions: disposition → attempts.
        anomalies: kind → lines or attempts.
        decisions: what was decided about failed attempts → attempts.
        late: results that came in for an attempt that was given up before.
        late_used: how many of them became their record's answer.
        incidents: batches whose dispositions do not add up to the manifest, or whose evidence is
            damaged, with the reason.
        not_collectable: batches that are done at their provider and could not be fetched, why.
        not_deleted: batches whose files at the provider could not be deleted, why.
        canaries: canaries that came back, and what became of them.
        busy: batches that another worker is at.
        retried: batches whose retries are over.
    """

    batches: int = 0
    dispositions: Counter[str] = field(default_factory=Counter)
    anomalies: Counter[str] = field(default_factory=Counter)
    decisions: Counter[str] = field(default_factory=Counter)
    late: int = 0
    late_used: int = 0
    incidents: dict[str, str] = field(default_factory=dict)
    not_collectable: dict[str, str] = field(default_factory=dict)
    not_deleted: dict[str, str] = field(default_factory=dict)
    canaries: dict[str, str] = field(default_factory=dict)
    busy: list[str] = field(default_factory=list)
    retried: list[str] = field(default_factory=list)


def collect_batches(context: Context, version: OpenVersion) -> CollectReport:
    """Reconcile every batch of the version that has results.

    A batch that another worker is at is left to it.
    """
    report = CollectReport()
    verified = Verified()
    todo = find_batches(context.ledger, version.version_no, ("results_available", "reconciling"))
    with job_client(context, version) as client:
        report.canaries = settle_canaries(context, version, client)
        for batch in todo:
            try:
                with (
                    held(context.ledger, batch.lease_name, context.worker) as lease,
                    without_garbage_collector(),
                ):
                    _collect(context, version, lease, batch, client, verified, report)
            except LeaseHeld:
                report.busy.append(batch.batch_id)
        report.not_deleted = _clean_up(context, version, client)
    report.retried = close_retried(context, version)
    return report


def reconcile_and_settle(
    context: Context,
    version: OpenVersion,
    lease: Lease,
    batch: Batch,
    verified: Verified,
    report: CollectReport,
) -> None:
    """Reconcile a batch whose result files are stored, and write what that means."""
    try:
        outcome = reconcile_batch(context, version, batch, verified)
    except EVIDENCE_DAMAGED as error:
        with fenced(context.ledger, lease) as connection:
            if reload_batch(connection, batch.batch_no).state == "reconciling":
                write_incident(connection, context, batch, str(error))
        report.incidents[batch.batch_id] = str(error)
        return
    settled = settle(context, version, lease, batch, outcome)
    if settled is None:
        return
    if not settled.whole:
        report.incidents[batch.batch_id] = "the dispositions do not add up to the manifest"
        return
    report.batches += 1
    counts = outcome.dispositions["disposition"].value_counts()
    report.dispositions.update(dict(counts.iter_rows()))
    report.anomalies.update(outcome.anomalies)
    report.decisions.update(settled.decisions)
    report.late += settled.late[0]
    report.late_used += settled.late[1]


def close_retried(context: Context, version: OpenVersion) -> list[str]:
    """Complete the batches whose records are not tried again any more; their names."""
    ledger = context.ledger
    with ledger.read() as connection:
        waiting = retried_batches(connection, ledger, version.version_no)
    closed = []
    for batch_no, still_open, failed in waiting.iter_rows():
        if still_open:
            continue
        with ledger.read() as connection:
            batch = reload_batch(connection, batch_no)
        target = "completed_with_errors" if failed else "completed"
        try:
            with (
                held(ledger, batch.lease_name, context.worker) as lease,
                fenced(ledger, lease) as connection,
            ):
                if reload_batch(connection, batch_no).state != "retry_required":
                    continue
                cause = context.cause(f"its retries are over, {failed} records failed", "collect")
                move_batch(connection, ledger.dialect, batch_no, "retry_required", target, cause)
            closed.append(batch.batch_id)
        except LeaseHeld:
            continue
    return closed


def _collect(
    context: Context,
    version: OpenVersion,
    lease: Lease,
    batch: Batch,
    client: LazyClient,
    verified: Verified,
    report: CollectReport,
) -> None:
    try:
        _start(context, lease, batch, client)
    except NotCollectable as error:
        report.not_collectable[batch.batch_id] = str(error)
        return
    reconcile_and_settle(context, version, lease, batch, verified, report)


def _start(context: Context, lease: Lease, batch: Batch, client: LazyClient) -> None:
    """Fetch what is at the provider, then store all of it together.

    Raises:
        NotCollectable: a result file could not be fetched whole.
    """
    if batch.state != "results_available":
        return
    with context.ledger.read() as connection:
        job = job_of_batch(connection, batch.batch_no)
    fetched = [] if job.remote_files is None else fetch_results(context, lease, job, client.get())
    with fenced(context.ledger, lease) as connection:
        if reload_batch(connection, batch.batch_no).state != "results_available":
            return
        cause = context.cause("result files are stored", "collect")
        write_fetched(connection, batch.batch_no, fetched, cause.at)
        clear_alerts(connection, batch.batch_id, cause.at, ("not_collectable",))
        move_batch(
            connection,
            context.ledger.dialect,
            batch.batch_no,
            "results_available",
            "reconciling",
            cause,
        )


def _clean_up(context: Context, version: OpenVersion, client: LazyClient) -> dict[str, str]:
    done = [
        job
        for job in find_jobs(
            context.ledger, COMPLETE, version_no=version.version_no, machine="batch"
        )
        if job.remote_files is not None and job.remote_deleted_at is None
    ]
    if not done:
        return {}
    settings = operating(context.ledger, version.version_no)
    return delete_remote(context, done, client.get(), settings) if settings.delete_remote else {}
