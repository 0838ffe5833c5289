"""The one door to source text, source bytes and page images for people.

Belongs here: opening them, with a row that says who and why. Does not belong here: the
pipeline's own reading, which shows nothing to anyone.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from resources.context import Context
from resources.contracts import PARSED_TEXT, scan_frame
from resources.ledger.schema import accesses


def read_page_texts(
    context: Context, checksum: str, text_pack: str, who: str, why: str
) -> pl.DataFrame:
    """The pages of one document (page, origin, text), recorded as an access.

    Raises:
        ArtifactMissing: the text is not in the store.
    """
    path = context.artifacts.require("text", text_pack)
    _record(context, who, why, "text", checksum)
    pages = scan_frame(PARSED_TEXT, path).filter(pl.col("checksum") == checksum)
    return pages.select("page", "origin", "text").sort("page").collect()


def thumbnail_path(context: Context, digest: str, who: str, why: str) -> Path:
    """Where a page image is, recorded as an access.

    Raises:
        ArtifactMissing: it is not in the store.
    """
    path = context.artifacts.require("thumbnail", digest)
    _record(context, who, why, "thumbnail", digest)
    return path


def _record(context: Context, who: str, why: str, kind: str, digest: str) -> None:
    with context.ledger.write() as connection:
        connection.execute(
            accesses.insert().values(
                who=who, why=why, kind=kind, digest=digest, opened_at=context.ledger.now()
            )
        )
