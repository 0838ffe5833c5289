"""Reconciling a batch again because an operator asks: an incident, or one that is complete.

Belongs here: the two cases. Does not belong here: the decision (`reconcile.py`, `late.py`), the
writes that a first reconciliation shares (`settle.py`), and the command line.

An incident is reconciled from the evidence that is stored now. A complete batch keeps its
dispositions: its provider is asked for results once more, and lines for attempts that had none are
late results. Doing either again changes nothing.
"""

from __future__ import annotations

from dataclasses import replace

import msgspec
import polars as pl

from pipeline_assets.collect.collect_batches import (
    CollectReport,
    close_retried,
    reconcile_and_settle,
)
from pipeline_assets.collect.evidence import Verified, reconcile_batch
from pipeline_assets.collect.late import LATE_SCHEMA, choose_late
from pipeline_assets.collect.reconcile import Reconciliation
from pipeline_assets.collect.settle import TRIES, write_late, write_repairs
from pipeline_assets.provider_jobs.clients import LazyClient
from pipeline_assets.provider_jobs.life import RemoteFiles
from pipeline_assets.provider_jobs.operate import NotNow
from pipeline_assets.provider_jobs.results import fetch_results, write_fetched
from pipeline_assets.versions import OpenVersion
from resources.context import Context
from resources.contracts import COLLECTED, store_frame
from resources.ledger.batches import COMPLETE, Batch, reload_batch
from resources.ledger.jobs import JobRow, job_of_batch
from resources.ledger.leases import Lease, fenced, held
from resources.ledger.moves import Cause, MoveRefused, move_batch
from resources.ledger.results import (
    DISPOSITION_SCHEMA,
    RESULT_SCHEMA,
    standing_of,
    store_results,
    unanswered_attempts,
    unread_files,
)


def reconcile_again(
    context: Context,
    version: OpenVersion,
    job: JobRow,
    client: LazyClient,
    reason: str,
    actor: str,
) -> str:
    """Reconcile a batch again.

    Returns:
        A sentence about what came of it.

    Raises:
        NotNow: it is a canary, or neither an incident nor complete.
        MoveRefused: records kept moving meanwhile; nothing was written.
        LeaseHeld: another worker is at it.
        NotCollectable, ProviderError: its provider cannot be asked; nothing was changed.
    """
    if job.machine != "batch" or job.state not in ("incident", "reconciling", *COMPLETE):
        raise NotNow(job, "reconciled again", "a batch that is an incident or complete")
    with held(context.ledger, job.lease_name, context.worker) as lease:
        with context.ledger.read() as connection:
            batch = reload_batch(connection, job.no)
        if batch.state in COMPLETE:
            said = _look_for_late(context, version, lease, batch, client)
        else:
            said = _incident(context, version, lease, batch, reason, actor)
    close_retried(context, version)
    return said


def _incident(
    context: Context, version: OpenVersion, lease: Lease, batch: Batch, reason: str, actor: str
) -> str:
    with fenced(context.ledger, lease) as connection:
        if reload_batch(connection, batch.batch_no).state == "incident":
            cause = Cause(
                f"reconciled again: {reason}", actor, context.ledger.now(), "batch reconcile"
            )
            move_batch(
                connection,
                context.ledger.dialect,
                batch.batch_no,
                "incident",
                "reconciling",
                cause,
            )
    report = CollectReport()
    reconcile_and_settle(context, version, lease, batch, Verified(), report)
    for why in report.incidents.values():
        return f"it is still an incident: {why}"
    counts = ", ".join(f"{count} {name}" for name, count in sorted(report.dispositions.items()))
    return f"it is reconciled: {counts}"


def _look_for_late(
    context: Context, version: OpenVersion, lease: Lease, batch: Batch, client: LazyClient
) -> str:
    why_not = _fetch(context, lease, batch, client)
    for left in reversed(range(TRIES)):
        try:
            return _use_late(context, version, lease, batch, why_not)
        except MoveRefused:
            # The next attempt at a record was settled in between: its batch has another lease.
            if not left:
                raise
    raise AssertionError("unreachable: the last try returns or raises")


def _use_late(
    context: Context, version: OpenVersion, lease: Lease, batch: Batch, why_not: str | None
) -> str:
    with context.ledger.read() as connection:
        fresh = unread_files(connection, context.ledger, batch.batch_no)
        if fresh.is_empty():
            return f"{why_not or 'nothing came back that was not known'}; nothing was changed"
        open_attempts = unanswered_attempts(connection, context.ledger, batch)
        standing = standing_of(connection, context.ledger, batch, judged=True)
    outcome = reconcile_batch(context, version, batch, Verified())
    late = choose_late(_late_of(outcome, open_attempts, fresh), standing, _nobody())
    used = late.filter("used")
    artifact = None
    if not used.is_empty():
        answers = used.select("attempt_no", "record_no", "answer")
        artifact = store_frame(context.artifacts, "frame", COLLECTED, [answers]).digest
    with fenced(context.ledger, lease) as connection:
        store_results(
            connection,
            context.ledger,
            _lines_of(outcome, late, fresh).select(list(RESULT_SCHEMA)),
            pl.DataFrame(schema=DISPOSITION_SCHEMA),
        )
        write_repairs(connection, context, outcome.repairs, used)
        write_late(connection, context, batch, late, artifact)
    return f"{late.height} late results, {used.height} of them used"


def _fetch(context: Context, lease: Lease, batch: Batch, client: LazyClient) -> str | None:
    """Ask the provider for result files once more; why it was not asked, None if it was."""
    if batch.mode != "batch":
        return f"a batch that is answered {batch.mode} has nothing at its provider"
    with context.ledger.read() as connection:
        job = job_of_batch(connection, batch.batch_no)
    if job.provider_job_id is None:
        return "the provider never had it"
    if job.remote_deleted_at is not None:
        return f"its files at the provider were deleted at {job.remote_deleted_at}"
    found = client.get().retrieve(job.provider_job_id)
    files = msgspec.json.encode(RemoteFiles(list(found.files), list(found.remote))).decode()
    fetched = fetch_results(
        context, lease, replace(job, remote_files=files), client.get(), later=False
    )
    with fenced(context.ledger, lease) as connection:
        at = context.ledger.now()
        write_fetched(connection, batch.batch_no, fetched, at)
    return None


def _late_of(outcome: Reconciliation, open_attempts: pl.Series, fresh: pl.Series) -> pl.DataFrame:
    """Lines of fresh files for attempts that had none, and for attempts of earlier batches."""
    own = (
        outcome.dispositions.filter(
            pl.col("attempt_no").is_in(open_attempts.implode())
            & pl.col("result_file_no").is_in(fresh.implode())
        )
        .join(outcome.answers.select("attempt_no", "answer"), on="attempt_no", how="left")
        .select(list(LATE_SCHEMA))
    )
    earlier = outcome.late.filter(pl.col("result_file_no").is_in(fresh.implode()))
    return pl.concat([own, earlier.select(list(LATE_SCHEMA))])


def _lines_of(outcome: Reconciliation, late: pl.DataFrame, fresh: pl.Series) -> pl.DataFrame:
    """The lines of fresh files; those of attempts that had no line before are late."""
    return (
        outcome.lines.filter(pl.col("result_file_no").is_in(fresh.implode()))
        .join(
            late.select("result_file_no", "line", came_late=pl.lit("late_result")),
            on=["result_file_no", "line"],
            how="left",
            maintain_order="left",
        )
        .with_columns(anomaly=pl.coalesce("anomaly", "came_late"))
    )


def _nobody() -> pl.Series:
    return pl.Series([], dtype=pl.Int64)
