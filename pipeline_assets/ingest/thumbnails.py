"""Rendering thumbnails again whose files are gone, from the kept bytes of their documents.

Belongs here: finding which of the parse cache's thumbnails are lost, and drawing them anew. Does
not belong here: reading a format (`parsing/`), and what the archive names
(`pipeline_assets/account/archive_repairs.py`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

import polars as pl
from sqlalchemy import text

from pipeline_assets.ingest.parsing.model import (
    ParsedDocument,
    ParseLimits,
    ParseReport,
    ParseTask,
)
from pipeline_assets.ingest.parsing.pool import ParserPool
from pipeline_assets.ingest.placeholder import placeholder
from resources.artifacts import ArtifactDamaged
from resources.context import Context
from resources.parser_settings import ParserSettings
from resources.sources.document_id import parse_document_id

_LOST_SCHEMA = {
    "checksum": pl.String,
    "parser_key": pl.String,
    "thumbnail": pl.String,
    "document_id": pl.String,
}


@dataclass(frozen=True)
class RenderReport:
    """What became of lost thumbnails.

    Attributes:
        same: rendered again, with the very bytes that were lost.
        other: rendered with other bytes, which the parse cache names now.
        gone: not rendered: the document's bytes are not kept, or give no image any more.
    """

    same: int = 0
    other: int = 0
    gone: int = 0

    @property
    def rendered(self) -> int:
        """Thumbnails that are in the store again."""
        return self.same + self.other


def render_lost(context: Context) -> RenderReport:
    """Render every thumbnail again that the parse cache names and the store does not have.

    Raises:
        ParserUnavailable: the parser itself does not work here; nothing was rendered.
        ArtifactDamaged: a kept copy does not have the bytes that were scanned. All others are
            rendered before that is told.
    """
    damaged = None
    found = _lost(context)
    # A document without a picture of its own has this one; a row never has another.
    plain = context.artifacts.put("thumbnail", placeholder()).digest if found.height else ""
    lost = found.filter(pl.col("thumbnail") != plain)
    kept = lost.filter(_is_kept(context, lost["checksum"]))
    same, other = found.height - lost.height, 0
    gone = lost.height - kept.height
    for (key,), group in kept.group_by("parser_key", maintain_order=True):
        settings = ParserSettings.from_key(str(key))
        if settings is None:
            gone += group.height
            continue
        for report, was in _parsed(context, settings, group):
            if report.sha256 is not None and report.sha256 != report.key:
                damaged = ArtifactDamaged("source", report.key, report.sha256)
                continue
            digest = _store(context, report)
            if digest is None:
                gone += 1
            elif digest == was:
                same += 1
            else:
                _name(context, report.key, settings.key, digest)
                other += 1
    if damaged is not None:
        raise damaged
    return RenderReport(same, other, gone)


def _lost(context: Context) -> pl.DataFrame:
    """Parses whose thumbnail is not in the store, with a document that has these bytes."""
    ledger = context.ledger
    with ledger.read() as connection:
        named = ledger.dialect.fetch(
            connection,
            "SELECT DISTINCT thumbnail FROM parses WHERE thumbnail IS NOT NULL",
            {"thumbnail": pl.String},
        )["thumbnail"]
        lost = [digest for digest in named if not context.artifacts.has("thumbnail", digest)]
        if not lost:
            return pl.DataFrame(schema=_LOST_SCHEMA)
        found = ledger.dialect.fetch(
            connection,
            "SELECT p.checksum, p.parser_key, p.thumbnail, MIN(d.document_id) FROM parses p "
            "JOIN source_versions v ON v.checksum = p.checksum "
            "JOIN documents d ON d.document_no = v.document_no "
            "WHERE p.thumbnail IS NOT NULL GROUP BY p.checksum, p.parser_key, p.thumbnail",
            _LOST_SCHEMA,
        )
    return found.filter(pl.col("thumbnail").is_in(lost)).sort("parser_key", "document_id")


def _is_kept(context: Context, checksums: pl.Series) -> pl.Series:
    return pl.Series(
        [context.artifacts.has("source", checksum) for checksum in checksums], dtype=pl.Boolean
    )


def _parsed(
    context: Context, settings: ParserSettings, lost: pl.DataFrame
) -> Iterator[tuple[ParseReport, str]]:
    """Each document parsed again as it was, with the digest of the thumbnail that it had."""
    limits = ParseLimits(ocr_pages=settings.ocr_pages, max_pages=settings.max_pages)
    workers = context.settings.parser_workers or max(1, os.cpu_count() or 1)
    was = dict(zip(lost["checksum"], lost["thumbnail"], strict=True))
    with ParserPool(min(workers, lost.height), limits) as pool:
        pool.check()
        for report in pool.parse_many(_tasks(context, lost)):
            yield report, was[report.key]


def _tasks(context: Context, lost: pl.DataFrame) -> Iterator[ParseTask]:
    for checksum, document_id in lost.select("checksum", "document_id").iter_rows():
        _, relative_path = parse_document_id(document_id)
        name = PurePosixPath(relative_path.decode("utf-8", "replace")).name
        yield ParseTask(key=checksum, path=context.artifacts.path("source", checksum), name=name)


def _store(context: Context, report: ParseReport) -> str | None:
    """The digest of the rendered image, which is in the store now; None where there is none."""
    if not isinstance(report.outcome, ParsedDocument):
        return None
    image = report.outcome.thumbnail or placeholder()
    return context.artifacts.put("thumbnail", image).digest


def _name(context: Context, checksum: str, parser_key: str, digest: str) -> None:
    with context.ledger.write() as connection:
        connection.execute(
            text(
                "UPDATE parses SET thumbnail = :digest "
                "WHERE checksum = :checksum AND parser_key = :parser_key"
            ),
            {"digest": digest, "checksum": checksum, "parser_key": parser_key},
        )
