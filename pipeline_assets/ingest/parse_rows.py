"""Parsing rows: the text that a row is, into text packs and the parse cache.

Belongs here: the judgement on a row's text, grouping texts into packs, storing both. Does not
belong here: what a row's text is (`resources/sources/row_text.py`), and documents that are files
(`parse_documents.py`).

A row's text is its one page, unchanged, so the pack is the kept copy of the row's bytes. A pack
and its rows are committed together, so a run that is killed loses at most one pack's worth.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

import polars as pl

from pipeline_assets.ingest.parsing import language
from pipeline_assets.ingest.parsing.model import PLAIN
from pipeline_assets.ingest.placeholder import placeholder
from resources.context import Context
from resources.contracts import PARSED_TEXT, store_frame
from resources.ledger.parses import PARSE_SCHEMA, store_parses
from resources.parser_settings import ParserSettings
from resources.sources.listing import ListedSource

PACK_ROWS: Final = 25_000
PACK_CHARACTERS: Final = 16_000_000
"""A pack is closed before the frame of texts that would take it beyond either."""

_MAX_UNDEFINED_SHARE: Final = 0.02
"""As for a file of plain text: more U+FFFD than this is no text."""


@dataclass(frozen=True)
class RowParseReport:
    """What parsing rows did.

    Attributes:
        parsed: rows that gave text now.
        failed: rows that were excluded now, by reason.
        gone: rows that are no longer there, or have another text than was scanned.
    """

    parsed: int
    failed: dict[str, int]
    gone: int


@dataclass
class _Pack:
    """Judged texts that are not stored yet."""

    frames: list[pl.DataFrame] = field(default_factory=list)
    rows: int = 0
    characters: int = 0

    def add(self, judged: pl.DataFrame) -> None:
        self.frames.append(judged)
        self.rows += judged.height
        self.characters += int(judged["text"].str.len_chars().sum())

    def has_room_for(self, judged: pl.DataFrame) -> bool:
        characters = int(judged["text"].str.len_chars().sum())
        return not self.rows or (
            self.rows + judged.height <= PACK_ROWS
            and self.characters + characters <= PACK_CHARACTERS
        )


def parse_rows(
    context: Context, settings: ParserSettings, source: ListedSource, missing: pl.DataFrame
) -> RowParseReport:
    """Parse rows of one source that were never parsed under `settings`.

    Args:
        context: open resources.
        settings: name the parses in the cache.
        source: holds rows. A table in a file is read once for each call.
        missing: checksum and document_id of each; further columns are ignored.

    Raises:
        SourceError: the source is not usable; what was stored before stays.
    """
    expected = missing.select("document_id", "checksum").unique(
        "checksum", keep="first", maintain_order=True
    )
    thumbnail = context.artifacts.put("thumbnail", placeholder()).digest
    outcomes: Counter[str | None] = Counter()
    pack = _Pack()
    context.progress.start("parsing", expected.height)
    for texts in source.texts(expected["document_id"]):
        fresh = texts.join(expected, on=["document_id", "checksum"], how="semi")
        judged = _judged(fresh)
        outcomes.update(judged["excluded"])
        if not pack.has_room_for(judged):
            _store(context, settings, pack, thumbnail)
            pack = _Pack()
        pack.add(judged)
        context.progress.advance(judged.height)
    _store(context, settings, pack, thumbnail)
    parsed = outcomes.pop(None, 0)
    failed = {str(reason): count for reason, count in sorted(outcomes.items(), key=str)}
    gone = expected.height - parsed - sum(failed.values())
    context.progress.advance(gone)
    context.progress.finish()
    return RowParseReport(parsed, failed, gone)


def _judged(texts: pl.DataFrame) -> pl.DataFrame:
    """Texts with what the parse cache says of them, judged as a file of plain text is."""
    text = pl.col("text")
    undefined = text.str.count_matches("\ufffd", literal=True)
    judged = texts.select("checksum", "text").with_columns(
        excluded=pl.when(text.str.strip_chars() == "")
        .then(pl.lit("no_text"))
        .when(undefined > _MAX_UNDEFINED_SHARE * text.str.len_chars())
        .then(pl.lit("not_a_document"))
    )
    readable = judged["excluded"].is_null()
    found = language.detect_many(judged.filter(readable)["text"].to_list())
    at = readable.arg_true()
    nothing = pl.Series([None] * judged.height, dtype=pl.String)
    return judged.with_columns(
        language=nothing.scatter(at, pl.Series([one for one, _ in found], dtype=pl.String)),
        languages=nothing.fill_null("").scatter(
            at, pl.Series([" ".join(others) for _, others in found], dtype=pl.String)
        ),
    )


def _store(context: Context, settings: ParserSettings, pack: _Pack, thumbnail: str) -> None:
    if not pack.rows:
        return
    judged = pl.concat(pack.frames)
    pages = (
        judged.filter(pl.col("excluded").is_null())
        .sort("checksum")
        .select(
            "checksum",
            page=pl.lit(1, pl.Int32),
            origin=pl.lit("text"),
            offset=pl.lit(0, pl.Int64),
            text="text",
        )
    )
    digest = None
    if not pages.is_empty():
        digest = store_frame(context.artifacts, "text", PARSED_TEXT, [pages]).digest
    rows = _cache_rows(judged, settings, digest, thumbnail, context.ledger.now())
    with context.ledger.write() as connection:
        store_parses(connection, context.ledger, rows)


def _cache_rows(
    judged: pl.DataFrame, settings: ParserSettings, digest: str | None, thumbnail: str, now: str
) -> pl.DataFrame:
    readable = pl.col("excluded").is_null()
    return judged.select(
        "checksum",
        "excluded",
        "language",
        "languages",
        parser_key=pl.lit(settings.key),
        detail=pl.when(pl.col("excluded") == "not_a_document")
        .then(pl.lit("binary content instead of text"))
        .otherwise(pl.lit("")),
        media_type=pl.when(readable).then(pl.lit(PLAIN)),
        page_count=pl.when(readable).then(pl.lit(1, pl.Int64)),
        partial=pl.lit(0, pl.Int64),
        notes=pl.lit(""),
        text_pack=pl.when(readable).then(pl.lit(digest, pl.String)),
        thumbnail=pl.when(readable).then(pl.lit(thumbnail)),
        # What a row costs alone is not measured: they are judged thousands at a time.
        wall_ms=pl.lit(0, pl.Int64),
        cpu_ms=pl.lit(0, pl.Int64),
        peak_rss_bytes=pl.lit(0, pl.Int64),
        cacheable=pl.lit(1, pl.Int64),
        parsed_at=pl.lit(now),
    ).select(list(PARSE_SCHEMA))
