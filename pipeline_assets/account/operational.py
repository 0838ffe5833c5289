"""How the jobs of a version fare at their provider and after it: the figures of operation.

Belongs here: queue and running age, polls, downloaded bytes, reconciliation lag, retries, and what
is not reconciled. Does not belong here: where records stand (`status.py`), what anything cost
(`pipeline_assets/costs`), and any form for machines (`openmetrics.py`).

A batch's times come from its moves in the journal, each of which is made once a batch: handed over
(`submitted`), first seen running, results there, complete. What a provider says of its own rows is
kept apart from what was decided of them, and is only shown. Canaries have no records and are in no
figure here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import polars as pl
from sqlalchemy import Connection, select

from pipeline_assets.distribution import Distribution, distribution
from resources.clock import to_text
from resources.context import Context
from resources.ledger.batches import COMPLETE
from resources.ledger.engine import Ledger
from resources.ledger.schema import processing_versions

DISPOSITIONS: tuple[str, ...] = (
    "succeeded",
    "retryable_failure",
    "permanent_failure",
    "cancelled",
    "expired",
)
OUT = ("submitted", "running")
"""Batch states in which the provider works on the job."""
UNRECONCILED = (
    "submitting",
    "quarantined",
    "submitted",
    "running",
    "results_available",
    "reconciling",
    "incident",
)
"""Batch states in which its records were handed over, or may have been, and have no disposition."""

_TIME = "%Y-%m-%dT%H:%M:%S%.fZ"
_COMPLETE = ",".join(f"'{state}'" for state in COMPLETE)
# The chain is indexed, the subject is not; a batch's chain also holds the moves of its records.
_BATCHES = f"""
SELECT b.batch_no, b.state, b.polls, b.last_counts, b.expected_records, b.reconciled_records,
    b.last_attempt_no - b.first_attempt_no + 1 AS attempts,
    MIN(CASE WHEN m.to_state = 'submitted' THEN m.moved_at END) AS handed_over,
    MIN(CASE WHEN m.from_state = 'submitted' THEN m.moved_at END) AS left_queue,
    MIN(CASE WHEN m.to_state = 'running' THEN m.moved_at END) AS seen_running,
    MIN(CASE WHEN m.from_state = 'running' THEN m.moved_at END) AS left_running,
    MIN(CASE WHEN m.to_state IN ('results_available', 'reconciling') THEN m.moved_at END) AS there,
    MIN(CASE WHEN m.to_state IN ({_COMPLETE}) THEN m.moved_at END) AS complete,
    COUNT(CASE WHEN m.to_state = 'incident' THEN 1 END) AS incidents,
    COUNT(CASE WHEN m.to_state = 'quarantined' THEN 1 END) AS quarantines
FROM batches b LEFT JOIN moves m
    ON m.chain = 'batch:' || CAST(b.batch_no AS TEXT) AND m.machine = 'batch'
