"""Draws PDF pages within bounds: pictures for OCR, thumbnails, the check for blank pages.

PDFium and Pillow; what the pictures are read for belongs to `pictures`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from math import sqrt
from typing import TYPE_CHECKING, Final

import pypdfium2
import pypdfium2.raw as pdfium_c

from pipeline_assets.ingest.parsing import thumbnail

if TYPE_CHECKING:
    from PIL.Image import Image

MAX_PIXELS: Final = 8_000_000
"""A3 at 200 dpi; one byte a pixel in greyscale."""
_MAX_SIDE: Final = 8_000
_BLANK_CHECK_SIDE: Final = 300
_THUMBNAIL_CANDIDATES: Final = 3


def render_scale(width: float, height: float, wanted: float, max_side: float = _MAX_SIDE) -> float:
    """Pixels per point, lowered so that the picture keeps within `MAX_PIXELS` and `max_side`.

    0 for a page without area.
    """
    if not (width > 0 and height > 0):
        return 0.0
    return min(wanted, sqrt(MAX_PIXELS) / sqrt(width) / sqrt(height), max_side / max(width, height))


@contextmanager
def open_page(document: pypdfium2.PdfDocument, index: int) -> Iterator[pypdfium2.PdfPage | None]:
    """One page, closed afterwards; None when PDFium cannot load it."""
    try:
        page = document[index]
    except pypdfium2.PdfiumError:
        page = None
    try:
        yield page
    finally:
        if page is not None:
            page.close()


def show_form_fields(document: pypdfium2.PdfDocument) -> None:
    """Lets rendering draw the fields of a form. This build of PDFium has no script engine."""
    if document.get_formtype() != pdfium_c.FORMTYPE_ACRO_FORM:
        return
    # A damaged form dictionary leaves the page drawn without its fields, as any viewer would.
    with suppress(pypdfium2.PdfiumError):
        document.init_forms()


def render(page: pypdfium2.PdfPage, scale: float, *, grey: bool) -> Image | None:
    """A picture of the page; None where it has no area or PDFium has no picture."""
    width, height = page.get_size()
    scale = render_scale(width, height, scale)
    if scale <= 0:
        return None
    try:
        bitmap = page.render(
            scale=scale,  # pyright: ignore[reportArgumentType] - any number, says its docstring
            grayscale=grey,
            limit_image_cache=True,
        )
    except pypdfium2.PdfiumError:
        return None
    with closing(bitmap):
        return bitmap.to_pil().copy()


def _render_small(page: pypdfium2.PdfPage, side: int, *, grey: bool) -> Image | None:
    width, height = page.get_size()
    if not (width > 0 and height > 0):
        return None
    return render(page, side / max(width, height), grey=grey)


def draw_thumbnail(document: pypdfium2.PdfDocument, side: int) -> bytes | None:
    """The first of the first three pages that is not blank, else the first that can be drawn."""
    fallback: bytes | None = None
    for index in range(min(len(document), _THUMBNAIL_CANDIDATES)):
        with open_page(document, index) as page:
            picture = _render_small(page, side, grey=False) if page is not None else None
        if picture is None:
            continue
        if not thumbnail.is_blank(picture):
            return thumbnail.encode(picture, side)
        fallback = fallback or thumbnail.encode(picture, side)
    return fallback


def looks_blank(page: pypdfium2.PdfPage) -> bool:
    """Whether a small picture of the page shows nothing, or there is nothing to draw."""
    small = _render_small(page, _BLANK_CHECK_SIDE, grey=True)
    return small is None or thumbnail.is_blank(small)
