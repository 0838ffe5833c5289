"""The asset of account: `reconciliation_report`.

Belongs here: the call and its metadata. Does not belong here: counting (`report.py`).
"""

import dagster as dg

from partitions.definition import PROCESSING_VERSIONS
from pipeline_assets.account.report import build_report, store_report
from pipeline_assets.provenance.asset import materialized, provenance_of
from pipeline_assets.stage_facts import version_numbers
from pipeline_assets.versions import open_version
from resources.context_resource import ContextResource

UNCHANGED = "nothing changed since the report before"
REPORT_COLUMNS = dg.TableSchema(
    columns=[
        dg.TableColumn("processing_version", "String", "the partition"),
        dg.TableColumn("documents", "Int64", "what the sources hold now"),
        dg.TableColumn("expected", "Int64", "documents with a record for their present bytes"),
        dg.TableColumn("states", "Struct", "state to number of records"),
        dg.TableColumn("excluded", "Struct", "reason to number of documents"),
        dg.TableColumn("invariant_holds", "Boolean", "everything adds up"),
    ]
)


@dg.asset(
    # The report tells what of the sample is decided.
    deps=["published_archive", "quality_sample"],
    partitions_def=PROCESSING_VERSIONS,
    group_name="tallybook",
    kinds={"json", "sql"},
    owners=["team:archive"],
    code_version="1",
    metadata={"dagster/column_schema": REPORT_COLUMNS},
)
def reconciliation_report(
    context: dg.AssetExecutionContext, tallybook: ContextResource
) -> dg.MaterializeResult:
    """The account of every document: its record and how that stands, or why it has none."""
    with tallybook.open() as opened:
        version = open_version(opened, context.partition_key)
        report = build_report(opened, version.key)
        stored = store_report(opened, report)
        numbers = version_numbers(opened.ledger, version.version_no)
        provenance = provenance_of(context, opened, report.content_digest)
    metadata: dict[str, dg.RawMetadataValue] = {
        "documents": report.documents,
        "expected": report.expected,
        "excluded": sum(report.excluded.values()),
        "accepted": report.states.get("accepted", 0),
        "awaiting review": report.states.get("awaiting_review", 0),
        "dead letters": report.states.get("dead_letter", 0),
        "published": report.states.get("published", 0),
        "failures": sum(numbers.failures.values()),
        "oldest open record, hours": numbers.oldest_open_hours,
        "violations": len(report.violations),
        "states": report.states,
        "excluded by reason": report.excluded,
        "failures by class": numbers.failures,
        "seconds": report.seconds,
    }
    if not stored:
        metadata["note"] = UNCHANGED
    context.log.info(
        f"{report.documents} documents: {report.expected} expected, "
        f"{sum(report.excluded.values())} excluded; "
        f"the account {'adds up' if report.invariant_holds else 'does not add up'}"
    )
    return materialized(provenance, metadata)
