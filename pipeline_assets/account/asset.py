"""The asset of account: `reconciliation_report`.

Belongs here: the call and its metadata. Does not belong here: counting (`report.py`) and keeping
what was counted (`reconciliation/`).
"""

from collections.abc import Iterable

import dagster as dg

from partitions.definition import PROCESSING_VERSIONS
from pipeline_assets.account.plotted import plotted_numbers
from pipeline_assets.account.reconciliation.kept import keep_batch_reports, keep_report
from pipeline_assets.account.reconciliation.tally import Step
from pipeline_assets.account.remembered_costs import CostsReadOnce
from pipeline_assets.provenance.asset import materialized, provenance_of
from pipeline_assets.stage_facts import version_numbers
from pipeline_assets.tracing.export import export_traces
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
        # First: the newest kept report is that of the version.
        of_batches = keep_batch_reports(opened, version.key)
        # It looks at every attempt and every way of a record: once is enough.
        costs = CostsReadOnce()
        kept = keep_report(opened, version.key, read_cost=costs.account)
        numbers = version_numbers(opened.ledger, version.version_no)
        plotted = plotted_numbers(opened, version.key, costs)
        provenance = provenance_of(context, opened, kept.digest)
        # Last: what was exported is told of records whose report is kept.
        traces = export_traces(opened, version.key)
    report, details = kept.report.account, kept.report.details
    metadata: dict[str, dg.RawMetadataValue] = {
        **plotted,
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
        "not published": details.outcomes.records - _reached(details.steps, "published"),
        "report": kept.report_no,
        "reports of batches kept": of_batches,
        "outcomes": details.outcomes.rows,
        "Merkle root": details.outcomes.merkle_root,
        "how to read it": dg.MetadataValue.text(
            f"tallybook report --number {kept.report_no} --html report.html"
        ),
        "seconds": report.seconds,
    }
    if not kept.is_new:
        metadata["note"] = UNCHANGED
    if traces.exporter != "off":
        metadata["spans"] = traces.spans
    if traces.problem:
        context.log.warning(f"no traces: {traces.problem}")
    context.log.info(
        f"{report.documents} documents: {report.expected} expected, "
        f"{sum(report.excluded.values())} excluded; "
        f"the account {'adds up' if report.invariant_holds else 'does not add up'}"
    )
    return materialized(provenance, metadata)


def _reached(steps: Iterable[Step], name: str) -> int:
    return next(step.records for step in steps if step.name == name)
