"""The check of accept: `acceptance_boundary`.

Belongs here: reporting what `boundary.py` finds. Does not belong here: the boundary itself,
which is plain code and the ledger.
"""

import dagster as dg

from partitions.definition import PROCESSING_VERSIONS
from pipeline_assets.accept.asset import validated_staging
from pipeline_assets.accept.boundary import leaks
from pipeline_assets.versions import open_version
from resources.context_resource import ContextResource


def make_checks() -> list[dg.AssetChecksDefinition]:
    """The checks on `validated_staging`."""

    @dg.asset_check(
        asset=validated_staging,
        partitions_def=PROCESSING_VERSIONS,
        blocking=True,
        description="Nothing is accepted or published that no judgement accepted.",
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

    return [acceptance_boundary]
