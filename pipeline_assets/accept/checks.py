"""The checks of accept: `acceptance_boundary`, and one number a family of rules.

Belongs here: reporting what `boundary.py` and `family_findings.py` find. Does not belong here: the
boundary itself, which is plain code and the ledger.
"""

from collections.abc import Iterator

import dagster as dg

from partitions.definition import PROCESSING_VERSIONS
from pipeline_assets.accept.asset import validated_staging
from pipeline_assets.accept.boundary import leaks
from pipeline_assets.accept.family_findings import (
    DOUBTED_AT_MOST,
    FAMILIES,
    FamilyFindings,
    family_findings,
    rules_by_family,
)
from pipeline_assets.versions import open_version
from resources.context_resource import ContextResource


def make_checks() -> list[dg.AssetChecksDefinition]:
    """The checks on `validated_staging`."""

    @dg.asset_check(
        asset=validated_staging,
        partitions_def=PROCESSING_VERSIONS,
        blocking=True,
        description="Nothing is accepted or published that no judgement and no reviewer accepted.",
    )
    def acceptance_boundary(
        context: dg.AssetCheckExecutionContext, tallybook: ContextResource
    ) -> dg.AssetCheckResult:
        with tallybook.open() as opened:
            version = open_version(opened, context.partition_key)
            found = leaks(opened.ledger, version.version_no)
        kinds = dict(found["leak"].value_counts().sort("leak").iter_rows())
        told = "; ".join(f"{count} {leak}" for leak, count in kinds.items())
        return dg.AssetCheckResult(
            passed=found.is_empty(),
            description=""
            if found.is_empty()
            else f"the ledger holds {told}: nothing more is published. Restore it from a backup.",
            metadata={"records beyond the boundary": found.height, "by kind": kinds},
        )

    # One step for all of them: each check of its own would open the ledger once more.
    @dg.multi_asset_check(
        name="findings_by_family",
        specs=[
            dg.AssetCheckSpec(
                name=check_name(family),
                asset=validated_staging,
                partitions_def=PROCESSING_VERSIONS,
                description=f"Rules of the family {family} doubt no more than "
                f"{DOUBTED_AT_MOST:.0%} of the judged records.",
            )
            for family in FAMILIES
        ],
    )
    def findings_by_family(
        context: dg.AssetCheckExecutionContext, tallybook: ContextResource
    ) -> Iterator[dg.AssetCheckResult]:
        with tallybook.open() as opened:
            version = open_version(opened, context.partition_key)
            with opened.ledger.read() as connection:
                families = family_findings(
                    connection,
                    opened.ledger,
                    version.version_no,
                    rules_by_family(version.acceptance),
                )
        for found in families:
            yield _family_result(found, version.key)

    return [acceptance_boundary, findings_by_family]


def check_name(family: str) -> str:
    """The name of a family's check."""
    return f"findings_{family}"


def _family_result(found: FamilyFindings, key: str) -> dg.AssetCheckResult:
    """Numbers that Dagster plots, also where all is well."""
    description = "" if found.rules else "the version has no rule of this family"
    if found.too_many:
        description = (
            f"{found.doubted} of {found.judged} judged records are doubted by rules of the family "
            f"{found.family}: look at prompt, model and parser before each record. "
            f"tallybook review list --version {key}"
        )
    return dg.AssetCheckResult(
        asset_key=validated_staging.key,
        check_name=check_name(found.family),
        passed=not found.too_many,
        severity=dg.AssetCheckSeverity.WARN,
        description=description,
        metadata={
            "findings": found.findings,
            "records": found.records,
            "records doubted": found.doubted,
            "share of judged": round(found.share, 6),
            "share doubted": round(found.doubted_share, 6),
            "judged": found.judged,
            "rules": list(found.rules),
        },
    )
