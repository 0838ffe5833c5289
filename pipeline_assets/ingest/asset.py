"""The assets of ingest: `source_documents` and `parsed_documents`.

Belongs here: configuration, the call, metadata. Does not belong here: scanning (`scan.py`) and
parsing (`parse_documents.py`).
"""

import time

import dagster as dg
from pydantic import Field

from partitions.definition import PROCESSING_VERSIONS
from pipeline_assets.ingest.declared_parser import declared_parser
from pipeline_assets.ingest.parse_documents import parse_documents
from pipeline_assets.ingest.scan import scan_folder
from pipeline_assets.stage_facts import parses_digest
from resources.context_resource import ContextResource

DOCUMENT_COLUMNS = dg.TableSchema(
    columns=[
        dg.TableColumn("document_id", "String", "source name and relative path, escaped"),
        dg.TableColumn("checksum", "String", "SHA-256 of the bytes; null where excluded"),
        dg.TableColumn("size", "Int64", "bytes"),
        dg.TableColumn("excluded", "String", "why it is no document to work on; else null"),
    ]
)
TEXT_COLUMNS = dg.TableSchema(
    columns=[
        dg.TableColumn("checksum", "String", "the source version that was parsed"),
        dg.TableColumn("page", "Int32", "from 1"),
        dg.TableColumn("origin", "String", "where the page's text comes from"),
        dg.TableColumn("offset", "Int64", "of the page in the document's text, in code points"),
        dg.TableColumn("text", "String", "the page's text"),
    ]
)
TEXT_LINEAGE = dg.TableColumnLineage(
    {
        # The bytes that a checksum names give everything else.
        name: [dg.TableColumnDep(dg.AssetKey("source_documents"), "checksum")]
        for name in ("checksum", "page", "origin", "offset", "text")
    }
)


_WORDS = {True: "available", False: "not installed", None: "not asked"}


class ScanConfig(dg.Config):
    """What a scan may be told."""

    source_moved: bool = Field(
        default=False,
        description="the source's folder was moved: take the new place for the same source",
    )


@dg.asset(
    group_name="tallybook",
    kinds={"filesystem", "python"},
    owners=["team:archive"],
    code_version="1",
    metadata={"dagster/column_schema": DOCUMENT_COLUMNS},
)
def source_documents(
    context: dg.AssetExecutionContext, tallybook: ContextResource, config: ScanConfig
) -> dg.MaterializeResult:
    """Snapshot of the sources: every document with its checksum, or why it is excluded.

    A rescan of an unchanged source reads no bytes and keeps the data version.
    """
    started = time.monotonic()
    with tallybook.open() as opened:
        report = scan_folder(opened, moved=config.source_moved)
    snapshot = report.snapshot
    context.log.info(f"{snapshot.documents} documents, {snapshot.excluded} excluded")
    return dg.MaterializeResult(
        data_version=dg.DataVersion(snapshot.digest),
        metadata={
            "dagster/row_count": snapshot.documents,
            "documents": snapshot.documents,
            "excluded by the scan": snapshot.excluded,
            "added": snapshot.added,
            "changed": snapshot.changed,
            "removed": snapshot.removed,
            "unchanged": snapshot.unchanged,
            "documents read": report.read,
            "bytes read": report.bytes_read,
            "folders not listed": int(not report.complete),
            "seconds": round(time.monotonic() - started, 3),
        },
    )


@dg.asset(
    deps=[source_documents],
    partitions_def=PROCESSING_VERSIONS,
    group_name="tallybook",
    kinds={"pdf", "parquet"},
    owners=["team:archive"],
    code_version="1",
    metadata={
        "dagster/column_schema": TEXT_COLUMNS,
        "dagster/column_lineage": TEXT_LINEAGE,
    },
)
def parsed_documents(
    context: dg.AssetExecutionContext, tallybook: ContextResource
) -> dg.MaterializeResult:
    """Text by page with offsets, page count, language and thumbnail of every document.

    Cached by (checksum, parser version): another prompt, model or schema parses nothing again.
    """
    with tallybook.open() as opened:
        settings = declared_parser(opened, context.partition_key)
        report = parse_documents(opened, settings)
        version = parses_digest(opened.ledger, settings.key)
    failed = sum(report.failed.values())
    context.log.info(f"{report.parsed} parsed, {failed} refused, {report.cached} cached")
    return dg.MaterializeResult(
        data_version=dg.DataVersion(version),
        metadata={
            "dagster/partition_row_count": report.parsed + failed + report.cached,
            "parsed": report.parsed,
            "refused": failed,
            "refused by reason": report.failed,
            "parsed in an earlier run": report.cached,
            "bytes gone": report.gone,
            "peak parser MiB": round(report.peak_rss_bytes / 2**20, 1),
            "text recognition": _WORDS[report.ocr_available],
            "seconds": round(report.wall_seconds, 3),
        },
    )
