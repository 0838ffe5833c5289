"""Find the printed title: the heading block of a front page that names the document.

A title is one to a few printed lines. It is `found` only when something beside its position says
that it is the title: a word such as "manual", a model that the document keeps naming, a table of
contents that follows. Otherwise the best candidate is `uncertain`, for a person to judge.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pipeline_assets.workloads.equipment_manuals.answer import ABSENT, Evidence, Field, Status
from pipeline_assets.workloads.equipment_manuals.baseline import vocabulary
from pipeline_assets.workloads.equipment_manuals.baseline.heading_block import (
    MAX_TITLE_LINES,
    Block,
    cut_to_title,
    gather,
    mark_maker,
)
from pipeline_assets.workloads.equipment_manuals.baseline.pages import Line, Pages
from pipeline_assets.workloads.equipment_manuals.baseline.usage import Usage
from pipeline_assets.workloads.text_folding import fold

_TITLE_PAGES = 3  # a title stands on the cover, or behind a blank or picture page
_TEXT_LINES = 3  # behind a page with running text no cover follows
_OPENING_LINES = 12
MAX_LENGTH = 200
_LONE_WORDS = 8
_NOISY_SHARE = 0.25  # of a page's headings

_ODD = re.compile(r"[^\w\s.,:;/()\[\]'’‘`\"“”„«»&+®™©°#!?·•@%*–—―‐‑=-]|[_\ufffd]")
_WORD = re.compile(r"[^\W\d_]+")
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")
_CASE_NOISE = re.compile(r"[a-z][A-Z]{2,}[a-z]|^[a-z][A-Z]{3,}")


@dataclass(frozen=True)
class TitleFinding:
    """The title field and the printed lines that it joins.

    Attributes:
        field: what is answered.
        lines: the printed lines, in order; empty when nothing was found.
    """

    field: Field
    lines: tuple[Line, ...]


def find_title(pages: Pages, usage: Usage) -> TitleFinding:
    """Find the title on the first pages that have text."""
    opening = pages.front[0][:_OPENING_LINES] if pages.front else ()
    if any(vocabulary.names_other_paper(line.text) for line in opening):
        return _finding(opening[:1], "uncertain")
    weak: TitleFinding | None = None
    maker_lines = _maker_lines(pages)
    for lines in pages.front[:_TITLE_PAGES]:
        block = mark_maker(gather(lines, usage), maker_lines, usage)
        if _is_noisy(lines):
            block = replace(block, doubtful=True)
        finding = _judge(block, usage)
        if finding is None or finding.field.status != "found":
            finding = _lone_title_line(lines, block, usage) or finding
        if finding is not None and finding.field.status == "found":
            return finding
        weak = weak or finding
        if sum(line.kind == "prose" for line in lines) >= _TEXT_LINES:
            break
    return weak or TitleFinding(ABSENT, ())


def _maker_lines(pages: Pages) -> str:
    """The lines in which a maker names itself, folded, spaces out: links, companies, rights."""
    said = (
        line.text
        for lines in (*pages.front, pages.back)
        for line in lines
        if line.kind in ("link", "company", "copyright")
    )
    return "\n".join(fold(text).replace(" ", "") for text in said)


def _judge(block: Block, usage: Usage) -> TitleFinding | None:
    if not block.lines:
        return None
    cut = cut_to_title(block, usage)
    lines = cut.lines
    text = _joined(lines)
    if cut.doubtful or len(lines) > MAX_TITLE_LINES or not _is_legible(text):
        return _finding(lines[:MAX_TITLE_LINES], "uncertain")
    kinds = [vocabulary.kind_languages(line.text) for line in lines]
    if any(kinds):
        one_language = len({next(iter(kind)) for kind in kinds if len(kind) == 1}) <= 1
        found = vocabulary.says_more_than_kind(text) and one_language
    elif usage.names_recurring_model(text):
        found = _is_product_heading(lines, usage)
    else:
        found = block.before_contents and len(lines) < MAX_TITLE_LINES
    return _finding(lines, "found" if found else "uncertain")


def _is_product_heading(lines: Sequence[Line], usage: Usage) -> bool:
    """Whether lines without a word for the kind of document are the name of a product.

    The product's kind and model make a heading of two or three lines; more lines behind the model
    are text of the page.
    """
    models = [at for at, line in enumerate(lines) if usage.names_recurring_model(line.text)]
    behind = len(lines) - 1 - models[0]
    return behind <= 1 and len(lines) < MAX_TITLE_LINES and len(_WORD.findall(_joined(lines))) >= 3


def _lone_title_line(lines: Sequence[Line], block: Block, usage: Usage) -> TitleFinding | None:
    """A line below the block that names kind and recurring model, on a page of running text.

    Text extraction may put the head of a page last.
    """
    candidates = [
        line
        for line in lines
        if line.kind == "heading"
        and line not in block.lines
        and len(line.text.split()) <= _LONE_WORDS
        and vocabulary.names_kind(line.text)
        and usage.names_recurring_model(line.text)
    ]
    if not candidates:
        return None
    alone = len({fold(line.text) for line in candidates}) == 1 and _is_legible(candidates[0].text)
    return _finding(candidates[:1], "found" if alone else "uncertain")


def _is_legible(text: str) -> bool:
    """Whether a line is clean print, not the noise of a bad scan or a wrong character map."""
    signs = [character for character in text if not character.isspace()]
    if not signs or len(text) > MAX_LENGTH or _ODD.search(text):
        return False
    letters = sum(character.isalpha() for character in signs)
    words = text.split()
    single = sum(len(word) == 1 and word.isalpha() and not _CJK.match(word) for word in words)
    noisy = any(_CASE_NOISE.search(word) for word in _WORD.findall(text))
    return 2 * letters >= len(signs) and letters >= 3 and 3 * single <= len(words) and not noisy


def _is_noisy(lines: Sequence[Line]) -> bool:
    """Whether many headings of a page hold signs that none has: a scan that was read badly."""
    headings = [line for line in lines if line.kind == "heading"]
    odd = sum(_ODD.search(line.text) is not None for line in headings)
    return odd > _NOISY_SHARE * len(headings)


def _joined(lines: Sequence[Line]) -> str:
    return " ".join(line.heading for line in lines)


def _finding(lines: Sequence[Line], status: Status) -> TitleFinding:
    return TitleFinding(
        Field(
            value=_joined(lines)[:MAX_LENGTH],
            status=status,
            evidence=[Evidence(page=line.page, quote=line.printed) for line in lines],
        ),
        tuple(lines),
    )
