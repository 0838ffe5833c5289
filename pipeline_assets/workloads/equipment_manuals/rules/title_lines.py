"""How a title stands on its page: whole lines, not parts of them, and no entry of a list.

Belongs here: the printed lines around the title's quotes, and what they say against it. Does not
belong here: the words themselves (`title_words.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import polars as pl

from pipeline_assets.workloads.equipment_manuals.baseline import line_kinds, vocabulary
from pipeline_assets.workloads.equipment_manuals.rules.title_words import names_product, squeeze

AROUND = 400
"""Code points before and behind a quote that are looked at."""
_LEADER = re.compile(r"\s*[.·…_]{3,}|\s*(?:\. ){3,}|(?:\s{2,}|\t)\s*\d{1,4}\s*$")
_NUMBER = re.compile(r"\s+\d{1,4}(?:-\d{1,3})?\s*$")
_WORD = re.compile(r"\S+")
# Signs of scripts without spaces between words end a word anywhere.
_PART = re.compile(r"(?![\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af])[^\W_]")
_GAP = re.compile(r"\s{3,}|\t|[|•·]\s*$|[(\[]$")
_GAP_BEHIND = re.compile(r"^(?:\s{3,}|\t|\s*[|•·(\[])")
# Kinds of text that a title rightly leaves out of its line.
_DROPPED = frozenset(
    {"revision", "date", "company", "copyright", "document_number", "link", "phone", "page_number",
     "marks", "address", "stamp", "language_name", "byline"}
)  # fmt: skip
_MAKER_WORDS = 2
_CUT_LINE = "leaves out a part of its printed line"
_ENTRIES = 4  # lines that end in a page number, for a page to be one of contents


@dataclass(frozen=True)
class Spot:
    """Where one quote of a title stands.

    Attributes:
        page: its page's number.
        above: the text before the quote's line.
        before: of its line, what stands before the quote.
        quote: the quote as printed; several lines if it runs over them.
        behind: of its line, what stands behind the quote.
        below: the text behind that line.
    """

    page: int
    above: str
    before: str
    quote: str
    behind: str
    below: str


def spots(places: pl.DataFrame, texts: pl.DataFrame) -> pl.DataFrame:
    """row, page and the strings of `Spot`: one row a quote that stands."""
    start, end = pl.col("start"), pl.col("end")
    text = pl.col("text")
    head = text.str.slice((start - AROUND).clip(lower_bound=0), pl.min_horizontal(start, AROUND))
    return (
        places.join(texts, on=["row", "page"], maintain_order="left")
        .select(
            "row",
            "page",
            head=head,
            quote=text.str.slice(start, end - start),
            tail=text.str.slice(end, AROUND),
        )
        .select(
            "row",
            "page",
            "quote",
            above=pl.col("head").str.strip_suffix(_last_line(pl.col("head"))),
            before=_last_line(pl.col("head")),
            behind=pl.col("tail").str.extract(r"^([^\r\n]*)").fill_null(""),
            below=pl.col("tail").str.replace(r"^[^\r\n]*", ""),
        )
    )


def whole() -> pl.Expr:
    """Of `spots`: does the quote take up its whole lines?"""
    return (pl.col("before").str.strip_chars() == "") & (pl.col("behind").str.strip_chars() == "")


def read_spots(frame: pl.DataFrame) -> Iterator[tuple[int, list[Spot]]]:
    """The spots of each row."""
    for (row,), part in frame.group_by("row", maintain_order=True):
        yield (
            int(str(row)),
            [
                Spot(*values)
                for values in part.select(
                    "page", "above", "before", "quote", "behind", "below"
                ).iter_rows()
            ],
        )


def against(title: str, found: Sequence[Spot], identifiers: Sequence[str]) -> str | None:
    """What the lines say against a title; None if nothing."""
    for spot in found:
        note = _entry(spot) or _cut_word(spot) or _cut_line(title, spot)
        if note is not None:
            return note
    return _cut_block(title, found, identifiers)


def first_heading(found: Sequence[Spot]) -> bool:
    """Is the title the first heading of what is seen of its page?"""
    above = [line.strip() for line in found[0].above.splitlines()]
    return not any(line and line_kinds.kind_of(line) == "heading" for line in above)


def _last_line(text: pl.Expr) -> pl.Expr:
    return text.str.extract(r"([^\r\n]*)$").fill_null("")


def _entry(spot: Spot) -> str | None:
    if not spot.behind.strip():
        return None
    note = "is an entry of a table of contents"
    if _LEADER.match(spot.behind):
        return note
    if _NUMBER.fullmatch(spot.behind):
        lines = (spot.above + spot.below).splitlines()
        if any(vocabulary.is_contents_heading(line.strip()) for line in lines):
            return note
        if sum(_NUMBER.search(line) is not None for line in lines) >= _ENTRIES:
            return note
    return None


def _cut_word(spot: Spot) -> str | None:
    before, behind = spot.before[-1:], spot.behind[:1]
    cut = (_PART.match(before) and _PART.match(spot.quote[:1])) or (
        _PART.match(behind) and _PART.match(spot.quote[-1:])
    )
    return "its quote cuts a word of the page" if cut else None


def _cut_line(title: str, spot: Spot) -> str | None:
    """A title that begins or ends in the middle of what its line says."""
    held = squeeze(title)
    line = spot.before + spot.quote + spot.behind
    words = list(_WORD.finditer(line))
    inside = [at for at, word in enumerate(words) if _is_held(word.group(), held)]
    if not inside:
        return _CUT_LINE if held in squeeze(line) else None
    first, last = _span(words, inside, held)
    head, tail = line[: words[first].start()], line[words[last].end() :]
    if _may_go(head, before=True) and _may_go(tail, before=False):
        return None
    return _CUT_LINE


def _is_held(word: str, held: str) -> bool:
    squeezed = squeeze(word)
    return bool(squeezed) and squeezed in held


def _span(words: Sequence[re.Match[str]], inside: Sequence[int], held: str) -> tuple[int, int]:
    """The longest run of words that the title has in the same order, first and last included."""
    best = (inside[0], inside[0])
    for first in inside:
        last = first
        joined = squeeze(words[first].group())
        for at in range(first + 1, len(words)):
            joined += squeeze(words[at].group())
            if joined not in held:
                break
            last = at
        if last - first > best[1] - best[0]:
            best = (first, last)
    return best


def _may_go(rest: str, *, before: bool) -> bool:
    """May a title leave this out of its line: nothing, a number of the paper, a maker's name?"""
    bare = rest.strip(" \t\r\n-–—|•·,;:()[]\"'“”«»®™©")
    if not squeeze(bare):
        return True
    gap = _GAP.search(rest) if before else _GAP_BEHIND.match(rest)
    if gap or line_kinds.kind_of(bare) in _DROPPED:
        return True
    words = bare.split()
    named = before and len(words) <= _MAKER_WORDS and not vocabulary.names_kind(bare)
    return named and all(word[:1].isupper() and word.isalpha() for word in words)


def _cut_block(title: str, found: Sequence[Spot], identifiers: Sequence[str]) -> str | None:
    """A title without product or kind, directly above or below a line that names the product."""
    if names_product(title, identifiers) or vocabulary.names_kind(title):
        return None
    for spot in found:
        beside = [*spot.above.splitlines()[-1:], *spot.below.lstrip("\r\n").splitlines()[:1]]
        for line in beside:
            heading = line_kinds.kind_of(line.strip()) == "heading"
            if heading and names_product(line, identifiers):
                return "leaves out the line beside it, which names the product"
    return None
