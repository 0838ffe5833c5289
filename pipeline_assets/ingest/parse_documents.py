"""Parsing every present document once per parser version, into text packs and the parse cache.

Belongs here: which documents need parsing, grouping the text of files into packs, storing both.
Does not belong here: reading a format (`parsing/`), the text of rows (`parse_rows.py`), and what
becomes of a document (`prepare`).

A pack and its rows are committed together a few documents at a time, so a run that is killed
loses at most one pack's worth of parsing.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

import polars as pl

from pipeline_assets.ingest.keep_sources import SourceGone, keep_source
from pipeline_assets.ingest.parse_rows import parse_rows
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
from resources.ledger.parses import (
    PARSE_SCHEMA,
    count_parses,
    missing_parses,
    missing_slice,
    store_parses,
)
from resources.ledger.source_snapshots import source_names
from resources.parser_settings import ParserSettings
from resources.sources.declared import declared_sources
from resources.sources.document_id import parse_document_id
from resources.sources.listing import ListedSource
from resources.sources.opening import open_source

FILES_A_SLICE = 10_000
ROWS_A_SLICE = 250_000
"""Missing documents that are looked up at a time; for rows a slice may cost a pass over a table."""
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


@dataclass(frozen=True)
class _Group:
    """What is missing of one source; the source is None where it is not declared any more."""

    source: ListedSource | None
    source_version_nos: pl.Series

    @property
    def holds_rows(self) -> bool:
        return self.source is not None and self.source.holds == "rows"


@dataclass
class _Tally:
    """What is counted while parsing."""

    parsed: int = 0
    failed: dict[str, int] = field(default_factory=dict)
    gone: int = 0
    peak: int = 0
    ocr_available: bool | None = None

    def fail(self, reason: str, count: int = 1) -> None:
        self.failed[reason] = self.failed.get(reason, 0) + count


def parse_documents(context: Context, settings: ParserSettings, workload: str) -> ParseStageReport:
    """Parse what a workload's sources hold and was never parsed under `settings`.

    Raises:
        ParserUnavailable: the parser itself does not work here; nothing was parsed.
        ArtifactDamaged: a kept copy does not have the bytes that were scanned.
        SourceError: a source as a whole is not usable any more.
        InvalidSources: the declarations cannot be used; nothing was parsed.
    """
    started = time.monotonic()
    cached = count_parses(context.ledger, settings.key, workload)
    missing = missing_parses(context.ledger, settings.key, workload)
    tally = _Tally()
    if missing.height:
        groups = _groups(context, missing, workload)
        _parse_files(context, settings, [one for one in groups if not one.holds_rows], tally)
        for group in groups:
            if group.holds_rows:
                _parse_rows(context, settings, group, tally)
    return ParseStageReport(
        parsed=tally.parsed,
        failed=tally.failed,
        cached=cached,
        gone=tally.gone,
        wall_seconds=time.monotonic() - started,
        peak_rss_bytes=tally.peak,
        ocr_available=tally.ocr_available,
    )


def _groups(context: Context, missing: pl.DataFrame, workload: str) -> list[_Group]:
    declared = {
        source.name: source
        for source in declared_sources(context.settings)
        if source.workload == workload
    }
    names = source_names(context.ledger)
    groups = []
    for (source_no,), rows in missing.group_by("source_no", maintain_order=True):
        known = declared.get(names[int(str(source_no))])
        source = None if known is None else open_source(known, context.ledger)
        groups.append(_Group(source, rows["source_version_no"]))
    return groups


def _parse_rows(context: Context, settings: ParserSettings, group: _Group, tally: _Tally) -> None:
    assert group.source is not None  # noqa: S101 - only a source that is there holds rows
    for rows in _slices(context, settings, group, ROWS_A_SLICE):
        report = parse_rows(context, settings, group.source, rows)
        tally.parsed += report.parsed
        tally.gone += report.gone
        for reason, count in report.failed.items():
            tally.fail(reason, count)


def _parse_files(
    context: Context, settings: ParserSettings, groups: list[_Group], tally: _Tally
) -> None:
    count = sum(group.source_version_nos.len() for group in groups)
    if not count:
        return
    limits = ParseLimits(ocr_pages=settings.ocr_pages, max_pages=settings.max_pages)
    workers = context.settings.parser_workers or max(1, os.cpu_count() or 1)
    pack = _Pack()
    context.progress.start("parsing", count)
    with ParserPool(min(workers, count), limits) as pool:
        pool.check()
        for report in pool.parse_many(_tasks(context, settings, groups, tally)):
            if report.sha256 is not None and report.sha256 != report.key:
                raise ArtifactDamaged("source", report.key, report.sha256)
            _add(context, pack, report, settings)
            tally.peak = max(tally.peak, report.peak_rss_bytes)
            if isinstance(report.outcome, ParsedDocument):
                tally.parsed += 1
            else:
                tally.fail(report.outcome.reason)
            if pack.full(time.monotonic()):
                _store(context, pack)
                pack = _Pack()
            context.progress.advance()
        _store(context, pack)
        tally.ocr_available = pool.ocr_available
    context.progress.finish()


def _slices(
    context: Context, settings: ParserSettings, group: _Group, size: int
) -> Iterator[pl.DataFrame]:
    numbers = group.source_version_nos
    for start in range(0, numbers.len(), size):
        yield missing_slice(context.ledger, settings.key, numbers.slice(start, size))


def _tasks(
    context: Context, settings: ParserSettings, groups: list[_Group], tally: _Tally
) -> Iterator[ParseTask]:
    handed: set[str] = set()
    for group in groups:
        for rows in _slices(context, settings, group, FILES_A_SLICE):
            for checksum, document_id, _ in rows.iter_rows():
                # Two sources may hold the same bytes, and the first is perhaps not stored yet.
                if checksum in handed:
                    context.progress.advance()
                    continue
                path = _kept_path(context, group.source, document_id, checksum)
                if path is None:
                    tally.gone += 1
                    context.progress.advance()
                    continue
                if len(groups) > 1:
                    handed.add(checksum)
                yield ParseTask(key=checksum, path=path, name=_file_name(document_id))


def _kept_path(
    context: Context, source: ListedSource | None, document_id: str, checksum: str
) -> Path | None:
    """Where a document's bytes are kept, copied now if need be; None if they are gone."""
    if source is None:
        # Not declared any more: only a copy that was kept can be read.
        has = context.artifacts.has("source", checksum)
        return context.artifacts.path("source", checksum) if has else None
    try:
        return keep_source(context.artifacts, source, document_id, checksum)
    except SourceGone:
        return None


def _file_name(document_id: str) -> str:
    _, relative_path = parse_document_id(document_id)
    return PurePosixPath(relative_path.decode("utf-8", "replace")).name


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
