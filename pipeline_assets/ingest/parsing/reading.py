"""What every reader is given and gives back, and the ways a reader ends early.

The seam between `document`, which chooses a reader and completes its result, and the readers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from pipeline_assets.ingest.parsing.model import Note, Origin, ParseFailure, ParseLimits
from pipeline_assets.ingest.parsing.ocr import OcrText

if TYPE_CHECKING:
    from PIL.Image import Image


class PictureText(Protocol):
    """Reads pictures of pages; `ocr.OcrEngine` is the real one."""

    def read(
        self, image: Image, *, script: str | None, languages: Sequence[str], seconds: float
    ) -> OcrText:
        """See `ocr.OcrEngine.read`."""
        ...


class Refused(Exception):
    """A reader's verdict that a document cannot be parsed; carries the failure to report."""

    def __init__(self, failure: ParseFailure) -> None:
        super().__init__(failure.detail)
        self.failure = failure


@dataclass(frozen=True)
class ReadContext:
    """What a reader may use.

    Attributes:
        limits: Bounds for pages, text, OCR and pictures.
        render: False when an earlier try died while rendering: text only.
        before_render: Called before the first rendering, so that the parent can tell where a
            worker died.
        ocr: None when the extra is not installed.
        ocr_seconds_left: What remains of this document's share of the time limits.
    """

    limits: ParseLimits
    render: bool
    before_render: Callable[[], None]
    ocr: PictureText | None
    ocr_seconds_left: Callable[[], float]


@dataclass
class Reading:
    """A reader's result, before language and offsets are added."""

    pages: list[tuple[str, Origin]]
    page_count: int
    thumbnail: bytes | None = None
    partial: bool = False
    notes: set[Note] = field(default_factory=set)


def guard_text_size(chars: int, limits: ParseLimits) -> None:
    """Raises `Refused` (too_large) when a document has more text than the limit allows."""
    if chars > limits.max_text_chars:
        raise Refused(
            ParseFailure("too_large", f"more than {limits.max_text_chars} characters of text")
        )
