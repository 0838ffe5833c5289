"""The evidence of a batch, read and reconciled: its frozen manifest and its stored result files.

Belongs here: verifying both against their digests and handing them to `reconcile.py`. Does not
belong here: the decision itself, and writing what it means (`settle.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import polars as pl

from pipeline_assets.collect.observe import OBSERVED_SCHEMA, observe
from pipeline_assets.collect.reconcile import REPAIRED_SCHEMA, Reconciliation, reconcile
from pipeline_assets.failures import unanswered
from pipeline_assets.providers import result_reader
from pipeline_assets.versions import OpenVersion
from resources.artifacts import ArtifactDamaged, ArtifactMissing
from resources.context import Context
from resources.contracts import MANIFEST, ContractRefused, scan_frame
from resources.ledger.batches import Batch, attempts_of, earlier_attempts, has_parents
from resources.ledger.manifests import ManifestChanged, verify_manifest
from resources.ledger.results import result_files_of
from resources.record_ids import custom_id, reference

EVIDENCE_DAMAGED = (ArtifactDamaged, ArtifactMissing, ContractRefused, ManifestChanged)
"""What makes a batch an incident: what is stored is not what was stored."""


@dataclass
class Verified:
    """Manifest files that were compared with their digests in this run."""

    artifacts: set[str] = field(default_factory=set)


def reconcile_batch(
    context: Context, version: OpenVersion, batch: Batch, verified: Verified
) -> Reconciliation:
    """Reconcile a batch's stored results with its frozen manifest.

    Raises:
        ArtifactDamaged, ArtifactMissing, ContractRefused: a stored file is not what was stored.
        ManifestChanged: the manifest's rows are not those that were frozen.
    """
    with context.ledger.read() as connection:
        expected = attempts_of(connection, context.ledger, batch)
        again = has_parents(connection, batch.batch_no)
        earlier = earlier_attempts(connection, context.ledger, batch) if again else None
    _verify_manifest(context, batch, expected, verified)
    observed = _observed(context, version, batch)
    outcome = reconcile(
        _named(expected),
        observed.drop("repairs"),
        batch.batch_key,
        batch.first_attempt_no,
        unanswered(batch.provider_outcome, batch.error_class, batch.error_code),
        earlier=None if earlier is None else _with_ids(_named(earlier)),
        count_identical_once=version.workload.identical_duplicates == "count_once",
    )
    return replace(outcome, repairs=_repairs(observed))


def _observed(context: Context, version: OpenVersion, batch: Batch) -> pl.DataFrame:
    reader = result_reader(version)
    workload = version.workload
    frames = [pl.DataFrame(schema=OBSERVED_SCHEMA)]
    for file_no, _, artifact, *_ in result_files_of(context.ledger, batch.batch_no).iter_rows():
        context.artifacts.verify("result", artifact)
        with context.artifacts.open("result", artifact) as stream:
            frames.append(
                observe(
                    reader,
                    workload.check_answer,
                    file_no,
                    stream,
                    echoed=workload.echoed,
                    repairs=version.acceptance.repairs,
                )
            )
    return pl.concat(frames)


def _repairs(observed: pl.DataFrame) -> pl.DataFrame:
    """What was mended, one row a repair (`REPAIRED_SCHEMA`)."""
    mended = observed.filter(pl.col("repairs").is_not_null())
    if mended.is_empty():
        return pl.DataFrame(schema=REPAIRED_SCHEMA)
    return (
        mended.select(
            "result_file_no",
            "line",
            "repairs",
            ordinal=pl.int_ranges(0, pl.col("repairs").list.len(), dtype=pl.Int64),
        )
        .explode("repairs", "ordinal", empty_as_null=False)
        .unnest("repairs")
        .select(list(REPAIRED_SCHEMA))
    )


def _named(attempts: pl.DataFrame) -> pl.DataFrame:
    """Add what each attempt's request calls its document."""
    names = [reference(record_id) for record_id in attempts["record_id"]]
    return attempts.with_columns(reference=pl.Series(names, dtype=pl.String))


def _with_ids(earlier: pl.DataFrame) -> pl.DataFrame:
    columns = ("batch_key", "attempt_no", "first_attempt_no")
    ids = [
        custom_id(key, attempt_no - first)
        for key, attempt_no, first in earlier.select(columns).iter_rows()
    ]
    return earlier.select(
        "attempt_no", "record_no", "reference", custom_id=pl.Series(ids, dtype=pl.String)
    )


def _verify_manifest(
    context: Context, batch: Batch, expected: pl.DataFrame, verified: Verified
) -> None:
    """The frozen manifest must be the one whose digest stands beside the batch."""
    path = context.artifacts.require("manifest", batch.manifest_artifact)
    if batch.manifest_artifact not in verified.artifacts:
        context.artifacts.verify("manifest", batch.manifest_artifact)
        verify_manifest(path, batch.manifest_id, batch.manifest_digest)
        verified.artifacts.add(batch.manifest_artifact)
    columns = ("record_id", "request_digest", "offset", "length")
    frozen = (
        scan_frame(MANIFEST, path)
        .filter(pl.col("batch") == batch.ordinal)
        .select(columns)
        .collect()
    )
    if not frozen.equals(expected.select(columns)):
        raise ManifestChanged(batch.manifest_id, batch.manifest_digest, "other attempts")
