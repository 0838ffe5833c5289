"""The rows of a manifest as they are frozen, from the batches that were planned.

Belongs here: the one form of a manifest's row. Does not belong here: which records are in it
(`freeze.py`, `retries.py`).
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from pipeline_assets.versions import OpenVersion
from resources.contracts import MANIFEST
from resources.ledger.manifests import BatchPlan, ManifestDigest


def manifest_rows(
    version: OpenVersion, plans: list[BatchPlan], digest: ManifestDigest
) -> Iterator[pl.DataFrame]:
    """The rows of a manifest, a batch at a time, each added to the digest."""
    for plan in plans:
        shard = MANIFEST.conform(
            plan.rows.read().select(
                "record_id",
                "operation",
                "request_digest",
                "replay_reason",
                "offset",
                "length",
                business_key="document_id",
                schema_version=pl.lit(version.spec.schema_version, dtype=pl.Int64),
                source_checksum="checksum",
                batch=pl.lit(plan.ordinal, dtype=pl.Int64),
            )
        )
        digest.add(shard)
        yield shard
