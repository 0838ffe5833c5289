"""The asset of collect: `provider_results`.

Belongs here: the call and its metadata. Does not belong here: reconciling
(`collect_batches.py`).
"""

import time

import dagster as dg

from partitions.definition import PROCESSING_VERSIONS
from pipeline_assets.collect.collect_batches import collect_batches
from pipeline_assets.provenance.asset import materialized, provenance_of
from pipeline_assets.recovery.breaker import look_at_breaker
from pipeline_assets.recovery.dead_letter_alerts import look_at_dead_letters
from pipeline_assets.stage_facts import results_digest
from pipeline_assets.versions import open_version
from resources.context_resource import ContextResource

NOTHING_TO_DO = "nothing to do: no batch has results that were not reconciled"
COLLECTED_COLUMNS = dg.TableSchema(
    columns=[
        dg.TableColumn("attempt_no", "Int64", "the try that succeeded"),
        dg.TableColumn("record_no", "Int64", "its record"),
        dg.TableColumn("answer", "String", "what the provider answered"),
    ]
)
COLLECTED_LINEAGE = dg.TableColumnLineage(
    {
        "attempt_no": [dg.TableColumnDep(dg.AssetKey("provider_batches"), "request_artifact")],
        "record_no": [dg.TableColumnDep(dg.AssetKey("manifest"), "record_id")],
        "answer": [dg.TableColumnDep(dg.AssetKey("provider_batches"), "request_artifact")],
    }
)


@dg.asset(
    deps=["provider_batches"],
    partitions_def=PROCESSING_VERSIONS,
    group_name="tallybook",
    kinds={"json", "parquet"},
    owners=["team:archive"],
    code_version="1",
    metadata={
        "dagster/column_schema": COLLECTED_COLUMNS,
        "dagster/column_lineage": COLLECTED_LINEAGE,
    },
)
def provider_results(
    context: dg.AssetExecutionContext, tallybook: ContextResource
) -> dg.MaterializeResult:
    """Raw results, kept as they came and reconciled against the manifest.

    Every attempt of a batch gets exactly one disposition, or the batch becomes an incident.
    """
    started = time.monotonic()
    with tallybook.open() as opened:
        version = open_version(opened, context.partition_key)
        report = collect_batches(opened, version)
        held = look_at_breaker(opened, version)
        look_at_dead_letters(opened, version.version_no, version.key)
        content = results_digest(opened.ledger, version.version_no)
        provenance = provenance_of(context, opened, content)
    reconciled = sum(report.dispositions.values())
    metadata: dict[str, dg.RawMetadataValue] = {
        "batches": report.batches,
        "reconciled": reconciled,
        "succeeded": report.dispositions.get("succeeded", 0),
        "failures": reconciled - report.dispositions.get("succeeded", 0),
        "dispositions": dict(report.dispositions),
        "decisions": dict(report.decisions),
        "late results": report.late,
        "late results used": report.late_used,
        "anomalies": sum(report.anomalies.values()),
        "anomalies by kind": dict(report.anomalies),
        "incidents": len(report.incidents),
        "seconds": round(time.monotonic() - started, 3),
    }
    if report.not_collectable:
        metadata["not collectable yet"] = report.not_collectable
    if report.not_deleted:
        metadata["not deleted at the provider yet"] = report.not_deleted
    if report.canaries:
        metadata["canaries"] = report.canaries
    for name, why in {**report.not_collectable, **report.not_deleted}.items():
        context.log.warning(f"{name}: {why}")
    if not report.batches and not report.not_collectable:
        metadata["note"] = NOTHING_TO_DO
    for batch, why in report.incidents.items():
        context.log.error(f"{batch} is an incident: {why}")
    if report.busy:
        metadata["another worker is at"] = report.busy
    if held is not None:
        metadata["held"] = held.reason
        context.log.warning(f"the version is held: {held.reason}")
    context.log.info(f"{reconciled} attempts reconciled")
    return materialized(provenance, metadata)
