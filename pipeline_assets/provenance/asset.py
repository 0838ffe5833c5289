"""The one way in which an asset tells what it made, always with its provenance.

Belongs here: what Dagster knows of a materialisation, and the result that every asset returns.
Does not belong here: the record (`record.py`) and any asset.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import dagster as dg

from pipeline_assets.provenance.record import (
    CONTRACT_VERSION,
    KEY,
    Input,
    Provenance,
    counts_of,
    release,
    replay_of_run,
    subject_of,
)
from resources.context import Context

PARTITION_TAG = "dagster/partition"
DATA_VERSION_TAG = "dagster/data_version"


def provenance_of(
    context: dg.AssetExecutionContext, opened: Context, data_version: str
) -> Provenance:
    """The provenance of what an asset has just made, without its counts.

    Args:
        context: the asset's.
        opened: the open resources that it was made with.
        data_version: the digest of what the asset stands for now.
    """
    # Also of a run whose assets are not all partitioned.
    key = context.run.tags.get(PARTITION_TAG)
    subject = subject_of(opened, key)
    partitioned = _is_partitioned(context, context.asset_key)
    return Provenance(
        contract_version=CONTRACT_VERSION,
        asset=context.asset_key.to_user_string(),
        processing_version=key if partitioned else None,
        workload=subject.workload,
        spec_digest=subject.spec_digest if partitioned else None,
        code_version=context.assets_def.get_asset_spec(context.asset_key).code_version,
        release=release(),
        ledger_id=opened.ledger.ledger_id,
        run_id=context.run.run_id,
        data_version=data_version,
        inputs=_inputs(context),
        counts={},
        replay_id=replay_of_run(opened, key, context.run.root_run_id or context.run.run_id),
        made_at=opened.ledger.now(),
    )


def materialized(provenance: Provenance, metadata: Mapping[str, Any]) -> dg.MaterializeResult:
    """What an asset returns: its metadata, its data version and its provenance.

    Args:
        provenance: of `provenance_of`.
        metadata: what else the asset reports; its whole numbers are the record's counts.
    """
    record = replace(provenance, counts=counts_of(metadata))
    return dg.MaterializeResult(
        data_version=dg.DataVersion(record.data_version),
        metadata={**metadata, KEY: dg.MetadataValue.json(record.as_json())},
    )


def _inputs(context: dg.AssetExecutionContext) -> tuple[Input, ...]:
    deps = context.assets_def.get_asset_spec(context.asset_key).deps
    return tuple(_input(context, key) for key in sorted(dep.asset_key for dep in deps))


def _input(context: dg.AssetExecutionContext, asset: dg.AssetKey) -> Input:
    """What the asset's newest materialisation was: of this run's partition, or without one."""
    partition = context.partition_key if _is_partitioned(context, asset) else None
    found = context.instance.fetch_materializations(
        dg.AssetRecordsFilter(
            asset_key=asset, asset_partitions=None if partition is None else [partition]
        ),
        limit=1,
    )
    event = found.records[0].asset_materialization if found.records else None
    tags = {} if event is None else event.tags or {}
    return Input(asset.to_user_string(), tags.get(DATA_VERSION_TAG), partition)


def _is_partitioned(context: dg.AssetExecutionContext, asset: dg.AssetKey) -> bool:
    # Of the job: a run in this process has no repository.
    return context.job_def.asset_layer.get(asset).is_partitioned
