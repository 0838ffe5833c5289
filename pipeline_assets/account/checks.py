"""The check of account: `every_document_has_one_outcome`.

Belongs here: reporting what `report.py` finds. Does not belong here: counting.
"""

import dagster as dg

from partitions.definition import PROCESSING_VERSIONS
from pipeline_assets.account.asset import reconciliation_report
from pipeline_assets.account.report import Report, build_report
from pipeline_assets.account.violations import pending_sentence
from resources.context_resource import ContextResource

EXAMPLES = 3
"""How many violations a description names."""


def make_checks() -> list[dg.AssetChecksDefinition]:
    """The checks on `reconciliation_report`."""

    # Blocking, though nothing is downstream: a run whose account does not add up fails.
    @dg.asset_check(
        asset=reconciliation_report,
        partitions_def=PROCESSING_VERSIONS,
        blocking=True,
        description="Documents are the sum of expected and excluded ones, each with one outcome.",
    )
    def every_document_has_one_outcome(
        context: dg.AssetCheckExecutionContext, tallybook: ContextResource
    ) -> dg.AssetCheckResult:
        with tallybook.open() as opened:
            report = build_report(opened, context.partition_key)
        return dg.AssetCheckResult(
            passed=report.invariant_holds,
            severity=_severity(report),
            description="; ".join(report.violations[:EXAMPLES]),
            metadata={
                "documents": report.documents,
                "expected": report.expected,
                "excluded": sum(report.excluded.values()),
                "violations": len(report.violations),
            },
        )

    return [every_document_has_one_outcome]


def _severity(report: Report) -> dg.AssetCheckSeverity:
    """Documents that wait for a run are a warning: nothing is wrong, only unfinished.

    A run that processes only retries, or what a replay selects, leaves them by design.
    """
    if report.violations == (pending_sentence(report.pending),):
        return dg.AssetCheckSeverity.WARN
    return dg.AssetCheckSeverity.ERROR
