"""The asset of prepare: `manifest`.

Belongs here: configuration, the call, metadata. Does not belong here: what goes into a manifest
(`candidates.py`), freezing it (`freeze.py`) and retries (`retries.py`).
"""

import time

import dagster as dg
from pydantic import Field

from partitions.definition import PROCESSING_VERSIONS
from pipeline_assets.prepare.freeze import REPLAY_REASONS, FreezeReport, freeze_manifest
from pipeline_assets.prepare.retries import freeze_retries
from pipeline_assets.stage_facts import manifests_digest
from pipeline_assets.versions import open_version
from resources.context_resource import ContextResource

NOTHING_TO_DO = (
    "nothing to do: every present document has a record or is excluded; to process again use a "
    "replay"
)
NOTHING_FROZEN = FreezeReport(None, None, 0, 0, 0, {})
MANIFEST_COLUMNS = dg.TableSchema(
    columns=[
        dg.TableColumn("record_id", "String", "workload, document, checksum and version"),
        dg.TableColumn("business_key", "String", "the document's id"),
        dg.TableColumn("operation", "String", "the kind of work"),
        dg.TableColumn("schema_version", "Int64", "of the output schema"),
        dg.TableColumn("source_checksum", "String", "SHA-256 of the document's bytes"),
        dg.TableColumn("request_digest", "String", "SHA-256 of the frozen request body"),
        dg.TableColumn("replay_reason", "String", "why the record is processed"),
        dg.TableColumn("batch", "Int64", "number of its batch in the manifest, from 0"),
        dg.TableColumn("offset", "Int64", "of the request in the batch's file, in bytes"),
        dg.TableColumn("length", "Int64", "of the request, in bytes"),
    ]
)
MANIFEST_LINEAGE = dg.TableColumnLineage(
    {
        "record_id": [dg.TableColumnDep(dg.AssetKey("source_documents"), "document_id")],
        "business_key": [dg.TableColumnDep(dg.AssetKey("source_documents"), "document_id")],
        "source_checksum": [dg.TableColumnDep(dg.AssetKey("parsed_documents"), "checksum")],
        "request_digest": [dg.TableColumnDep(dg.AssetKey("parsed_documents"), "text")],
    }
)


class FreezeConfig(dg.Config):
    """What freezing may be told."""

    replay_reason: str | None = Field(
        default=None,
        description="why documents are processed again: one of " + ", ".join(REPLAY_REASONS),
    )
    retries_only: bool = Field(
        default=False,
        description="freeze only what is due for another attempt, no document that is new",
    )


@dg.asset(
    deps=["parsed_documents"],
    partitions_def=PROCESSING_VERSIONS,
    group_name="tallybook",
    kinds={"parquet", "json"},
    owners=["team:archive"],
    code_version="1",
    metadata={
        "dagster/column_schema": MANIFEST_COLUMNS,
        "dagster/column_lineage": MANIFEST_LINEAGE,
    },
)
def manifest(
    context: dg.AssetExecutionContext, tallybook: ContextResource, config: FreezeConfig
) -> dg.MaterializeResult:
    """The frozen, digested list of records to process, and their request files of exact bytes.

    A manifest never changes. Where every present document has a record, nothing new is frozen;
    records that are due for another attempt get a retry manifest.
    """
    started = time.monotonic()
    with tallybook.open() as opened:
        version = open_version(opened, context.partition_key)
        report = NOTHING_FROZEN
        if not config.retries_only:
            report = freeze_manifest(opened, version, replay_reason=config.replay_reason)
        again = freeze_retries(opened, version)
        content = manifests_digest(opened.ledger, version.version_no)
    metadata: dict[str, dg.RawMetadataValue] = {
        "batches": report.batches + again.batches,
        "seconds": round(time.monotonic() - started, 3),
    }
    if not config.retries_only:
        metadata |= {
            "dagster/partition_row_count": report.expected + report.already,
            "expected": report.expected,
            "already recorded": report.already,
            "excluded": sum(report.excluded.values()),
            "excluded by reason": report.excluded,
        }
    if again.manifest_id is not None:
        metadata |= {
            "retry manifest": again.manifest_id,
            "tried again": again.records,
            "tried again by path": again.paths,
        }
        context.log.info(f"{again.manifest_id}: {again.records} records are tried again")
    if again.refused:
        metadata["given up"] = again.refused
    if again.waiting is not None:
        metadata["retries wait"] = again.waiting
        context.log.info(f"retries wait: {again.waiting}")
    if report.manifest_id is None and again.manifest_id is None:
        metadata["note"] = NOTHING_TO_DO
        context.log.info(NOTHING_TO_DO)
    if report.manifest_id is not None:
        metadata |= {"manifest": report.manifest_id, "manifest digest": str(report.digest)}
        context.log.info(f"{report.manifest_id}: {report.expected} records")
    return dg.MaterializeResult(data_version=dg.DataVersion(content), metadata=metadata)
