"""The batches of a version as a report shows them: dispositions, files, and the life of the job.

Belongs here: reading them, an attempt counted once. Does not belong here: whether they add up
(`pipeline_assets/account/violations.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl
from sqlalchemy import Connection

from pipeline_assets.account.report import DISPOSITIONS
from resources.ledger.engine import Ledger

_BATCHES = (
    "SELECT b.batch_no, b.batch_id, m.manifest_id, b.state, b.provider, b.mode, b.model, "
    "b.provider_outcome, b.expected_records, b.reconciled_records, b.submitted_at, "
    "b.request_artifact, b.staging_artifact, b.catalogue_digest FROM batches b "
    "JOIN manifests m ON m.manifest_no = b.manifest_no WHERE {which} ORDER BY b.batch_no"
)
_MODELS = (
    "SELECT DISTINCT b.batch_no, p.model_revision FROM batches b JOIN dispositions p "
    "ON p.attempt_no BETWEEN b.first_attempt_no AND b.last_attempt_no "
    "WHERE {which} AND p.model_revision IS NOT NULL"
)
_FILES = (
    "SELECT f.batch_no, f.artifact FROM result_files f JOIN batches b ON b.batch_no = f.batch_no "
    "WHERE {which} ORDER BY f.result_file_no"
)
_DISPOSITIONS = (
    "SELECT b.batch_no, p.disposition, COUNT(*) FROM batches b JOIN dispositions p "
    "ON p.attempt_no BETWEEN b.first_attempt_no AND b.last_attempt_no "
    "WHERE {which} GROUP BY b.batch_no, p.disposition"
)
_BATCH_SCHEMA = {
    "batch_no": pl.Int64,
    "batch_id": pl.String,
    "manifest_id": pl.String,
    "state": pl.String,
    "provider": pl.String,
    "mode": pl.String,
    "model": pl.String,
    "provider_outcome": pl.String,
    "expected": pl.Int64,
    "reconciled": pl.Int64,
    "submitted_at": pl.String,
    "request_artifact": pl.String,
    "staging_artifact": pl.String,
    "catalogue": pl.String,
}


@dataclass(frozen=True)
class BatchFacts:
    """A batch in a report.

    Attributes:
        batch_no: its number in the ledger.
        batch_id: its name.
        manifest_id: whose share it is.
        state: where it stands.
        provider: who answers.
        mode: embedded, batch or online.
        model: what was asked for.
        provider_outcome: how the job ended early; None where it did not.
        expected: records.
        reconciled: records with a disposition, as the batch itself says.
        dispositions: each of the five → attempts.
        unknown: attempts without a disposition yet.
        models: revisions that answered, where the provider says so.
        submitted_at: UTC; None before.
        request_artifact: the request file.
        result_artifacts: the result files, as they came.
        staging_artifact: the judged values; None before.
        catalogue: digest of the product catalogue that it was judged with; None without one.
    """

    batch_no: int
    batch_id: str
    manifest_id: str
    state: str
    provider: str
    mode: str
    model: str
    provider_outcome: str | None
    expected: int
    reconciled: int
    dispositions: dict[str, int]
    unknown: int
    models: tuple[str, ...]
    submitted_at: str | None
    request_artifact: str
    result_artifacts: tuple[str, ...]
    staging_artifact: str | None
    catalogue: str | None


def batch_facts(
    connection: Connection, ledger: Ledger, version_no: int, batch_no: int | None = None
) -> tuple[BatchFacts, ...]:
    """The batches of a version, oldest first, or one of them, of which nothing else is read."""
    which, numbers = "b.version_no = ?", (version_no,)
    if batch_no is not None:
        which, numbers = "b.version_no = ? AND b.batch_no = ?", (version_no, batch_no)

    def fetch(sql: str, schema: Mapping[str, Any]) -> pl.DataFrame:
        return ledger.dialect.fetch(connection, sql.format(which=which), schema, numbers)

    named = {"batch_no": pl.Int64, "text": pl.String}
    counted = {"batch_no": pl.Int64, "disposition": pl.String, "attempts": pl.Int64}
    counts = {
        (number, name): count for number, name, count in fetch(_DISPOSITIONS, counted).iter_rows()
    }
    models = _grouped(fetch(_MODELS, named).sort("batch_no", "text"))
    files = _grouped(fetch(_FILES, named))
    return tuple(
        _facts(row, counts, models, files)
        for row in fetch(_BATCHES, _BATCH_SCHEMA).iter_rows(named=True)
    )


def _facts(
    row: dict[str, Any],
    counts: dict[tuple[int, str], int],
    models: dict[int, list[str]],
    files: dict[int, list[str]],
) -> BatchFacts:
    number = row["batch_no"]
    dispositions = {name: counts.get((number, name), 0) for name in DISPOSITIONS}
    return BatchFacts(
        **row,
        dispositions=dispositions,
        unknown=max(0, row["expected"] - sum(dispositions.values())),
        models=tuple(models.get(number, ())),
        result_artifacts=tuple(files.get(number, ())),
    )


def _grouped(rows: pl.DataFrame) -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    for number, text in rows.iter_rows():
        found.setdefault(number, []).append(text)
    return found
