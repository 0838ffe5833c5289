"""The asset of accept: `validated_staging`.

Belongs here: the call and its metadata. Does not belong here: judging (`judge.py`).
"""

import time
from collections.abc import Sequence

import dagster as dg

from partitions.definition import PROCESSING_VERSIONS
from pipeline_assets.accept.judge_batches import judge_batches
from pipeline_assets.provenance.asset import materialized, provenance_of
from pipeline_assets.stage_facts import staging_digest, version_numbers
from pipeline_assets.versions import open_version
from pipeline_assets.workloads.column_registry import ColumnRule
from resources.context_resource import ContextResource
from resources.ledger.archive_content import AS_THEY_ARE, SEARCH_COLUMNS, TOKENS

NOTHING_TO_DO = "nothing to do: every collected answer was judged"
STAGING_COLUMNS = dg.TableSchema(
    columns=[
        dg.TableColumn("attempt_no", "Int64", "the try whose answer was judged"),
        dg.TableColumn("record_no", "Int64", "its record"),
        dg.TableColumn("outcome", "String", "accepted, or awaiting_review"),
        dg.TableColumn("content", "String", "the judged values as JSON, with their evidence"),
        dg.TableColumn("values_digest", "String", "SHA-256 of the judged values"),
        *(dg.TableColumn(name, "String", "plain text for search") for name in TOKENS),
        dg.TableColumn(AS_THEY_ARE, "String", "the value's language code"),
    ]
)
_ANSWER = dg.TableColumnDep(dg.AssetKey("provider_results"), "answer")
_TEXT = dg.TableColumnDep(dg.AssetKey("parsed_documents"), "text")
STAGING_LINEAGE = dg.TableColumnLineage(
    {
        name: [dg.TableColumnDep(dg.AssetKey("provider_results"), name)]
        for name in ("attempt_no", "record_no")
    }
    | {name: [_ANSWER] for name in ("content", "values_digest", *SEARCH_COLUMNS)}
    # The rules hold each answer against the text of its document.
    | {"outcome": [_ANSWER, _TEXT]}
)


def judged_columns(columns: Sequence[ColumnRule]) -> dg.TableSchema:
    """The staging columns, and the values inside `content` with the limits that judged them."""
    values = [
        dg.TableColumn(
            f"content.{column.name}",
            str(column.dtype),
            column.meaning,
            constraints=dg.TableColumnConstraints(nullable=column.nullable, other=column.limits),
        )
        for column in columns
    ]
    return dg.TableSchema(columns=[*STAGING_COLUMNS.columns, *values])


@dg.asset(
    deps=["provider_results"],
    partitions_def=PROCESSING_VERSIONS,
    group_name="tallybook",
    kinds={"pandera", "polars"},
    owners=["team:archive"],
    code_version="1",
    metadata={
        "dagster/column_schema": STAGING_COLUMNS,
        "dagster/column_lineage": STAGING_LINEAGE,
    },
)
def validated_staging(
    context: dg.AssetExecutionContext, tallybook: ContextResource
) -> dg.MaterializeResult:
    """Answers parsed, checked and judged; nobody outside sees them.

    What a rule or an uncertain field doubts waits for a reviewer and is never accepted silently.
    """
    started = time.monotonic()
    with tallybook.open() as opened:
        version = open_version(opened, context.partition_key)
        report = judge_batches(opened, version)
        content = staging_digest(opened.ledger, version.version_no)
        provenance = provenance_of(context, opened, content)
        numbers = version_numbers(opened.ledger, version.version_no)
    judged = sum(report.outcomes.values())
    metadata: dict[str, dg.RawMetadataValue] = {
        "dagster/column_schema": judged_columns(version.acceptance.columns),
        "dagster/partition_row_count": sum(numbers.states.values()),
        "batches": report.batches,
        "judged": judged,
        "accepted": report.outcomes.get("accepted", 0),
        "sent to review": report.outcomes.get("awaiting_review", 0),
        "review backlog": numbers.in_state("awaiting_review"),
        "findings": sum(report.findings.values()),
        "findings by rule": report.findings,
        "seconds": round(time.monotonic() - started, 3),
    }
    if not report.batches:
        metadata["note"] = NOTHING_TO_DO
    context.log.info(f"{judged} answers judged, {report.outcomes.get('accepted', 0)} accepted")
    return materialized(provenance, metadata)
