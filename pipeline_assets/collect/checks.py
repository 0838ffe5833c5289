"""The check of collect: `dispositions_add_up`.

Belongs here: reporting what `invariant.py` finds. Does not belong here: the invariant's own
guard, which is in the transaction that stores dispositions.
"""

import dagster as dg

from partitions.definition import PROCESSING_VERSIONS
from pipeline_assets.collect.asset import provider_results
from pipeline_assets.collect.invariant import unbalanced_batches
from pipeline_assets.versions import open_version
from resources.context_resource import ContextResource

EXAMPLES = 5
"""How many batches a description names."""


def make_checks() -> list[dg.AssetChecksDefinition]:
    """The checks on `provider_results`."""

    @dg.asset_check(
        asset=provider_results,
        partitions_def=PROCESSING_VERSIONS,
        blocking=True,
        description="Every attempt of a complete batch has exactly one disposition.",
    )
    def dispositions_add_up(
        context: dg.AssetCheckExecutionContext, tallybook: ContextResource
    ) -> dg.AssetCheckResult:
        with tallybook.open() as opened:
            version = open_version(opened, context.partition_key)
            wrong = unbalanced_batches(opened.ledger, version.version_no)
        batches = ", ".join(wrong["batch_id"].head(EXAMPLES))
        return dg.AssetCheckResult(
            passed=wrong.is_empty(),
            description=""
            if wrong.is_empty()
            else f"{wrong.height} batches do not add up to their manifest ({batches}): nothing of "
            "them is judged. Look at them with `tallybook status`.",
            metadata={"batches that do not add up": wrong.height},
        )

    return [dispositions_add_up]
