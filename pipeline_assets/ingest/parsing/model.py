"""The words of document parsing: limits, settings, pages, outcomes, reports.

Only frozen data and its own invariants belong here; no reader, no process, no I/O.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeAlias

MIB: Final = 2**20

PDF: Final = "application/pdf"
DOCX: Final = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
ODT: Final = "application/vnd.oasis.opendocument.text"
HTML: Final = "text/html"
PLAIN: Final = "text/plain"
SUPPORTED_MEDIA_TYPES: Final = frozenset({PDF, DOCX, ODT, HTML, PLAIN})

Origin: TypeAlias = Literal["text", "ocr", "none"]
"""Where a page's text comes from: the document itself, a picture read by OCR, or nowhere."""

FailureReason: TypeAlias = Literal[
    "empty",
    "unsupported_type",
    "type_mismatch",
    "encrypted",
    "unreadable",
    "no_text",
    "too_large",
    "too_slow",
    "not_a_document",
]

Note: TypeAlias = Literal[
    "attachments_ignored",  # embedded files were left closed
    "charset_guessed",  # nothing declared the encoding and it is not UTF-8
    "extension_ignored",  # the content, not the name, decided the type
    "garbled_text",  # a page's own text is mojibake from a wrong character map
    "ocr",  # at least one page was read by OCR
    "ocr_bounded",  # more pages needed OCR than the page bound allows
    "ocr_script_unsupported",  # a page's script has no OCR model here
    "ocr_time_bounded",  # OCR stopped at its share of the time limits
    "ocr_unavailable",  # pages needed OCR and the extra `ocr` is not installed
    "pages_bounded",  # pages beyond the page bound were not read
    "pages_unreadable",  # some pages could not be loaded
    "render_failed",  # rendering killed a worker; text only
    "repaired",  # the reader rebuilt a damaged file structure
    "watermark_removed",  # a stamp repeated on nearly every page was left out
    "xfa_form",  # the form's content is not in the pages
]


@dataclass(frozen=True)
class ParseLimits:
    """What one document may cost. Bytes, seconds, pages and pixels as the names say.

    Figures: 156 real and hostile PDFs needed at most 247 MB with OCR loaded, so 640 MiB of
    address space leaves room and keeps any worker's resident memory under 1 GiB. Twelve dense
    pages of OCR take 28 s of CPU. The CPU limit is what stops a document; the wall limit is for
    one that waits, and three times as long so that a loaded machine gives the same result.
    """

    memory_bytes: int = 640 * MIB
    cpu_seconds: int = 40
    wall_seconds: float = 120
    max_pages: int = 2000
    max_text_chars: int = 20_000_000
    max_input_bytes: int = 256 * MIB
    ocr_pages: int = 12
    ocr_dpi: int = 200
    thumbnail_px: int = 400

    def __post_init__(self) -> None:
        for name in self.__dataclass_fields__:
            value = getattr(self, name)
            if value < 0 or (value == 0 and name != "ocr_pages"):
                raise ValueError(f"ParseLimits.{name} must be positive, got {value}")


@dataclass(frozen=True)
class ParsedPage:
    """One page. `offset` counts code points from the start of the document text."""

    number: int
    text: str
    origin: Origin
    offset: int


@dataclass(frozen=True)
class ParsedDocument:
    """Text by page. The document text is the page texts joined by a form feed.

    Attributes:
        media_type: Decided by content (see `sniff`).
        page_count: Pages the document says it has; `pages` may be fewer (`pages_bounded`).
        language: ISO 639-1 code of the body, None when the text does not say.
        languages: Further languages with a substantial share of the text.
        thumbnail: PNG of the first page that is not blank, None when nothing can be drawn.
        partial: Some of the document's text is known to be missing.
    """

    media_type: str
    page_count: int
    pages: tuple[ParsedPage, ...]
    language: str | None
    languages: tuple[str, ...]
    thumbnail: bytes | None
    partial: bool
    notes: tuple[Note, ...]

    @property
    def text(self) -> str:
        """The whole document text, which page offsets count in."""
        return "\f".join(page.text for page in self.pages)


@dataclass(frozen=True)
class ParseFailure:
    """Why a document has no pages. `detail` is closed wording, never document text."""

    reason: FailureReason
    detail: str


ParseOutcome: TypeAlias = ParsedDocument | ParseFailure


@dataclass(frozen=True)
class ParseTask:
    """One file to parse.

    Attributes:
        key: The caller's name for it, echoed in the report.
        path: A regular file; opened once, by the parent, never followed through a link.
        media_type_hint: What the source says the type is; wins over the name's extension.
        name: The document's own name where `path` is an artifact without an extension.
    """

    key: str
    path: Path
    media_type_hint: str | None = None
    name: str | None = None


@dataclass(frozen=True)
class ParseReport:
    """An outcome and what it cost.

    Attributes:
        sha256: Checksum of the bytes that were parsed; None when they were never read whole.
        peak_rss_bytes: Highest resident memory of the worker during this document; 0 when no
            worker had it, or one died and the kernel does not tell.
        cacheable: False when another machine, or this one tomorrow, may do better.
    """

    key: str
    outcome: ParseOutcome
    sha256: str | None
    wall_seconds: float
    cpu_seconds: float
    peak_rss_bytes: int
    cacheable: bool


def place_pages(texts: list[tuple[str, Origin]]) -> tuple[ParsedPage, ...]:
    """Numbers pages from 1 and gives each its offset in the joined document text."""
    pages: list[ParsedPage] = []
    offset = 0
    for number, (text, origin) in enumerate(texts, start=1):
        pages.append(ParsedPage(number, text, origin, offset))
        offset += len(text) + 1
    return tuple(pages)


NO_OCR_DETAIL: Final = "no page has text, and the extra ocr is not installed"

_BETTER_ELSEWHERE: Final[frozenset[Note]] = frozenset({"ocr_unavailable", "ocr_time_bounded"})


def is_cacheable(outcome: ParseOutcome) -> bool:
    """Whether the bytes and the settings alone decided: not this machine's speed or extras."""
    if isinstance(outcome, ParsedDocument):
        return not _BETTER_ELSEWHERE & set(outcome.notes)
    return outcome.reason != "too_slow" and outcome.detail != NO_OCR_DETAIL
