"""Small pictures of documents: encoding, blank pages, and a drawn stand-in for text formats.

Pillow only; rendering PDF pages belongs to `pdf`.
"""

from __future__ import annotations

import io
from typing import Final

from PIL import Image, ImageDraw, ImageFont

_PAGE_RATIO: Final = 297 / 210
_LINES: Final = 40
_CHARS: Final = 64
_BLANK_DARK_SHARE: Final = 0.0002
_BLANK_PAPER_LEVEL: Final = 200


def encode(image: Image.Image, longest_side: int) -> bytes:
    """PNG of at most `longest_side` pixels; the same picture always gives the same bytes."""
    small = image.convert("RGB")
    small.thumbnail((longest_side, longest_side), Image.Resampling.LANCZOS)
    buffer = io.BytesIO()
    small.save(buffer, format="PNG", compress_level=9)
    return buffer.getvalue()


def is_blank(image: Image.Image) -> bool:
    """Whether a page is one tone but for specks: fewer than 2 pixels in 10,000 stand out."""
    histogram = image.convert("L").histogram()
    pixels = sum(histogram)
    paper = max(range(256), key=lambda level: histogram[level])
    marks = sum(count for level, count in enumerate(histogram) if abs(level - paper) > 32)
    return paper >= _BLANK_PAPER_LEVEL and marks <= _BLANK_DARK_SHARE * pixels


def draw_text(text: str, longest_side: int) -> bytes | None:
    """A drawn page of a document that has no pages of its own; None without text.

    Pillow's own font is used, so the bytes are the same on every machine; it has Latin letters
    only, and others show as boxes.
    """
    lines = [line[:_CHARS] for line in text.split("\n") if line.strip()][:_LINES]
    if not lines:
        return None
    height = 2 * longest_side
    width = round(height / _PAGE_RATIO)
    image = Image.new("L", (width, height), 255)
    draw = ImageDraw.Draw(image)
    step = height / (_LINES + 4)
    font = ImageFont.load_default(size=step * 0.75)
    for row, line in enumerate(lines, start=2):
        draw.text((step * 2, row * step), line, font=font, fill=20)
    return encode(image, longest_side)
