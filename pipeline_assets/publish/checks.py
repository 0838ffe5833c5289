"""The check of publish: `representations_complete`.

Belongs here: reporting what `completeness.py` finds. Does not belong here: repairing it.
"""

import dagster as dg

from partitions.definition import PROCESSING_VERSIONS
from pipeline_assets.publish.asset import published_archive
from pipeline_assets.publish.completeness import incomplete_entries
from resources.context_resource import ContextResource


def make_checks() -> list[dg.AssetChecksDefinition]:
    """The checks on `published_archive`."""

    # Not blocking: the report, which says what is missing, is downstream.
    @dg.asset_check(
        asset=published_archive,
        partitions_def=PROCESSING_VERSIONS,
        description="Every published document has metadata, search entry and thumbnail.",
    )
    def representations_complete(tallybook: ContextResource) -> dg.AssetCheckResult:
        with tallybook.open() as opened:
            found = incomplete_entries(opened)
        kinds = dict(found["missing"].value_counts().sort("missing").iter_rows())
        told = ", ".join(f"{what} of {count}" for what, count in kinds.items())
        return dg.AssetCheckResult(
            passed=found.is_empty(),
            description=""
            if found.is_empty()
            else f"published documents lack {told}. Repair them with `tallybook doctor --fix`.",
            metadata={"missing": found.height, "missing by kind": kinds},
        )

    return [representations_complete]
