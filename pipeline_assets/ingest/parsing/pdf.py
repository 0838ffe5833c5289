"""Reads PDF files with PDFium: text by page, and what of it is kept.

Attachments and scripts are never opened. What text is useful is decided in `useful`; drawing is
`rendering`, OCR of the pages that need it `pictures`.
"""

from __future__ import annotations

import re
from contextlib import closing
from dataclasses import dataclass
from typing import Final

import pypdfium2
import pypdfium2.raw as pdfium_c

from pipeline_assets.ingest.parsing import rendering, useful
from pipeline_assets.ingest.parsing.model import Note, Origin, ParseFailure
from pipeline_assets.ingest.parsing.normalise import normalise
from pipeline_assets.ingest.parsing.pictures import PictureReader
from pipeline_assets.ingest.parsing.reading import ReadContext, Reading, Refused, guard_text_size

_NOTES_OF_MISSING_TEXT: Final[frozenset[Note]] = frozenset(
    {
        "ocr_bounded",
        "ocr_script_unsupported",
        "ocr_time_bounded",
        "ocr_unavailable",
        "pages_bounded",
        "pages_unreadable",
        "xfa_form",
    }
)
_STARTXREF: Final = re.compile(rb"startxref\s+(\d{1,12})")
_XREF_OR_OBJECT: Final = re.compile(rb"\s{0,8}(?:xref|\d+\s+\d+\s+obj)")


@dataclass
class _Page:
    """One page on its way: `text` None when it could not be loaded."""

    text: str | None
    garbled: bool = False
    origin: Origin = "text"


def read_pdf(data: bytes, context: ReadContext) -> Reading:
    """Pages of a PDF file.

    Raises:
        Refused: encrypted, unreadable or too_large.
    """
    with closing(_open(data)) as document:
        page_count = len(document)
        notes = _document_notes(document, data)
        if page_count > context.limits.max_pages:
            notes.add("pages_bounded")
        pages = _read_text(document, min(page_count, context.limits.max_pages), context)
        if all(page.text is None for page in pages):
            raise Refused(ParseFailure("unreadable", "no page could be loaded"))
        if any(page.text is None for page in pages):
            notes.add("pages_unreadable")
        if any(page.garbled for page in pages):
            notes.add("garbled_text")
        repeated = useful.repeated_lines([page.text or "" for page in pages if not page.garbled])
        wanting = _pages_without_use(pages, repeated)
        if _remove_stamps(pages, repeated):
            notes.add("watermark_removed")
        reading = Reading([], page_count, notes=notes)
        if context.render:
            context.before_render()
            rendering.show_form_fields(document)
            reading.thumbnail = rendering.draw_thumbnail(document, context.limits.thumbnail_px)
            _read_pictures(document, pages, wanting, repeated, context, notes)
        elif wanting:
            reading.partial = True
        reading.pages = [(page.text or "", page.origin if page.text else "none") for page in pages]
        reading.partial |= bool(notes & _NOTES_OF_MISSING_TEXT)
        if "repaired" in notes and b"%%EOF" not in data[-2048:]:
            reading.partial = True
        return reading


def was_repaired(data: bytes) -> bool:
    """Whether the file's own cross-reference is missing or points nowhere.

    A reader that opened such a file must have rebuilt it.
    """
    tail = data[-2048:]
    found = _STARTXREF.findall(tail)
    if not found:
        return True
    header = max(data[:1024].find(b"%PDF-"), 0)
    positions = {int(found[-1]), int(found[-1]) + header}
    return not any(_XREF_OR_OBJECT.match(data[at : at + 64]) for at in positions)


def _open(data: bytes) -> pypdfium2.PdfDocument:
    try:
        return pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        code = getattr(error, "err_code", None)
        if code == pdfium_c.FPDF_ERR_PASSWORD:
            raise Refused(ParseFailure("encrypted", "a password is needed")) from error
        if code == pdfium_c.FPDF_ERR_SECURITY:
            raise Refused(ParseFailure("encrypted", "unsupported security handler")) from error
        raise Refused(ParseFailure("unreadable", "the file's structure is damaged")) from error


def _document_notes(document: pypdfium2.PdfDocument, data: bytes) -> set[Note]:
    notes: set[Note] = set()
    if was_repaired(data):
        notes.add("repaired")
    if document.count_attachments() > 0:
        notes.add("attachments_ignored")
    if document.get_formtype() in (pdfium_c.FORMTYPE_XFA_FULL, pdfium_c.FORMTYPE_XFA_FOREGROUND):
        notes.add("xfa_form")
    return notes


def _read_text(document: pypdfium2.PdfDocument, count: int, context: ReadContext) -> list[_Page]:
    pages: list[_Page] = []
    chars = 0
    for index in range(count):
        with rendering.open_page(document, index) as page:
            if page is None:
                pages.append(_Page(None))
                continue
            try:
                text_page = page.get_textpage()
            except pypdfium2.PdfiumError:
                pages.append(_Page(None))
                continue
            with closing(text_page):
                chars += text_page.count_chars()
                guard_text_size(chars, context.limits)
                raw = text_page.get_text_range()
        pages.append(_Page(normalise(raw), garbled=useful.is_garbled(raw)))
    return pages


def _pages_without_use(pages: list[_Page], repeated: frozenset[str]) -> list[int]:
    return [
        index
        for index, page in enumerate(pages)
        if page.text is not None and (page.garbled or useful.needs_ocr(page.text, repeated))
    ]


def _remove_stamps(pages: list[_Page], repeated: frozenset[str]) -> bool:
    any_removed = False
    for page in pages:
        if page.text:
            page.text, removed = useful.without_stamps(page.text, repeated)
            any_removed |= removed
    return any_removed


def _read_pictures(
    document: pypdfium2.PdfDocument,
    pages: list[_Page],
    wanting: list[int],
    repeated: frozenset[str],
    context: ReadContext,
    notes: set[Note],
) -> None:
    """Puts what OCR finds in the place of useless text."""
    skipped = set(wanting)
    texts = [page.text or "" for index, page in enumerate(pages) if index not in skipped]
    reader = PictureReader(context, texts, repeated)
    found = reader.read(document, wanting)
    stamped = [i for i in found if not pages[i].garbled and useful.fold_line(pages[i].text or "")]
    # One page with nothing but the running footer is no watermark; a scan with stamps only is.
    if len(stamped) > len(pages) / 2:
        notes.add("watermark_removed")
    for index, text in found.items():
        pages[index] = _Page(text, pages[index].garbled, "ocr")
    notes |= reader.notes
