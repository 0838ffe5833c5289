"""Gather the heading lines at the top of a page, and cut them down to those of a title.

Whether the lines are good enough for a title is judged in `title.py`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pipeline_assets.workloads.equipment_manuals.baseline import vocabulary
from pipeline_assets.workloads.equipment_manuals.baseline.pages import Line
from pipeline_assets.workloads.equipment_manuals.baseline.usage import Usage
from pipeline_assets.workloads.text_folding import fold

MAX_TITLE_LINES = 4  # a block of more lines than this is no title alone

_SPARSE_LINES = 8  # a cover page has few lines beside its title
_LOGO_LINES = 2
_LOGO_WORDS = 2
_MAKER_WORDS = 4
_UNCLEAR_LINES = 3  # behind a title; many more are the labels of a drawing
_NAME_PAGES = 3  # a product's name is used throughout a document

_ENDS = frozenset(("prose", "item", "contents_heading", "contents_entry", "section_heading"))
# What a cover prints under its title. Once the title has begun, such a line ends it.
_SIDE = frozenset(
    (
        "date",
        "revision",
        "copyright",
        "byline",
        "company",
        "address",
        "phone",
        "link",
        "language_name",
    )
)
_IMPRINT = re.compile(r"^[^\W\d_]+,? (?:19|20)\d\d(?: ?[гр]\.?)?$")  # place and year of printing
_NUMBER_ALONE = re.compile(r"^\d{3,4}$")
_OPEN_END = re.compile(
    r"(?:[:,&/–—-]|(?<!\w)(?:and|or|of|for|the|und|für|et|de|des|du|la|y|e|и|та))$"
)
_CONTINUES = re.compile(r"^(?:[a-zà-žа-яёіїє(&/–—-]|(?:for|für|pour|para|per|для|and|und|et)\s)")
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")


@dataclass(frozen=True)
class Block:
    """The heading lines at the top of one page.

    Attributes:
        lines: the lines, side matter and repetitions left out.
        sparse: whether the page holds little else, as a cover does.
        before_contents: whether a table of contents follows at once.
        doubtful: whether it is open which of the lines belong to the title.
    """

    lines: tuple[Line, ...]
    sparse: bool
    before_contents: bool
    doubtful: bool = False


def gather(lines: Sequence[Line], usage: Usage) -> Block:
    """Gather the title-like lines at the top of a page, up to the first line that is none."""
    block: list[Line] = []
    end: Line | None = None
    seen_side = False
    for line in lines:
        if line.kind in _ENDS:
            end = line
            break
        if _is_beside_title(line, usage):
            seen_side = seen_side or (bool(block) and line.kind in _SIDE)
        elif block and _IMPRINT.match(line.text):
            seen_side = True
        elif not seen_side or vocabulary.names_kind(line.text):
            block.append(line)
    if end is not None and end.kind == "prose" and end.text[0].islower() and block:
        block.pop()  # it is the first line of this paragraph
    # A number alone may be the model ("564") as well as the number of the page.
    last = block[-1] if block else None
    numbers = [line for line in _until(lines, last) if _NUMBER_ALONE.match(line.text)]
    printed = [line for line in lines if line.kind not in ("page_number", "marks")]
    return Block(
        lines=_without_repeats(block),
        sparse=end is None and len(printed) <= _SPARSE_LINES,
        before_contents=end is not None and end.kind == "contents_heading",
        doubtful=any(not line.running for line in numbers),
    )


def mark_maker(block: Block, maker_lines: str, usage: Usage) -> Block:
    """Mark a block as doubtful whose first words may be the maker's name above the title.

    Whether it belongs to the title, only layout tells. A product's name or kind is used
    throughout the document, and the maker's links and company lines do not have it. A first line
    all in lower case is a logo.

    Args:
        block: the block.
        maker_lines: the lines in which the maker names itself, folded and without spaces.
        usage: the document's counts.
    """
    for words, lead_lines in ((_MAKER_WORDS, 1), (_LOGO_WORDS, _LOGO_LINES)):
        lead = _lead(block.lines[:lead_lines], words, usage)
        rest = " ".join(line.text for line in block.lines[len(lead) :])
        complete = vocabulary.names_kind(rest) or usage.names_recurring_model(rest)
        if not lead or not complete or not vocabulary.says_more_than_kind(rest):
            continue
        name = " ".join(line.text for line in lead)
        if fold(name).replace(" ", "") in maker_lines:
            return replace(block, doubtful=True)
        if all(len(line.text.split()) <= _LOGO_WORDS for line in lead) and not _is_used(
            name, usage
        ):
            return replace(block, doubtful=True)
    return block


def cut_to_title(block: Block, usage: Usage) -> Block:
    """Cut a block down to the lines of the title; doubtful where the cut is not clear."""
    lines = block.lines
    kinds = [at for at, line in enumerate(lines) if vocabulary.names_kind(line.text)]
    models = [at for at, line in enumerate(lines) if usage.names_recurring_model(line.text)]
    if not kinds:
        return block
    last = kinds[0]
    before = " ".join(line.text for line in lines[: last + 1])
    kind_first = not vocabulary.says_more_than_kind(before)
    if not any(at <= last for at in models):
        # "Instruction manual" may stand above the name of what it is about, and a complete title
        # above the model.
        reach = 2 if kind_first else 1
        below = next((at for at in models if last < at <= last + reach), None)
        if below is None and kind_first and block.sparse and len(lines) <= MAX_TITLE_LINES:
            return block
        last = below if below is not None else last
    while last + 1 < len(lines) and _goes_on(lines[last].text, lines[last + 1].text):
        last += 1
    # A model beside a title that leaves it out, or more lines that may belong to it.
    cut_off = bool(models) and last < models[0] < 2 * MAX_TITLE_LINES
    behind = len(lines) - 1 - last
    unclear = behind > 0 and (block.sparse or (kind_first and behind <= _UNCLEAR_LINES))
    return replace(block, lines=lines[: last + 1], doubtful=block.doubtful or cut_off or unclear)


def _until(lines: Sequence[Line], last: Line | None) -> Sequence[Line]:
    return lines[: lines.index(last)] if last is not None and last in lines else ()


def _is_beside_title(line: Line, usage: Usage) -> bool:
    if line.kind != "heading" or vocabulary.after_model_label(line.text) is not None:
        return True
    return line.running and not _carries_title(line, usage)


def _carries_title(line: Line, usage: Usage) -> bool:
    return vocabulary.names_kind(line.text) or usage.names_recurring_model(line.text)


def _without_repeats(lines: Sequence[Line]) -> tuple[Line, ...]:
    """Drop lines that say again what one or all of the lines before them said."""
    kept: list[Line] = []
    for line in lines:
        said = [fold(other.text) for other in kept]
        if fold(line.text) not in {*said, " ".join(said)}:
            kept.append(line)
    return tuple(kept)


def _lead(lines: Sequence[Line], most_words: int, usage: Usage) -> list[Line]:
    """The first lines that are short and say neither kind nor model."""
    lead: list[Line] = []
    for line in lines:
        if len(line.text.split()) > most_words or _carries_title(line, usage):
            break
        lead.append(line)
    return lead


def _is_used(name: str, usage: Usage) -> bool:
    if _CJK.search(name):
        return True  # makers' logos are in Latin letters there
    if name == name.lower():
        return False
    return len(usage.of(name).pages) >= _NAME_PAGES or usage.has_common_noun(name)


def _goes_on(text: str, following: str) -> bool:
    return bool(_OPEN_END.search(text) or _CONTINUES.match(following))
