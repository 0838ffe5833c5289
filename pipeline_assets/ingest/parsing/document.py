"""Parses one document's bytes: type, reader, language, thumbnail, offsets.

The plain function that a worker runs and a notebook could call; limits of memory and time are
the worker's (`worker`, `pool`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pipeline_assets.ingest.parsing import containers, language, sniff, thumbnail
from pipeline_assets.ingest.parsing.docx import read_docx
from pipeline_assets.ingest.parsing.html import read_html
from pipeline_assets.ingest.parsing.model import (
    DOCX,
    HTML,
    NO_OCR_DETAIL,
    ODT,
    PDF,
    PLAIN,
    ParsedDocument,
    ParseFailure,
    ParseOutcome,
    place_pages,
)
from pipeline_assets.ingest.parsing.normalise import normalise
from pipeline_assets.ingest.parsing.odt import read_odt
from pipeline_assets.ingest.parsing.pdf import read_pdf
from pipeline_assets.ingest.parsing.plain import read_plain
from pipeline_assets.ingest.parsing.reading import ReadContext, Reading, Refused

_READERS: Final[dict[str, Callable[[bytes, ReadContext], Reading]]] = {
    PDF: read_pdf,
    DOCX: read_docx,
    ODT: read_odt,
    HTML: read_html,
    PLAIN: read_plain,
}


def parse_document(
    data: bytes, context: ReadContext, *, claimed: str | None = None, bare_name: bool = False
) -> ParseOutcome:
    """Pages of a document, or why there are none.

    Args:
        data: The whole file.
        context: Limits, OCR and the rendering switch.
        claimed: Supported type that the name or the source promises.
        bare_name: The name has no extension.
    """
    try:
        media_type = _media_type(data, claimed, bare_name)
        reading = _READERS[media_type](data, context)
    except Refused as refusal:
        return refusal.failure
    if media_type != PDF:
        reading.pages = [
            (text, "text" if text else "none")
            for text in (normalise(page) for page, _ in reading.pages)
        ]
    if media_type != claimed:
        reading.notes.add("extension_ignored")
    return _complete(media_type, reading, context)


def _media_type(data: bytes, claimed: str | None, bare_name: bool) -> str:
    decided = sniff.decide_by_claim(claimed, data[: sniff.HEAD_BYTES], bare_name=bare_name)
    if decided == sniff.ZIP:
        with containers.open_container(data) as container:
            declared = containers.read_part(container, "mimetype", limit=1024)
            decided = containers.decide_container_type(container.namelist(), declared, claimed)
    if isinstance(decided, ParseFailure):
        if containers.is_encrypted_office_file(data):
            decided = ParseFailure("encrypted", "an Office file that needs a password")
        raise Refused(decided)
    return decided


def _complete(media_type: str, reading: Reading, context: ReadContext) -> ParseOutcome:
    texts = [text for text, _ in reading.pages]
    if not any(text.strip() for text in texts):
        return ParseFailure("no_text", _no_text_detail(reading))
    guess, others = language.detect(texts)
    picture = reading.thumbnail
    if media_type != PDF and context.render:
        context.before_render()
        picture = thumbnail.draw_text(
            next(text for text in texts if text.strip()), context.limits.thumbnail_px
        )
    if not context.render:
        reading.notes.add("render_failed")
    return ParsedDocument(
        media_type=media_type,
        page_count=reading.page_count,
        pages=place_pages(reading.pages),
        language=guess,
        languages=others,
        thumbnail=picture,
        partial=reading.partial,
        notes=tuple(sorted(reading.notes)),
    )


def _no_text_detail(reading: Reading) -> str:
    if "ocr_unavailable" in reading.notes:
        return NO_OCR_DETAIL
    if "ocr_script_unsupported" in reading.notes:
        return "no page has text, and there is no OCR model for its script"
    if "xfa_form" in reading.notes:
        return "a form whose content is not in its pages"
    return "no page has text, nor did OCR find any"
