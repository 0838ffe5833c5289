"""The asset of submit: `provider_batches`.

Belongs here: the call and its metadata. Does not belong here: handing batches over
(`submit_batches.py`).
"""

import time

import dagster as dg

from partitions.definition import PROCESSING_VERSIONS
from pipeline_assets.provenance.asset import materialized, provenance_of
from pipeline_assets.stage_facts import submitted_digest
from pipeline_assets.submit.submit_batches import submit_batches
from pipeline_assets.versions import open_version
from resources.context_resource import ContextResource

NOTHING_TO_DO = "nothing to do: every batch was handed to its provider"
BATCH_COLUMNS = dg.TableSchema(
    columns=[
        dg.TableColumn("batch_id", "String", "manifest and number of the batch in it"),
        dg.TableColumn("manifest_digest", "String", "of the manifest that the batch is part of"),
        dg.TableColumn("request_artifact", "String", "SHA-256 of the request file"),
        dg.TableColumn("provider_job_id", "String", "the provider's name of the job"),
        dg.TableColumn("state", "String", "see docs/transitions.md"),
        dg.TableColumn("submitted_at", "String", "UTC"),
    ]
)
BATCH_LINEAGE = dg.TableColumnLineage(
    {"request_artifact": [dg.TableColumnDep(dg.AssetKey("manifest"), "request_digest")]}
)


@dg.asset(
    deps=["manifest"],
    partitions_def=PROCESSING_VERSIONS,
    group_name="tallybook",
    kinds={"json", "python"},
    owners=["team:archive"],
    code_version="1",
    metadata={
        "dagster/column_schema": BATCH_COLUMNS,
        "dagster/column_lineage": BATCH_LINEAGE,
    },
)
def provider_batches(
    context: dg.AssetExecutionContext, tallybook: ContextResource
) -> dg.MaterializeResult:
    """Batches handed to the provider, or answered inside the run by an embedded one.

    The intent is durable before the provider is called; nothing is handed over twice.
    """
    started = time.monotonic()
    with tallybook.open() as opened:
        version = open_version(opened, context.partition_key)
        report = submit_batches(opened, version)
        content = submitted_digest(opened.ledger, version.version_no)
        provenance = provenance_of(context, opened, content)
    metadata: dict[str, dg.RawMetadataValue] = {
        "batches": report.batches,
        "records": report.records,
        "provider": version.spec.provider,
        "model": version.spec.model,
        "seconds": round(time.monotonic() - started, 3),
    }
    if report.held is not None:
        metadata["held"] = {"kind": report.held.kind, "since": report.held.since}
    if report.waiting:
        metadata["waiting"] = report.waiting
        for name, why in report.waiting.items():
            context.log.info(f"{name} waits: {why}")
    elif not report.batches:
        metadata["note"] = NOTHING_TO_DO
    context.log.info(f"{report.batches} batches with {report.records} records handed over")
    return materialized(provenance, metadata)
