"""What a trick is: a wrong answer made of a right one, and the rules that should stop it.

Belongs here: the types, and changes of answers and documents that several tricks make. Does not
belong here: the tricks (`*_tricks.py`) and running them (`adversarial.py`).
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from pipeline_assets.workloads.text_folding import find_quote, fold
from tests.acceptance.corpus import Document
from tests.acceptance.gold import Answer, Case, found

Kind = Literal[
    "title", "product_identifiers", "language", "description", "evidence", "document", "form"
]
REFERENCE = "«reference»"
"""Stands in a scripted text for the reference of the answer's own record."""


@dataclass(frozen=True)
class Setting:
    """Where a trick is played.

    Attributes:
        case: a document with its right answer.
        others: the other ones.
        number: how often this trick was played before.
    """

    case: Case
    others: Sequence[Case]
    number: int

    @property
    def document(self) -> Document:
        """The document."""
        return self.case.document

    @property
    def answer(self) -> Answer:
        """A copy of the right answer, to be spoiled."""
        return copy.deepcopy(self.case.answer)

    def pick(self, choices: Sequence[Any]) -> Any:
        """A choice that changes from document to document."""
        return choices[self.number % len(choices)]


@dataclass(frozen=True)
class Told:
    """A wrong answer.

    Attributes:
        document: what it is about; a document of ours where the trick needs a line in it.
        answer: the answer, or its text with `REFERENCE` in it.
        echoes: the position in its batch whose reference it carries; None for its own.
    """

    document: Document
    answer: Answer | str
    echoes: int | None = None


Make = Callable[[Setting], Told | None]
"""Plays a trick; None where a document gives no occasion."""


@dataclass(frozen=True)
class Trick:
    """One kind of wrong answer.

    Attributes:
        id: names it in reports.
        kind: what is wrong: a field, its evidence, the document, or the form.
        told: what it does, in a few words.
        rules: any of these should stop it.
        make: the wrong answer; None where a document gives no occasion.
    """

    id: str
    kind: Kind
    told: str
    rules: frozenset[str]
    make: Make


def tell(answer: Answer | str) -> Callable[[str], str]:
    """The reference of a record → the answer's text."""

    def told(reference: str) -> str:
        if isinstance(answer, str):
            return answer.replace(REFERENCE, reference)
        text = json.dumps({"document": reference, **answer}, ensure_ascii=False)
        return text.replace(REFERENCE, reference)

    return told


def rules(*names: str) -> frozenset[str]:
    """A set of rules."""
    return frozenset(names)


def change(setting: Setting, /, **fields: Any) -> Told:
    """The right answer with other fields."""
    return Told(setting.document, setting.answer | fields)


def change_in(setting: Setting, document: Document, /, **fields: Any) -> Told:
    """The same about a document that was changed for it."""
    return Told(document, setting.answer | fields)


def value_of(case: Case, field: str) -> str | None:
    """A single field's value where it is found."""
    part = case.answer[field]
    return part["value"] if part["status"] == "found" else None


def first_quote(field: dict[str, Any]) -> tuple[int, str]:
    """(page, quote) of a field's first evidence."""
    evidence = field["evidence"][0]
    return evidence["page"], evidence["quote"]


def quotes(field: dict[str, Any]) -> list[tuple[int, str]]:
    """(page, quote) of a field's whole evidence."""
    return [(each["page"], each["quote"]) for each in field["evidence"]]


def stands_in(document: Document, text: str) -> bool:
    """Are these words anywhere in the document?"""
    return any(find_quote(page, text) is not None for _, page in document.pages)


def stranger(setting: Setting, field: str) -> Case | None:
    """Another document, of the same language, whose value of a field is nowhere in this one."""
    for other in _turned(setting):
        value = value_of(other, field)
        if (
            value is not None
            and other.document.gold.language == setting.document.gold.language
            and value_of(other, "title") != value_of(setting.case, "title")
            and not stands_in(setting.document, value)
            and fold(value) != fold(value_of(setting.case, field) or "")
        ):
            return other
    return None


def strange_identifier(setting: Setting) -> dict[str, Any] | None:
    """An identifier, with its evidence, of another document that this one does not mention."""
    for other in _turned(setting):
        for item in other.answer["product_identifiers"]:
            if any(map(str.isdigit, item["value"])) and not stands_in(
                setting.document, item["value"]
            ):
                return copy.deepcopy(item)
    return None


def _turned(setting: Setting) -> list[Case]:
    """The other documents, beginning at another one each time."""
    at = (setting.number * 7) % max(1, len(setting.others))
    return [*setting.others[at:], *setting.others[:at]]


def with_line(document: Document, line: str, page: int = 1) -> Document:
    """The document with one more printed line at the end of a page's text."""
    pages = [
        (number, f"{text}\n\n{line}\n" if number == page else text)
        for number, text in document.pages
    ]
    return msgspec.structs.replace(document, pages=tuple(pages))


def with_line_on_every_page(document: Document, line: str) -> Document:
    """The document with a stamp at the foot of every page."""
    pages = [(number, f"{text}\n{line}\n") for number, text in document.pages]
    return msgspec.structs.replace(document, pages=tuple(pages))


def has_identifier(setting: Setting) -> str | None:
    """The document's first identifier with a digit in it."""
    for item in setting.case.answer["product_identifiers"]:
        if any(map(str.isdigit, item["value"])):
            return item["value"]
    return None


def printed_title(line: str, page: int = 1) -> dict[str, Any]:
    """A title that stands, whole, on a line of its own."""
    return found(line, (page, line))


def other_digit(text: str) -> str:
    """The text with its last digit changed."""
    at = max(index for index, character in enumerate(text) if character.isdigit())
    return text[:at] + str((int(text[at]) + 3) % 10) + text[at + 1 :]


LOOK_ALIKES = str.maketrans(
    "ACEHKMOPTXaceopxyАСЕНКМОРТХасеорху", "АСЕНКМОРТХасеорхуACEHKMOPTXaceopxy"
)


def look_alike(text: str) -> str | None:
    """The text with the first letter that has a double in the other alphabet replaced by it."""
    for at, character in enumerate(text):
        if (double := character.translate(LOOK_ALIKES)) != character:
            return text[:at] + double + text[at + 1 :]
    return None


def words(text: str) -> list[str]:
    """Its words, in order."""
    return re.findall(r"\S+", text)
