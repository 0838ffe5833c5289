"""The page image of a document that cannot be drawn.

Belongs here: only that. A published document always has a thumbnail reference (invariant 8).
"""

from __future__ import annotations

import io
from functools import cache

from PIL import Image, ImageDraw

SIDE = 400
"""Pixels of the longer side, as all thumbnails have."""


@cache
def placeholder() -> bytes:
    """An empty page as PNG, the same bytes each time."""
    image = Image.new("RGB", (SIDE * 210 // 297, SIDE), "white")
    ImageDraw.Draw(image).rectangle((0, 0, image.width - 1, image.height - 1), outline="grey")
    buffer = io.BytesIO()
    image.save(buffer, "PNG", optimize=True)
    return buffer.getvalue()
