"""Pages as the rules see them: lines in order, what repeats, and what sort of line each is.

Reading and counting only; what a line means for a title or an identifier is decided elsewhere.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pipeline_assets.workloads.equipment_manuals.baseline import line_kinds, vocabulary

FRONT_PAGES = 6  # titles, introductions and model lists stand early
BACK_PAGES = 2
COUNTED_PAGES = 60  # enough to see what repeats; a bound on time for long documents

_PAGE_AT_END = re.compile(r"\s+(?:[-–|] ?)?\d{1,3}$")
_LONG_WORD = re.compile(r"[^\W\d_]{4,}")
_DIGITS = re.compile(r"\d+")
_PAGE_CHARACTERS = 100_000  # a "page" may be a whole book without page breaks
_PAGE_LINES = 400
_MIN_REPEATS = 3
_REPEATED_SHARE = 0.5  # of the pages; running heads may differ on left and right pages
_FULL_STOPS = ".!?:。！？："
_RUNS_ON_WORDS = 6  # a title line may go on in lower case too, but it is shorter
_EDGE = 4  # lines from the top or the bottom of a page where running heads stand


@dataclass(frozen=True)
class PageText:
    """One page of a document, as parsed.

    Attributes:
        number: 1-based page number.
        text: the page's text; lines end in a line feed.
    """

    number: int
    text: str


@dataclass(frozen=True)
class Line:
    """One printed line that is not blank.

    Attributes:
        page: 1-based page number.
        printed: the line as it stands on the page, outer white space gone.
        text: the same with runs of white space made one space.
        kind: what sort of line it is, by its own words alone.
        running: whether it repeats on many pages (running head, foot or stamp).
    """

    page: int
    printed: str
    text: str
    kind: line_kinds.Kind
    running: bool

    @property
    def heading(self) -> str:
        """The text, without the page number that a running head ends in."""
        if not self.running:
            return self.text
        return _PAGE_AT_END.sub("", self.text) or self.text


@dataclass(frozen=True)
class Pages:
    """The front pages as lines, and the counted pages as text.

    Attributes:
        front: lines of each front page, by page in order; pages without text are left out.
        back: lines of the last two pages that are no front pages: makers sign there.
        counted: the texts that words are counted in, without running lines that only number the
            paper.
    """

    front: tuple[tuple[Line, ...], ...]
    back: tuple[Line, ...]
    counted: tuple[PageText, ...]


def read_pages(pages: Sequence[PageText]) -> Pages:
    """Split the pages into lines and mark what repeats."""
    pages = [PageText(page.number, page.text[:_PAGE_CHARACTERS]) for page in pages]
    counted = tuple(page for page in pages[:COUNTED_PAGES] if page.text.strip())
    repeated = _repeated_lines(counted)
    front = [lines for page in pages[:FRONT_PAGES] if (lines := _lines(page, repeated))]
    back = [line for page in pages[FRONT_PAGES:][-BACK_PAGES:] for line in _lines(page, repeated)]
    numbering = frozenset(key for key in repeated if _is_numbering(key))
    return Pages(
        front=tuple(front),
        back=tuple(back),
        counted=tuple(_without(page, numbering) for page in counted),
    )


def _is_numbering(key: str) -> bool:
    """Whether a running line only numbers the paper: no word in it, or a document number."""
    return not _LONG_WORD.search(key) or line_kinds.kind_of(key) in ("document_number", "revision")


def _without(page: PageText, dropped: frozenset[str]) -> PageText:
    if not dropped:
        return page
    lines = [printed for raw in page.text.splitlines() if (printed := raw.strip())]
    kept = [
        line
        for at, line in enumerate(lines)
        if _EDGE <= at < len(lines) - _EDGE or _key(collapse(line)) not in dropped
    ]
    return PageText(page.number, "\n".join(kept)) if len(kept) < len(lines) else page


def _lines(page: PageText, repeated: frozenset[str]) -> tuple[Line, ...]:
    return _in_context(
        tuple(
            Line(
                page=page.number,
                printed=printed,
                text=(text := collapse(printed)),
                kind=line_kinds.kind_of(text),
                running=_key(text) in repeated,
            )
            for raw in page.text.splitlines()[:_PAGE_LINES]
            if (printed := raw.strip())
        )
    )


def _in_context(lines: tuple[Line, ...]) -> tuple[Line, ...]:
    """Take a heading-like line for running text where its neighbours say that it is.

    A line in the middle of a sentence is followed by one in lower case, or follows one that has
    not ended.
    """
    read: list[Line] = []
    for at, line in enumerate(lines):
        following = lines[at + 1] if at + 1 < len(lines) else None
        if line.kind == "heading" and line_kinds.may_be_prose(line.text):
            before = read[-1] if read else None
            continues = (
                before is not None and before.kind == "prose" and before.text[-1] not in _FULL_STOPS
            )
            runs_on = (
                following is not None
                and following.text[0].islower()
                and len(line.text.split()) >= _RUNS_ON_WORDS
                and not vocabulary.names_kind(line.text)
            )
            if continues or runs_on:
                read.append(replace(line, kind="prose"))
                continue
        read.append(line)
    return tuple(read)


def collapse(text: str) -> str:
    """Runs of white space made one space, outer white space gone."""
    return " ".join(text.split())


def _key(text: str) -> str:
    return _DIGITS.sub("#", text.casefold())


def _repeated_lines(pages: Sequence[PageText]) -> frozenset[str]:
    if len(pages) < _MIN_REPEATS:
        return frozenset()
    counts: Counter[str] = Counter()
    for page in pages:
        lines = [printed for raw in page.text.splitlines() if (printed := raw.strip())]
        edges = lines if len(lines) <= 2 * _EDGE else lines[:_EDGE] + lines[-_EDGE:]
        counts.update({_key(collapse(printed)) for printed in edges})
    least = max(_MIN_REPEATS, _REPEATED_SHARE * len(pages))
    return frozenset(key for key, count in counts.items() if count >= least)
