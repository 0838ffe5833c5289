"""A reviewer's corrections: reading what was typed, finding its evidence, making the content.

Belongs here: the wishes of a correction, and where in the document their values stand. Does not
belong here: the shape of what is published (the workload's `correct`) and storing it
(`decisions.py`).

A value that the model gave too keeps the model's evidence. Any other is looked for in the document,
and quoted where it stands as a whole; one that stands nowhere has no evidence: the reviewer alone
vouches for it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pipeline_assets.review.desk import Sheet, rules_of_version
from pipeline_assets.review.errors import (
    CorrectionImpossible,
    CorrectionMalformed,
    NotCorrected,
)
from pipeline_assets.workloads.text_folding import find_quote, has_quote
from pipeline_assets.workloads.workload import CorrectedValue, CorrectionRefused
from resources.context import Context

_CITATION = re.compile(r"\s*(\d{1,7})\s*:(.+)", re.DOTALL)
SEPARATOR = ","
"""Between the values of a field that is a list."""
_SHORTEST = 3
"""Characters; a shorter value, such as a language's code, is no word of the text."""
# A letter or digit of a script with spaces between words.
_JOINS = re.compile(r"(?![\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af])[^\W_]")


@dataclass(frozen=True)
class Wish:
    """What a reviewer wants a field to be.

    Attributes:
        field: its name.
        value: as typed; several values of a list with commas between; empty: absent.
        evidence: (page, quote) pairs that the reviewer names.
    """

    field: str
    value: str
    evidence: tuple[tuple[int, str], ...] = ()


def read_wishes(sets: Sequence[str], cites: Sequence[str]) -> list[Wish]:
    """The wishes of `--set FIELD=VALUE` and `--evidence FIELD=PAGE:QUOTE` options.

    Raises:
        CorrectionMalformed: an option cannot be read, a field is set twice, or evidence is given
            of a field that is not set.
    """
    values: dict[str, str] = {}
    for given in sets:
        field, value = _halves("--set", given, "FIELD=VALUE")
        if field in values:
            raise CorrectionMalformed(
                f"--set {field}", "each field once; the values of a list with commas between"
            )
        values[field] = value
    if not values:
        raise CorrectionMalformed("the correction", "at least one --set FIELD=VALUE")
    evidence: dict[str, list[tuple[int, str]]] = {}
    for given in cites:
        field, cited = _halves("--evidence", given, "FIELD=PAGE:QUOTE")
        found = _CITATION.fullmatch(cited)
        if field not in values or found is None:
            raise CorrectionMalformed(
                f"--evidence {field}", "FIELD=PAGE:QUOTE of a field that is given with --set"
            )
        evidence.setdefault(field, []).append((int(found[1]), found[2].strip()))
    return [Wish(field, value, tuple(evidence.get(field, ()))) for field, value in values.items()]


def corrected_content(context: Context, sheet: Sheet, wishes: Sequence[Wish]) -> str:
    """The content that a correction makes of the model's.

    Raises:
        CorrectionImpossible: a value that could not be published, or evidence that does not stand
            on its page.
        UnknownWorkload: the workload of the review's version is not installed any more.
        NotCorrected: nothing is different afterwards.
    """
    workload, thresholds = rules_of_version(context, int(sheet.review["version_no"]))
    kinds = {field.name: field.many for field in workload.fields}
    changes = {wish.field: _values(sheet, wish, kinds) for wish in wishes}
    try:
        made = workload.correct(sheet.content, changes, thresholds)
    except CorrectionRefused as refused:
        raise CorrectionImpossible(refused.field, refused.why) from refused
    if made == sheet.content:
        raise NotCorrected(sheet.number)
    return made


def _halves(option: str, given: str, form: str) -> tuple[str, str]:
    field, equals, value = given.partition("=")
    if not equals or not field.strip():
        raise CorrectionMalformed(option, f"the form {form}")
    return field.strip(), value


def _values(sheet: Sheet, wish: Wish, kinds: Mapping[str, bool]) -> tuple[CorrectedValue, ...]:
    if wish.field not in kinds:
        known = ", ".join(kinds)
        raise CorrectionImpossible(wish.field, f"there is no such field; there are {known}")
    typed = wish.value.split(SEPARATOR) if kinds[wish.field] else [wish.value]
    values = [value.strip() for value in typed if value.strip()]
    if wish.evidence and not values:
        raise CorrectionImpossible(wish.field, "an absent field has no evidence")
    cited = _require_cited(sheet, wish)
    return tuple(
        CorrectedValue(value, _evidence(sheet, wish.field, value, cited, alone=len(values) == 1))
        for value in values
    )


def _require_cited(sheet: Sheet, wish: Wish) -> tuple[tuple[int, str], ...]:
    """The evidence that the reviewer names, once every quote stands on its page."""
    for number, words in wish.evidence:
        page = sheet.page(number)
        if page is None:
            raise CorrectionImpossible(wish.field, f"the document has no page {number}")
        if not has_quote(page.text, words):
            raise CorrectionImpossible(
                wish.field, f"the quote that was given does not stand on page {number}"
            )
    return wish.evidence


def _evidence(
    sheet: Sheet, field: str, value: str, cited: tuple[tuple[int, str], ...], *, alone: bool
) -> tuple[tuple[int, str], ...]:
    """Named for the only value, or holding this one; else the model's own; else found."""
    named = tuple(pair for pair in cited if alone or stands_in(pair[1], value) is not None)
    if named:
        return named
    for given in sheet.values:
        if given.field == field and given.value == value and given.evidence:
            return tuple((quote.page, quote.words) for quote in given.evidence)
    for page in sheet.pages:
        place = stands_in(page.text, value)
        if place is not None:
            return ((page.number, page.text[place[0] : place[1]]),)
    return ()


def stands_in(text: str, value: str) -> tuple[int, int] | None:
    """Where a text has a value as a whole, not as a part of a longer word or number."""
    if len(value) < _SHORTEST:
        return None
    at = 0
    while (place := find_quote(text[at:], value)) is not None:
        start, end = at + place[0], at + place[1]
        before = text[max(0, start - 1) : start]
        if not (_JOINS.match(before) or _JOINS.match(text[end : end + 1])):
            return start, end
        at = end
    return None
