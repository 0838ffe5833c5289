"""Reads the pages of a PDF that have no useful text of their own, as far as bounds allow.

Between `rendering`, which draws, and `ocr`, which reads: order, bounds and notes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import pypdfium2

from pipeline_assets.ingest.parsing import language, rendering, useful
from pipeline_assets.ingest.parsing.model import Note
from pipeline_assets.ingest.parsing.normalise import normalise
from pipeline_assets.ingest.parsing.reading import PictureText, ReadContext

if TYPE_CHECKING:
    from PIL.Image import Image

_MIN_SECONDS: Final = 1.0
"""Less is not enough for a page, and Tesseract takes a limit of 0 for none at all."""


class PictureReader:
    """Reads pages of one document in order; `notes` says what was done and what was not.

    What the pages read so far say about script and language decides how the next is read.
    """

    def __init__(
        self, context: ReadContext, texts: Sequence[str], repeated: frozenset[str]
    ) -> None:
        """Prepares for a document.

        Args:
            context: Bounds and the OCR engine.
            texts: The pages that have useful text.
            repeated: Folded lines that nearly every page has; they are left out.
        """
        self.notes: set[Note] = set()
        self._context = context
        self._texts = list(texts)
        self._repeated = repeated
        self._script = language.main_script("\n".join(texts))
        self._languages = _languages(self._texts)
        self._done = 0

    def read(self, document: pypdfium2.PdfDocument, wanting: Sequence[int]) -> dict[int, str]:
        """Text of the wanting pages, by index; pages without legible text are left out."""
        found: dict[int, str] = {}
        for index in wanting:
            with rendering.open_page(document, index) as page:
                if page is None or rendering.looks_blank(page):
                    continue
                engine = self._context.ocr
                if engine is None:
                    self.notes.add("ocr_unavailable")
                    break
                bound = self._bound()
                if bound is not None:
                    self.notes.add(bound)
                    break
                picture = rendering.render(page, self._context.limits.ocr_dpi / 72, grey=True)
            self._done += 1
            text = self._read_picture(engine, picture) if picture is not None else ""
            if text:
                found[index] = text
        return found

    def _bound(self) -> Note | None:
        if self._done >= self._context.limits.ocr_pages:
            return "ocr_bounded"
        if self._context.ocr_seconds_left() < _MIN_SECONDS:
            return "ocr_time_bounded"
        return None

    def _read_picture(self, engine: PictureText, picture: Image) -> str:
        found = engine.read(
            picture,
            script=self._script,
            languages=self._languages,
            seconds=self._context.ocr_seconds_left(),
        )
        if not found.script_supported:
            self.notes.add("ocr_script_unsupported")
        if not found.finished:
            self.notes.add("ocr_time_bounded")
        text = useful.without_repeated(normalise(found.text), self._repeated)
        if text:
            self.notes.add("ocr")
            self._texts.append(text)
            self._script = self._script or language.main_script(text)
            self._languages = _languages(self._texts)
        return text


def _languages(texts: Sequence[str]) -> tuple[str, ...]:
    main, others = language.detect(texts)
    return () if main is None else (main, *others)
