"""Collecting: results of a batch become dispositions of its attempts, before anything is judged.

Belongs here: the steps and their transaction. Does not belong here: the decision
(`reconcile.py`), the classes (`pipeline_assets/failures.py`), the download
(`pipeline_assets/provider_jobs`).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import polars as pl
from sqlalchemy import Connection

from pipeline_assets.canary.run import settle_canaries
from pipeline_assets.collect.observe import OBSERVED_SCHEMA, observe
from pipeline_assets.collect.reconcile import Reconciliation, reconcile
from pipeline_assets.failures import unanswered
from pipeline_assets.operating import operating
from pipeline_assets.provider_jobs.cleanup import delete_remote
from pipeline_assets.provider_jobs.clients import LazyClient, job_client
from pipeline_assets.provider_jobs.operate import OPERATOR_CANCELLED
from pipeline_assets.provider_jobs.results import NotCollectable, fetch_results
from pipeline_assets.providers import result_reader
from pipeline_assets.versions import OpenVersion
from resources.context import Context
from resources.contracts import COLLECTED, MANIFEST, scan_frame, store_frame
from resources.garbage import without_garbage_collector
from resources.ledger.alerts import clear_alerts
from resources.ledger.batches import (
    COMPLETE,
    Batch,
    attempts_of,
    find_batches,
    reload_batch,
    update_batch,
)
from resources.ledger.jobs import find_jobs, job_of_batch
from resources.ledger.leases import Lease, fenced, held
from resources.ledger.manifests import ManifestChanged, verify_manifest
from resources.ledger.moves import batch_chain, move_batch, move_records
from resources.ledger.results import (
    DISPOSITION_SCHEMA,
    RESULT_SCHEMA,
    count_dispositions,
    result_files_of,
    store_result_file,
    store_results,
)

NEXT_STATE = {
    "succeeded": "collected",
    "retryable_failure": "retry_wait",
    "expired": "retry_wait",
    "permanent_failure": "dead_letter",
    "cancelled": "retry_wait",
}
"""Where a record goes from `submitted`, by the disposition of its attempt."""


@dataclass(frozen=True)
class CollectReport:
    """What was reconciled.

    Attributes:
        batches: how many batches.
        dispositions: disposition → attempts.
        anomalies: kind → lines or attempts.
        incidents: batches whose dispositions do not add up to the manifest.
        not_collectable: batches that are done at their provider and could not be fetched, why.
        not_deleted: batches whose files at the provider could not be deleted, why.
        canaries: canaries that came back, and what became of them.
    """

    batches: int
    dispositions: dict[str, int]
    anomalies: dict[str, int]
    incidents: tuple[str, ...]
    not_collectable: dict[str, str]
    not_deleted: dict[str, str]
    canaries: dict[str, str]


def collect_batches(context: Context, version: OpenVersion) -> CollectReport:
    """Reconcile every batch of the version that has results.

    Raises:
        ArtifactDamaged: a manifest's or a result's bytes are not those that were stored.
        ManifestChanged: stored manifest rows are not those that were frozen.
        LeaseHeld: another worker is at one of the batches.
    """
    todo = find_batches(context.ledger, version.version_no, ("results_available", "reconciling"))
    dispositions: Counter[str] = Counter()
    anomalies: Counter[str] = Counter()
    incidents: list[str] = []
    not_collectable: dict[str, str] = {}
    verified: set[str] = set()
    with job_client(context, version) as client:
        canaries = settle_canaries(context, version, client)
        for batch in todo:
            with (
                held(context.ledger, batch.lease_name, context.worker) as lease,
                without_garbage_collector(),
            ):
                try:
                    _start(context, lease, batch, client)
                except NotCollectable as error:
                    not_collectable[batch.batch_id] = str(error)
                    continue
                outcome = _reconcile(context, version, batch, verified)
                if not _store(context, lease, batch, outcome):
                    incidents.append(batch.batch_id)
                    continue
                counts = outcome.dispositions["disposition"].value_counts()
                dispositions.update(dict(counts.iter_rows()))
                anomalies.update(outcome.anomalies)
        not_deleted = _clean_up(context, version, client)
    return CollectReport(
        batches=len(todo) - len(not_collectable),
        dispositions=dict(dispositions),
        anomalies=dict(anomalies),
        incidents=tuple(incidents),
        not_collectable=not_collectable,
        not_deleted=not_deleted,
        canaries=canaries,
    )


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
        for file in fetched:
            store_result_file(
                connection,
                batch.batch_no,
                file.kind,
                file.stored.digest,
                file.stored.size,
                file.lines,
                cause.at,
            )
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


def _reconcile(
    context: Context, version: OpenVersion, batch: Batch, verified: set[str]
) -> Reconciliation:
    with context.ledger.read() as connection:
        expected = attempts_of(connection, context.ledger, batch)
    _verify_manifest(context, batch, expected, verified)
    reader = result_reader(version)
    frames = [pl.DataFrame(schema=OBSERVED_SCHEMA)]
    for file_no, _, artifact, *_ in result_files_of(context.ledger, batch.batch_no).iter_rows():
        context.artifacts.verify("result", artifact)
        with context.artifacts.open("result", artifact) as stream:
            frames.append(observe(reader, version.workload.check_answer, file_no, stream))
    return reconcile(
        expected,
        pl.concat(frames),
        batch.batch_key,
        batch.first_attempt_no,
        unanswered(batch.provider_outcome, batch.error_class, batch.error_code),
    )


def _verify_manifest(
    context: Context, batch: Batch, expected: pl.DataFrame, verified: set[str]
) -> None:
    """The frozen manifest must be the one whose digest stands beside the batch."""
    path = context.artifacts.require("manifest", batch.manifest_artifact)
    if batch.manifest_artifact not in verified:
        context.artifacts.verify("manifest", batch.manifest_artifact)
        verify_manifest(path, batch.manifest_id, batch.manifest_digest)
        verified.add(batch.manifest_artifact)
    columns = ("record_id", "request_digest", "offset", "length")
    frozen = (
        scan_frame(MANIFEST, path)
        .filter(pl.col("batch") == batch.ordinal)
        .select(columns)
        .collect()
    )
    if not frozen.equals(expected.select(columns)):
        raise ManifestChanged(batch.manifest_id, batch.manifest_digest, "other attempts")


def _store(context: Context, lease: Lease, batch: Batch, outcome: Reconciliation) -> bool:
    """Write dispositions and moves; False if the invariant does not hold (an incident)."""
    ledger = context.ledger
    collected = store_frame(context.artifacts, "frame", COLLECTED, [outcome.answers])
    with fenced(ledger, lease) as connection:
        if reload_batch(connection, batch.batch_no).state != "reconciling":
            return True
        attempt = connection.begin_nested()
        store_results(
            connection,
            ledger,
            outcome.lines.select(list(RESULT_SCHEMA)),
            outcome.dispositions.select(list(DISPOSITION_SCHEMA)),
        )
        # Counted in the database, not in the frame that was just sent there.
        counted = count_dispositions(connection, batch.first_attempt_no, batch.last_attempt_no)
        whole = counted == batch.expected_records
        if whole:
            attempt.commit()
            update_batch(
                connection,
                lease,
                batch.batch_no,
                reconciled_records=counted,
                collected_artifact=collected.digest,
            )
            _move_records(context, connection, batch, outcome)
        else:
            attempt.rollback()
        target = _batch_state(batch, outcome) if whole else "incident"
        move_batch(
            connection,
            ledger.dialect,
            batch.batch_no,
            "reconciling",
            target,
            context.cause(
                f"{counted} of {batch.expected_records} records have a disposition",
                "collect",
            ),
        )
    return whole


def _move_records(
    context: Context, connection: Connection, batch: Batch, outcome: Reconciliation
) -> None:
    for disposition, usual in NEXT_STATE.items():
        target = "cancelled" if _unwanted(batch, disposition) else usual
        part = outcome.dispositions.filter(pl.col("disposition") == disposition)
        move_records(
            connection,
            context.ledger.dialect,
            part["record_no"],
            "submitted",
            target,
            context.cause(f"disposition {disposition}", "collect"),
            batch_chain(batch.batch_no),
        )


def _unwanted(batch: Batch, disposition: str) -> bool:
    return disposition == "cancelled" and batch.error_class == OPERATOR_CANCELLED


def _batch_state(batch: Batch, outcome: Reconciliation) -> str:
    found = set(outcome.dispositions["disposition"])
    again = {name for name, target in NEXT_STATE.items() if target == "retry_wait"}
    if any(name in again and not _unwanted(batch, name) for name in found):
        return "retry_required"
    return "completed_with_errors" if found - {"succeeded"} else "completed"
