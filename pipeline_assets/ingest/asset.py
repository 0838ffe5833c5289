"""The assets of ingest: `source_documents` and `parsed_documents`.

Belongs here: configuration, the call, metadata. Does not belong here: scanning (`scan.py`) and
parsing (`parse_documents.py`).
"""

import hashlib
import time

import dagster as dg
import msgspec
from pydantic import Field

from partitions.definition import PROCESSING_VERSIONS
from partitions.processing_version import find_spec
from pipeline_assets.ingest.declared_parser import declared_parser
from pipeline_assets.ingest.parse_documents import parse_documents
from pipeline_assets.ingest.scan import ScanReport, scan_declared
from pipeline_assets.provenance.asset import materialized, provenance_of
from pipeline_assets.stage_facts import parses_digest
from resources.context import Context
from resources.context_resource import ContextResource
from resources.ledger.source_snapshots import newest_digests

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


PARTITION_TAG = "dagster/partition"
COUNTED = (
    "documents",
    "excluded by the scan",
    "added",
    "changed",
    "removed",
    "unchanged",
    "documents read",
    "bytes read",
    "left alone until settled",
    "folders not listed",
)
"""What a scan counts, in the order of the table."""
_WORDS = {True: "available", False: "not installed", None: "not asked"}


class ScanConfig(dg.Config):
    """What a scan may be told."""

    source_moved: bool = Field(
        default=False,
        description="the source's folder was moved: take the new place for the same source",
    )
    only: str | None = Field(
        default=None, description="scan the source of this name alone; all of them if absent"
    )
    settle_seconds: int = Field(
        default=0,
        ge=0,
        description="leave a file alone that changed so recently: it may still be written",
    )


@dg.asset(
    group_name="tallybook",
    kinds={"filesystem", "python"},
    owners=["team:archive"],
    code_version="2",
    metadata={"dagster/column_schema": DOCUMENT_COLUMNS},
)
def source_documents(
    context: dg.AssetExecutionContext, tallybook: ContextResource, config: ScanConfig
) -> dg.MaterializeResult:
    """Snapshot of the sources: every document with its checksum, or why it is excluded.

    A run for one processing version scans the sources of its workload, another run all of them. A
    rescan of unchanged sources reads no bytes and keeps the data version.
    """
    started = time.monotonic()
    with tallybook.open() as opened:
        reports = scan_declared(
            opened,
            workload=_workload(opened, context.run.tags.get(PARTITION_TAG)),
            only=config.only,
            moved=config.source_moved,
            settle_seconds=config.settle_seconds,
        )
        newest = newest_digests(opened.ledger)
        content = hashlib.sha256(msgspec.json.encode(newest)).hexdigest()
        provenance = provenance_of(context, opened, content)
    numbers = _sums(reports)
    context.log.info(
        f"{numbers['documents']} documents, {numbers['excluded by the scan']} excluded"
    )
    return materialized(
        provenance,
        {
            "dagster/row_count": numbers["documents"],
            **numbers,
            "sources": _table(reports),
            "seconds": round(time.monotonic() - started, 3),
        },
    )


def _workload(opened: Context, version: str | None) -> str | None:
    return None if version is None else find_spec(version, opened.settings.spec_folders).workload


def _numbers(report: ScanReport) -> dict[str, int]:
    snapshot = report.snapshot
    return {
        "documents": snapshot.documents,
        "excluded by the scan": snapshot.excluded,
        "added": snapshot.added,
        "changed": snapshot.changed,
        "removed": snapshot.removed,
        "unchanged": snapshot.unchanged,
        "documents read": report.read,
        "bytes read": report.bytes_read,
        "left alone until settled": report.unsettled,
        "folders not listed": int(not report.complete),
    }


def _sums(reports: list[ScanReport]) -> dict[str, int]:
    told = [_numbers(report) for report in reports]
    return {name: sum(numbers[name] for numbers in told) for name in COUNTED}


def _table(reports: list[ScanReport]) -> dg.TableMetadataValue:
    return dg.MetadataValue.table(
        records=[
            dg.TableRecord({"source": report.source, **_numbers(report)}) for report in reports
        ],
        schema=dg.TableSchema(
            columns=[
                dg.TableColumn("source", "string"),
                *(dg.TableColumn(name, "int") for name in COUNTED),
            ]
        ),
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
        workload = find_spec(context.partition_key, opened.settings.spec_folders).workload
        report = parse_documents(opened, settings, workload)
        version = parses_digest(opened.ledger, settings.key, workload)
        provenance = provenance_of(context, opened, version)
    failed = sum(report.failed.values())
    context.log.info(f"{report.parsed} parsed, {failed} refused, {report.cached} cached")
    return materialized(
        provenance,
        {
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
