"""Reads plain text: the encoding is found, form feeds divide pages."""

from __future__ import annotations

from typing import Final

from pipeline_assets.ingest.parsing.charset import decode
from pipeline_assets.ingest.parsing.model import ParseFailure
from pipeline_assets.ingest.parsing.normalise import control_share
from pipeline_assets.ingest.parsing.reading import ReadContext, Reading, Refused, guard_text_size

_MAX_CONTROL_SHARE: Final = 0.02
_MAX_UNDEFINED_SHARE: Final = 0.02


def read_plain(data: bytes, context: ReadContext) -> Reading:
    """Text of a plain file.

    Raises:
        Refused: not_a_document for binary content, too_large for too much text.
    """
    text, guessed = decode(data)
    guard_text_size(len(text), context.limits)
    undefined = text.count("\ufffd")
    if control_share(text) > _MAX_CONTROL_SHARE or undefined > _MAX_UNDEFINED_SHARE * len(text):
        raise Refused(ParseFailure("not_a_document", "binary content instead of text"))
    pages = text.rstrip("\f\n\r ").split("\f")
    reading = Reading([], len(pages))
    reading.pages = [(page, "text") for page in pages[: context.limits.max_pages]]
    if len(pages) > context.limits.max_pages:
        reading.notes.add("pages_bounded")
        reading.partial = True
    if guessed:
        reading.notes.add("charset_guessed")
    return reading