WHERE b.version_no = ? GROUP BY b.batch_no
"""  # noqa: S608 - our own states
_BATCH_SCHEMA = {
    "batch_no": pl.Int64,
    "state": pl.String,
    "polls": pl.Int64,
    "last_counts": pl.String,
    "expected_records": pl.Int64,
    "reconciled_records": pl.Int64,
    "attempts": pl.Int64,
    "handed_over": pl.String,
    "left_queue": pl.String,
    "seen_running": pl.String,
    "left_running": pl.String,
    "there": pl.String,
    "complete": pl.String,
    "incidents": pl.Int64,
    "quarantines": pl.Int64,
}
_HANDED_OVER = (
    "JOIN moves m ON m.chain = 'batch:' || CAST(b.batch_no AS TEXT) AND m.machine = 'batch' "
    "AND m.to_state = 'submitted' "
)
_RETRIES = (
    "SELECT a.recovery_path, COUNT(*) FROM batches b "  # noqa: S608 - our own text
    f"{_HANDED_OVER}"
    "JOIN attempts a ON a.attempt_no BETWEEN b.first_attempt_no AND b.last_attempt_no "
    "WHERE b.version_no = ? AND a.parent_attempt_no IS NOT NULL GROUP BY a.recovery_path"
)
_DISPOSITIONS = (
    "SELECT d.disposition, d.failure_class, COUNT(*) FROM batches b JOIN dispositions d "
    "ON d.attempt_no BETWEEN b.first_attempt_no AND b.last_attempt_no "
    "WHERE b.version_no = ? GROUP BY d.disposition, d.failure_class"
)
_FILES = (
    "SELECT COUNT(*), COALESCE(SUM(f.bytes), 0), COALESCE(SUM(f.lines), 0) FROM result_files f "
    "JOIN batches b ON b.batch_no = f.batch_no WHERE b.version_no = ?"
)


@dataclass(frozen=True)
class ProviderCounts:
    """What the provider says of the rows of the jobs that it works on now.

    A figure that none of these jobs tells is None; one that some of them tell is of those alone.

    Attributes:
        jobs: how many it works on.
        silent: of these, how many it says nothing of.
        total: rows.
        succeeded: rows that are done.
        failed: rows that failed.
        pending: rows still to do.
    """

    jobs: int
    silent: int
    total: int | None
    succeeded: int | None
    failed: int | None
    pending: int | None


@dataclass(frozen=True)
class OperationalFacts:
    """The figures of one processing version.

    Attributes:
        processing_version: its key.
        provider: who answers.
        mode: embedded, batch or online.
        queue_now: how long the batches that queue at the provider now have done so.
        queue_ended: how long those queued that were seen running, or done, since.
        running_now: how long the batches that run now have run since they were first seen running.
        running_ended: how long those ran whose results were there afterwards.
        reconciling_now: how long results have been there of batches that are not complete.
        reconciling_ended: how long it took from results to completion (reconciliation lag).
        provider_counts: what the provider says of the rows that it works on.
        dispositions: disposition → attempts; each of `DISPOSITIONS`, 0 where there is none.
        failures: failure class → attempts that did not succeed.
        jobs: batches that were handed over, ever.
        polls: looks at them, together.
        most_polls: looks at the job that needed most.
        attempts: attempts in those batches.
        retries: recovery path → of these, attempts that follow a failed one. Deliberate replays
            follow none.
        result_files: files that came back.
        download_bytes: their bytes.
        result_lines: their lines.
        unreconciled: batch state → records without a disposition; each of `UNRECONCILED`.
        incidents: batches in an incident now.
        incidents_ever: how often a batch came into one.
        quarantined: batches in quarantine now.
        quarantined_ever: how often a batch came into it.
    """

    processing_version: str
    provider: str
    mode: str
    queue_now: Distribution
    queue_ended: Distribution
    running_now: Distribution
    running_ended: Distribution
    reconciling_now: Distribution
    reconciling_ended: Distribution
    provider_counts: ProviderCounts
    dispositions: dict[str, int]
    failures: dict[str, int]
    jobs: int
    polls: int
    most_polls: int
    attempts: int
    retries: dict[str, int]
    result_files: int
    download_bytes: int
    result_lines: int
    unreconciled: dict[str, int]
    incidents: int
    incidents_ever: int
    quarantined: int
    quarantined_ever: int

    @property
    def retry_rate(self) -> float | None:
        """The share of attempts that follow a failed one; None before the first attempt."""
        return sum(self.retries.values()) / self.attempts if self.attempts else None

    @property
    def polls_per_job(self) -> float | None:
        """Looks at a job on average; None before the first job."""
        return self.polls / self.jobs if self.jobs else None

    def as_json(self) -> dict[str, Any]:
        """The figures as plain JSON values, in this order."""
        return {
            **msgspec.to_builtins(self),
            "retry_rate": self.retry_rate,
            "polls_per_job": self.polls_per_job,
        }


def operational_facts(
    context: Context, keys: Sequence[str] | None = None
) -> tuple[OperationalFacts, ...]:
    """The figures of the versions of these keys, or of every version; oldest first.

    A key that was never used here has no figures and is left out.
    """
    ledger, now = context.ledger, to_text(context.clock())
    with ledger.read() as connection:
        rows = connection.execute(
            select(
                processing_versions.c.version_no,
                processing_versions.c.key,
                processing_versions.c.spec,
            ).order_by(processing_versions.c.version_no)
        ).all()
        return tuple(
            _facts(connection, ledger, _Version(row.version_no, row.key, row.spec), now)
            for row in rows
            if keys is None or row.key in keys
        )


@dataclass(frozen=True)
class _Version:
    no: int
    key: str
    spec: str


def _facts(connection: Connection, ledger: Ledger, version: _Version, now: str) -> OperationalFacts:
    spec: dict[str, Any] = msgspec.json.decode(version.spec)
    found = ledger.dialect.fetch(connection, _BATCHES, _BATCH_SCHEMA, (version.no,))
    handed = found.filter(pl.col("handed_over").is_not_null())
    dispositions, failures = _dispositions(connection, ledger, version.no)
    files, size, lines = ledger.dialect.fetch(
        connection,
        _FILES,
        {"files": pl.Int64, "bytes": pl.Int64, "lines": pl.Int64},
        (version.no,),
    ).row(0)
    return OperationalFacts(
        processing_version=version.key,
        provider=str(spec["provider"]),
        mode=str(spec["mode"]),
        queue_now=_ages(found, ("submitted",), "handed_over", now),
        queue_ended=_spans(found, "handed_over", "left_queue"),
        running_now=_ages(found, ("running",), "seen_running", now),
        running_ended=_spans(found, "seen_running", "left_running"),
        reconciling_now=_ages(
            found, ("results_available", "reconciling", "incident"), "there", now
        ),
        reconciling_ended=_spans(found, "there", "complete"),
        provider_counts=_provider_counts(found.filter(pl.col("state").is_in(OUT))),
        dispositions=dispositions,
        failures=failures,
        jobs=handed.height,
        polls=int(handed["polls"].sum()),
        most_polls=_most(handed["polls"]),
        attempts=int(handed["attempts"].sum()),
        retries=_retries(connection, ledger, version.no),
        result_files=files,
        download_bytes=size,
        result_lines=lines,
        unreconciled=_unreconciled(found),
        incidents=found.filter(pl.col("state") == "incident").height,
        incidents_ever=int(found["incidents"].sum()),
        quarantined=found.filter(pl.col("state") == "quarantined").height,
        quarantined_ever=int(found["quarantines"].sum()),
    )


def _most(values: pl.Series) -> int:
    return 0 if values.is_empty() else max(values.to_list())


def _seconds(start: pl.Expr, end: pl.Expr) -> pl.Expr:
    span = end.str.to_datetime(_TIME, time_unit="us") - start.str.to_datetime(_TIME, time_unit="us")
    return span.dt.total_microseconds() / 1e6


def _ages(found: pl.DataFrame, states: Sequence[str], since: str, now: str) -> Distribution:
    """How long ago something was, of the batches that are in one of the states."""
    rows = found.filter(pl.col("state").is_in(states), pl.col(since).is_not_null())
    return distribution(rows.select(_seconds(pl.col(since), pl.lit(now)).alias("s"))["s"])


def _spans(found: pl.DataFrame, start: str, end: str) -> Distribution:
    """How long it was from one move to another, of the batches that made both."""
    rows = found.filter(pl.col(start).is_not_null(), pl.col(end).is_not_null())
    return distribution(rows.select(_seconds(pl.col(start), pl.col(end)).alias("s"))["s"])


def _unreconciled(found: pl.DataFrame) -> dict[str, int]:
    left = pl.col("expected_records") - pl.col("reconciled_records")
    counted = found.filter(pl.col("state").is_in(UNRECONCILED)).group_by("state").agg(left.sum())
    return dict.fromkeys(UNRECONCILED, 0) | dict(counted.iter_rows())


def _dispositions(
    connection: Connection, ledger: Ledger, version_no: int
) -> tuple[dict[str, int], dict[str, int]]:
    counted = ledger.dialect.fetch(
        connection,
        _DISPOSITIONS,
        {"disposition": pl.String, "failure_class": pl.String, "attempts": pl.Int64},
        (version_no,),
    )
    dispositions, failures = dict.fromkeys(DISPOSITIONS, 0), dict[str, int]()
    for disposition, failure, attempts in counted.sort("disposition", "failure_class").iter_rows():
        dispositions[disposition] = dispositions.get(disposition, 0) + attempts
        if failure is not None:
            failures[failure] = failures.get(failure, 0) + attempts
    return dispositions, failures


def _retries(connection: Connection, ledger: Ledger, version_no: int) -> dict[str, int]:
    counted = ledger.dialect.fetch(
        connection, _RETRIES, {"path": pl.String, "attempts": pl.Int64}, (version_no,)
    )
    return dict(counted.sort("path").iter_rows())


def _provider_counts(out: pl.DataFrame) -> ProviderCounts:
    told = [
        {name: value for name, value in msgspec.json.decode(text).items() if value is not None}
        for text in out["last_counts"].drop_nulls()
    ]
    told = [counts for counts in told if counts]

    def added_up(name: str) -> int | None:
        values = [int(counts[name]) for counts in told if name in counts]
        return sum(values) if values else None

    return ProviderCounts(
        jobs=out.height,
        silent=out.height - len(told),
        total=added_up("total"),
        succeeded=added_up("succeeded"),
        failed=added_up("failed"),
        pending=added_up("pending"),
    )
