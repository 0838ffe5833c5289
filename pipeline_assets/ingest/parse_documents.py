"""Parsing every present document once per parser version, into text packs and the parse cache.

Belongs here: which documents need parsing, grouping their text into packs, storing both. Does
not belong here: reading a format (`parsing/`), and what becomes of a document (`prepare`).

A pack and its rows are committed together a few documents at a time, so a run that is killed
loses at most one pack's worth of parsing.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import PurePosixPath

import polars as pl

from pipeline_assets.ingest.keep_sources import SourceGone, keep_source
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
from resources.contracts import PARSED_TEXT, store_frame
from resources.ledger.parses import PARSE_SCHEMA, load_parses, missing_parses, store_parses
from resources.parser_settings import ParserSettings
from resources.sources.directory import DirectorySource
from resources.sources.document_id import parse_document_id

PACK_DOCUMENTS = 200
PACK_CHARACTERS = 16_000_000
PACK_SECONDS = 5.0
"""A pack is closed at the first of these: bounded memory, bounded loss, few files."""


@dataclass(frozen=True)
class ParseStageReport:
    """What parsing did.

    Attributes:
        parsed: documents that gave text now.
        failed: documents that were excluded now, by reason.
        cached: distinct contents that were parsed in an earlier run.
        gone: documents whose scanned bytes could not be had any more.
        wall_seconds: how long it took.
        peak_rss_bytes: highest resident memory of any parser process.
        ocr_available: text recognition could be used; None where nothing was parsed.
    """

    parsed: int
    failed: dict[str, int]
    cached: int
    gone: int
    wall_seconds: float
    peak_rss_bytes: int
    ocr_available: bool | None


@dataclass
class _Pack:
    """Parses that are not stored yet."""

    rows: list[dict[str, object]] = field(default_factory=list)
    pages: list[tuple[str, int, str, int, str]] = field(default_factory=list)
    characters: int = 0
    opened_at: float = 0.0

    def full(self, now: float) -> bool:
        return bool(self.rows) and (
            len(self.rows) >= PACK_DOCUMENTS
            or self.characters >= PACK_CHARACTERS
            or now - self.opened_at >= PACK_SECONDS
        )


def parse_documents(context: Context, settings: ParserSettings) -> ParseStageReport:
    """Parse what was never parsed under `settings`.

    Raises:
        ParserUnavailable: the parser itself does not work here; nothing was parsed.
        ArtifactDamaged: a kept copy does not have the bytes that were scanned.
    """
    started = time.monotonic()
    missing = missing_parses(context.ledger, settings.key)
    if missing.is_empty():
        return ParseStageReport(0, {}, _cached(context, settings), 0, 0.0, 0, ocr_available=None)
    limits = ParseLimits(ocr_pages=settings.ocr_pages, max_pages=settings.max_pages)
    workers = context.settings.parser_workers or max(1, os.cpu_count() or 1)
    cached = _cached(context, settings)
    gone: list[str] = []
    failed: dict[str, int] = {}
    parsed, peak = 0, 0
    pack = _Pack()
    context.progress.start("parsing", missing.height)
    with ParserPool(min(workers, missing.height), limits) as pool:
        pool.check()
        for report in pool.parse_many(_tasks(context, missing, gone)):
            if report.sha256 is not None and report.sha256 != report.key:
                raise ArtifactDamaged("source", report.key, report.sha256)
            _add(context, pack, report, settings)
            peak = max(peak, report.peak_rss_bytes)
            if isinstance(report.outcome, ParsedDocument):
                parsed += 1
            else:
                failed[report.outcome.reason] = failed.get(report.outcome.reason, 0) + 1
            if pack.full(time.monotonic()):
                _store(context, pack)
                pack = _Pack()
            context.progress.advance()
        _store(context, pack)
        ocr_available = pool.ocr_available
    context.progress.finish()
    return ParseStageReport(
        parsed=parsed,
        failed=failed,
        cached=cached,
        gone=len(gone),
        wall_seconds=time.monotonic() - started,
        peak_rss_bytes=peak,
        ocr_available=ocr_available,
    )


def _tasks(context: Context, missing: pl.DataFrame, gone: list[str]) -> Iterator[ParseTask]:
    source = DirectorySource(context.settings.source_name, context.settings.source_folder)
    for checksum, document_id, _ in missing.iter_rows():
        source_name, relative_path = parse_document_id(document_id)
        if source_name != source.name and not context.artifacts.has("source", checksum):
            # Another folder's document, of which no copy is kept: only its own run can read it.
            gone.append(document_id)
            context.progress.advance()
            continue
        try:
            path = keep_source(context.artifacts, source, document_id, checksum)
        except SourceGone:
            gone.append(document_id)
            context.progress.advance()
            continue
        name = PurePosixPath(relative_path.decode("utf-8", "replace")).name
        yield ParseTask(key=checksum, path=path, name=name)


def _add(context: Context, pack: _Pack, report: ParseReport, settings: ParserSettings) -> None:
    if not pack.rows:
        pack.opened_at = time.monotonic()
    row: dict[str, object] = {
        "checksum": report.key,
        "parser_key": settings.key,
        "wall_ms": round(report.wall_seconds * 1000),
        "cpu_ms": round(report.cpu_seconds * 1000),
        "peak_rss_bytes": report.peak_rss_bytes,
        "cacheable": int(report.cacheable),
        "parsed_at": context.ledger.now(),
    }
    outcome = report.outcome
    if isinstance(outcome, ParsedDocument):
        image = outcome.thumbnail or placeholder()
        row |= {
            "excluded": None,
            "detail": "",
            "media_type": outcome.media_type,
            "page_count": outcome.page_count,
            "language": outcome.language,
            "languages": " ".join(outcome.languages),
            "partial": int(outcome.partial),
            "notes": " ".join(outcome.notes),
            "thumbnail": context.artifacts.put("thumbnail", image).digest,
        }
        for page in outcome.pages:
            pack.pages.append((report.key, page.number, page.origin, page.offset, page.text))
            pack.characters += len(page.text)
    else:
        row |= {
            "excluded": outcome.reason,
            "detail": outcome.detail,
            "media_type": None,
            "page_count": None,
            "language": None,
            "languages": "",
            "partial": 0,
            "notes": "",
            "thumbnail": None,
        }
    pack.rows.append(row)


def _store(context: Context, pack: _Pack) -> None:
    if not pack.rows:
        return
    digest = None
    if pack.pages:
        frame = pl.DataFrame(pack.pages, schema=dict(PARSED_TEXT.schema), orient="row")
        digest = store_frame(
            context.artifacts, "text", PARSED_TEXT, [frame.sort("checksum", "page")]
        ).digest
    rows = pl.DataFrame(
        [{**row, "text_pack": digest if row["excluded"] is None else None} for row in pack.rows],
        schema=PARSE_SCHEMA,
    )
    with context.ledger.write() as connection:
        store_parses(connection, context.ledger, rows)


def _cached(context: Context, settings: ParserSettings) -> int:
    return load_parses(context.ledger, settings.key, ["checksum"]).height
