"""The job that mends what published documents lack.

Belongs here: the call and what it says. Does not belong here: mending
(`pipeline_assets/repair_archive.py`).
"""

import dagster as dg

from pipeline_assets.automation.jobs import MAX_RUNTIME_SECONDS, MAX_RUNTIME_TAG
from pipeline_assets.repair_archive import repair_archive as repair
from resources.context_resource import ContextResource


@dg.op(description="Put back heads, search entries and thumbnails that published documents lack.")
def mend_archive(context: dg.OpExecutionContext, tallybook: ContextResource) -> None:
    """Mend, and say how much was mended and what is left."""
    with tallybook.open() as opened:
        report = repair(opened)
    context.log.info(
        f"{report.heads} heads, {report.search_entries} search entries, {report.rendered} "
        f"thumbnails rendered, {report.renamed} named again; {report.left} things still missing"
    )
    context.add_output_metadata(
        {
            "heads": report.heads,
            "search entries": report.search_entries,
            "thumbnails rendered": report.rendered,
            "thumbnails named again": report.renamed,
            "still missing": report.left,
        }
    )


@dg.job(
    name="repair_archive",
    description="Find published documents without metadata, head, search entry or thumbnail, and "
    "mend them; the same as tallybook doctor --fix does for the archive.",
    tags={MAX_RUNTIME_TAG: str(MAX_RUNTIME_SECONDS)},
)
def repair_archive() -> None:
    """One step: it is quick where nothing is missing."""
    mend_archive()
