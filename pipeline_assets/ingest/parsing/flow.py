"""Collects the running text of formats whose pages are only breaks in a flow.

Shared by DOCX and ODT; no XML here.
"""

from __future__ import annotations

from pipeline_assets.ingest.parsing.model import ParseLimits
from pipeline_assets.ingest.parsing.reading import guard_text_size


class Flow:
    """Text so far, divided into pages. Breaks that follow one another at once count once."""

    def __init__(self, limits: ParseLimits) -> None:
        self._limits = limits
        self._pages: list[list[str]] = [[]]
        self._chars = 0

    def write(self, text: str) -> None:
        """Adds text to the current page; `Refused` (too_large) beyond the text limit."""
        self._chars += len(text)
        guard_text_size(self._chars, self._limits)
        self._pages[-1].append(text)

    def break_page(self) -> None:
        """Starts a page, unless the current one is still empty."""
        if any(piece.strip() for piece in self._pages[-1]):
            self._pages.append([])

    def pages(self) -> list[str]:
        """The page texts; a last page without text is dropped."""
        texts = ["".join(pieces) for pieces in self._pages]
        return texts[:-1] if len(texts) > 1 and not texts[-1].strip() else texts


def with_header(pages: list[str], header: str) -> list[str]:
    """Page texts with the first section's header first, where page 1 does not repeat it."""
    lines = [line for line in header.split("\n") if line.strip()]
    present = {line.strip() for line in pages[0].split("\n")}
    missing = [line for line in lines if line.strip() not in present]
    return ["\n".join([*missing, pages[0]]), *pages[1:]] if missing else pages
