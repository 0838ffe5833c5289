"""Mending what published documents lack: heads, search entries, thumbnails.

Belongs here: the repairs in their order, for the command line and for Dagster. Does not belong
here: each repair, which stands with the stage that makes the thing.
"""

from __future__ import annotations

from dataclasses import dataclass

from pipeline_assets.account.archive_repairs import mend_heads, mend_thumbnails
from pipeline_assets.account.representations import rebuild_search_entries
from pipeline_assets.ingest.thumbnails import render_lost
from pipeline_assets.publish.completeness import incomplete_entries
from resources.context import Context


@dataclass(frozen=True)
class RepairReport:
    """What was mended.

    Attributes:
        heads: documents that show their open entry again.
        search_entries: search entries made again or dropped.
        rendered: thumbnails drawn again from the kept bytes of their documents.
        renamed: documents that name another thumbnail, each by a change of the archive.
        left: things that are still missing.
    """

    heads: int
    search_entries: int
    rendered: int
    renamed: int
    left: int

    @property
    def mended(self) -> int:
        """How many things were mended; 0 where nothing was missing."""
        return self.heads + self.search_entries + self.rendered + self.renamed


def repair_archive(context: Context) -> RepairReport:
    """Put back what is missing of published documents; safe at any time, and again.

    Raises:
        ParserUnavailable: a thumbnail has to be rendered and the parser does not work here.
        ArtifactDamaged: a kept copy does not have the bytes that were scanned; all else is mended.
    """
    heads = mend_heads(context.ledger)
    # What was not shown had no search entry, or one that seemed to be of nothing.
    search_entries = rebuild_search_entries(context)
    try:
        rendered = render_lost(context).rendered
    finally:
        # One document that cannot be rendered keeps nothing from the others.
        renamed = mend_thumbnails(context)
    left = incomplete_entries(context).height
    return RepairReport(heads, search_entries, rendered, renamed, left)
