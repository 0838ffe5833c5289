"""The asset of publish: `published_archive`.

Belongs here: the call and its metadata. Does not belong here: publishing
(`publish_accepted.py`).
"""

import time
from collections.abc import Sequence

import dagster as dg

from partitions.definition import PROCESSING_VERSIONS
from pipeline_assets.provenance.asset import materialized, provenance_of
from pipeline_assets.publish.publish_accepted import publish_accepted
from pipeline_assets.publish.withdraw import withdraw_removed
from pipeline_assets.stage_facts import archive_digest, version_numbers
from pipeline_assets.versions import open_version
from pipeline_assets.workloads.workload import PublishedField
from resources.context_resource import ContextResource

NOTHING_TO_DO = "nothing to do: no accepted record is unpublished"
BUSY = "another worker is withdrawing removed documents; what it leaves, the next run does"
WAITING = (
    "{count} records wait: the version publishes by command only (operating setting promote). "
    "To publish them: tallybook promote {key} --reason TEXT"
)
ARCHIVE_COLUMNS = dg.TableSchema(
    columns=[
        dg.TableColumn("document_id", "String", "the document that the entry describes"),
        dg.TableColumn("archive_version", "Int64", "grows with each publication of a document"),
        dg.TableColumn("record_id", "String", "the record that gave the values"),
        dg.TableColumn("content", "String", "JSON: the workload's fields with their evidence"),
        dg.TableColumn("thumbnail", "String", "SHA-256 of the image"),
        dg.TableColumn("published_at", "String", "UTC"),
    ]
)
_STAGED = dg.TableColumnDep(dg.AssetKey("validated_staging"), "content")
ARCHIVE_LINEAGE = dg.TableColumnLineage(
    {
        "content": [_STAGED],
        "document_id": [dg.TableColumnDep(dg.AssetKey("source_documents"), "document_id")],
        "record_id": [dg.TableColumnDep(dg.AssetKey("manifest"), "record_id")],
        "thumbnail": [dg.TableColumnDep(dg.AssetKey("source_documents"), "checksum")],
    }
)


def archive_columns(fields: Sequence[PublishedField]) -> dg.TableSchema:
    """The columns of the archive, and the fields inside `content` that the workload declares."""
    inside = [
        dg.TableColumn(
            f"content.{field.name}",
            "List" if field.many else "Struct",
            f"{field.label}: {'a list of ' if field.many else ''}value, status, evidence",
        )
        for field in fields
    ]
    return dg.TableSchema(columns=[*ARCHIVE_COLUMNS.columns, *inside])


def archive_lineage(fields: Sequence[PublishedField]) -> dg.TableColumnLineage:
    """Where the columns of `archive_columns` come from."""
    inside = {f"content.{field.name}": [_STAGED] for field in fields}
    return dg.TableColumnLineage({**ARCHIVE_LINEAGE.deps_by_column, **inside})


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
    promote policy is manual publishes by command; what waits for that is told here. Documents that
    left a source whose policy is to withdraw them leave the archive first.
    """
    started = time.monotonic()
    with tallybook.open() as opened:
        version = open_version(opened, context.partition_key)
        removal = withdraw_removed(opened, version)
        report = publish_accepted(opened, version)
        content = archive_digest(opened.ledger, version.version_no)
        provenance = provenance_of(context, opened, content)
        numbers = version_numbers(opened.ledger, version.version_no)
    metadata: dict[str, dg.RawMetadataValue] = {
        "dagster/column_schema": archive_columns(version.workload.fields),
        "dagster/column_lineage": archive_lineage(version.workload.fields),
        "dagster/partition_row_count": numbers.in_state("published"),
        "published": report.published,
        "published in all": numbers.in_state("published"),
        "delivered before": report.already,
        "replaced": report.replaced,
        "restored": report.restored + removal.shown,
        "corrected": report.corrected,
        "waiting for a promotion": report.waiting,
        "superseded": report.superseded,
        "withdrawn": removal.withdrawn,
        "left the archive": removal.ended,
        "came back": removal.returned,
        "left for later": removal.later,
        "review backlog": numbers.in_state("awaiting_review"),
        "seconds": round(time.monotonic() - started, 3),
    }
    if report.waiting:
        metadata["note"] = WAITING.format(count=report.waiting, key=context.partition_key)
    elif removal.busy:
        metadata["note"] = BUSY
    elif not report.changed and not removal.changed:
        metadata["note"] = NOTHING_TO_DO
    context.log.info(f"{report.published} published, {numbers.in_state('published')} in all")
    return materialized(provenance, metadata)
