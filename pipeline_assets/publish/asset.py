"""The asset of publish: `published_archive`.

Belongs here: the call and its metadata. Does not belong here: publishing
(`publish_accepted.py`).
"""

import time

import dagster as dg

from partitions.definition import PROCESSING_VERSIONS
from pipeline_assets.publish.publish_accepted import publish_accepted
from pipeline_assets.stage_facts import archive_digest, version_numbers
from pipeline_assets.versions import open_version
from resources.context_resource import ContextResource

NOTHING_TO_DO = "nothing to do: no accepted record is unpublished"
WAITING = (
    "{count} records wait: the version publishes by command only (operating setting promote). "
    "To publish them: tallybook promote {key} --reason TEXT"
)
ARCHIVE_COLUMNS = dg.TableSchema(
    columns=[
        dg.TableColumn("document_id", "String", "the document that the entry describes"),
        dg.TableColumn("archive_version", "Int64", "grows with each publication of a document"),
        dg.TableColumn("record_id", "String", "the record that gave the values"),
        dg.TableColumn("title", "Struct", "value, status, evidence"),
        dg.TableColumn("product_identifiers", "List", "of value, status, evidence"),
        dg.TableColumn("language", "Struct", "value, status, evidence"),
        dg.TableColumn("description", "Struct", "value, status, evidence"),
        dg.TableColumn("thumbnail", "String", "SHA-256 of the image"),
        dg.TableColumn("published_at", "String", "UTC"),
    ]
)
ARCHIVE_LINEAGE = dg.TableColumnLineage(
    {
        name: [dg.TableColumnDep(dg.AssetKey("validated_staging"), "content")]
        for name in ("title", "product_identifiers", "language", "description")
    }
    | {
        "document_id": [dg.TableColumnDep(dg.AssetKey("source_documents"), "document_id")],
        "record_id": [dg.TableColumnDep(dg.AssetKey("manifest"), "record_id")],
        "thumbnail": [dg.TableColumnDep(dg.AssetKey("source_documents"), "checksum")],
    }
)


@dg.asset(
    deps=["validated_staging"],
    partitions_def=PROCESSING_VERSIONS,
    group_name="tallybook",
    kinds={"sql", "python"},
    owners=["team:archive"],
    code_version="1",
    metadata={
        "dagster/column_schema": ARCHIVE_COLUMNS,
        "dagster/column_lineage": ARCHIVE_LINEAGE,
    },
)
def published_archive(
    context: dg.AssetExecutionContext, tallybook: ContextResource
) -> dg.MaterializeResult:
    """Accepted results: metadata record, search entry and thumbnail, together or not at all.

    Only what the ledger says is accepted is published, whatever ran before. A version whose
    promote policy is manual publishes by command; what waits for that is told here.
    """
    started = time.monotonic()
    with tallybook.open() as opened:
        version = open_version(opened, context.partition_key)
        report = publish_accepted(opened, version)
        content = archive_digest(opened.ledger, version.version_no)
        numbers = version_numbers(opened.ledger, version.version_no)
    metadata: dict[str, dg.RawMetadataValue] = {
        "dagster/partition_row_count": numbers.in_state("published"),
        "published": report.published,
        "published in all": numbers.in_state("published"),
        "delivered before": report.already,
        "replaced": report.replaced,
        "restored": report.restored,
        "corrected": report.corrected,
        "waiting for a promotion": report.waiting,
        "superseded": report.superseded,
        "review backlog": numbers.in_state("awaiting_review"),
        "seconds": round(time.monotonic() - started, 3),
    }
    if report.waiting:
        metadata["note"] = WAITING.format(count=report.waiting, key=context.partition_key)
    elif not report.changed:
        metadata["note"] = NOTHING_TO_DO
    context.log.info(f"{report.published} published, {numbers.in_state('published')} in all")
    return dg.MaterializeResult(data_version=dg.DataVersion(content), metadata=metadata)
