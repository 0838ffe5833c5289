"""The baseline: a ticket's fields by the words that it uses.

It is the default provider, which needs no network, and the yardstick that a model must beat. It
says `found` only where the words leave no choice; everything else is uncertain and waits for a
person.

Belongs here: putting an answer together. Does not belong here: the words (`keywords.py`,
`products.py`), and which of them are the writer's own (`message.py`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import msgspec

from pipeline_assets.workloads.answer_format import ABSENT, Evidence, Field
from resources import language as detector
from resources.providers.baseline import RequestPage

from . import keywords
from .message import Message, read_message
from .products import may_be_named, product_names

LEAST_WEIGHT = 3
"""Of a category's cues, for it to be found: more than one word has to speak of it."""
CLEAR = 3
"""A category is found where its cues weigh so many times what those of any other do."""
LEAST_LETTERS = 30
"""Of the whole ticket, and of the sentence that is quoted, for a language to be told."""
LONGEST_QUOTE = 400
SUMMARY_LENGTH = (8, 240)
_LEAST_WORDS = 3
_SMALL_WORDS = {
    language: frozenset(words.split())
    for language, words in (
        ("en", "the and is my with not have for this are of to it you"),
        ("de", "der das und ist nicht mein meine ich bitte sie mit für den wir auf"),
        ("fr", "le la les est ne pas je vous mon ma pour une et il sont du dans"),
    )
}
"""Words that only one of the languages has."""
_ENOUGH = 4
"""Small words of one language that tell it, where the others have hardly any."""
_MIXED = 3
"""Small words of a second language, and how many times as many the first one has without doubt."""
UNKNOWN = Field(value=None, status="uncertain", evidence=[])


@dataclass(frozen=True)
class _Ticket:
    """A ticket's own words with the page that each sentence stands on."""

    subject: str
    pages: Mapping[str, int]

    @property
    def sentences(self) -> Sequence[str]:
        return list(self.pages)

    @cached_property
    def text(self) -> str:
        return "\n".join(" ".join(sentence.split()) for sentence in self.pages)

    @cached_property
    def detected(self) -> detector.Detection:
        """Its languages: by their small words where those leave no doubt, which is quicker."""
        words = _words_of(self.text)
        counts = {code: len(words & small) for code, small in _SMALL_WORDS.items()}
        first, second = sorted(counts, key=lambda code: -counts[code])[:2]
        if counts[first] >= _ENOUGH and counts[first] >= _MIXED * counts[second]:
            return detector.Detection(first, (first,))
        return detector.detect(self.text)

    def quoted(self, value: str | None, status: str, *sentences: str) -> Field:
        evidence = [Evidence(self.pages[one], _cut(one)) for one in dict.fromkeys(sentences)]
        return msgspec.convert(
            {"value": value, "status": status, "evidence": evidence}, Field, from_attributes=True
        )


def answer(document: str, pages: Sequence[RequestPage]) -> bytes:
    """An answer from the text of the pages alone, as JSON. Deterministic.

    Args:
        document: the reference of the request; echoed.
        pages: the pages in order, as parsed.
    """
    ticket = _read(pages)
    category = _category(ticket)
    summary = _summary(ticket, category)
    fields: dict[str, Any] = {
        "document": document,
        "category": category,
        "priority": _priority(ticket, category, summary),
        "product": _product(ticket),
        "language": _language(ticket),
        "summary": summary,
    }
    return msgspec.json.encode(fields)


def _read(pages: Sequence[RequestPage]) -> _Ticket:
    read: list[tuple[int, Message]] = [
        (page.number, read_message(page.text)) for page in pages if page.text.strip()
    ]
    placed: dict[str, int] = {}
    for number, message in read:
        for sentence in message.sentences:
            placed.setdefault(sentence, number)
    return _Ticket(read[0][1].subject if read else "", placed)


def _category(ticket: _Ticket) -> Field:
    cues = keywords.category_cues(ticket.sentences)
    weights = {category: sum(cue.weight for cue in found) for category, found in cues.items()}
    ranked = sorted(weights, key=lambda category: (-weights[category], category))
    if not ranked:
        asking = [sentence for sentence in ticket.sentences if keywords.asks(sentence)]
        return ticket.quoted("question", "found", asking[0]) if asking else UNKNOWN
    best = ranked[0]
    second = weights[ranked[1]] if len(ranked) > 1 else 0
    strongest = max(cues[best], key=lambda cue: cue.weight).sentence
    clear = (
        weights[best] >= LEAST_WEIGHT
        and weights[best] >= CLEAR * second
        # What is praised, or only asked about, is hardly what has gone wrong.
        and not any(keywords.praises(cue.sentence) for cue in cues[best])
        and not all("?" in cue.sentence for cue in cues[best])
    )
    return ticket.quoted(best, "found" if clear else "uncertain", strongest)


def _priority(ticket: _Ticket, category: Field, summary: Field) -> Field:
    told: dict[str, str] = {}
    for sentence in ticket.sentences:
        level = keywords.level_in(sentence)
        if level is None:
            continue
        if level != "low" and keywords.is_hedged(sentence):
            return ticket.quoted(level, "uncertain", sentence)
        told.setdefault(level, sentence)
    if "low" in told and len(told) > 1:
        return UNKNOWN
    for level in ("urgent", "high", "low"):
        if level in told:
            return ticket.quoted(level, "found", told[level])
    shown = category.evidence or summary.evidence
    if not shown or any(keywords.presses(sentence) for sentence in ticket.sentences):
        return UNKNOWN
    return Field("normal", "found", list(shown))


def _product(ticket: _Ticket) -> Field:
    names = product_names(ticket.text)
    if not names:
        return UNKNOWN if may_be_named(ticket.text, ticket.detected.language) else ABSENT
    where = [one for one in ticket.sentences if names[0] in " ".join(one.split())]
    return ticket.quoted(names[0], "found" if len(names) == 1 else "uncertain", *where[:1])


def _language(ticket: _Ticket) -> Field:
    if detector.weight(ticket.text) < LEAST_LETTERS:
        return UNKNOWN
    language, languages = ticket.detected
    if language is None:
        return UNKNOWN
    longest_first = sorted(ticket.sentences, key=len, reverse=True)
    own = next((one for one in longest_first if _is_written_in(one, language)), None)
    clear = own is not None and len(languages) == 1 and not _is_mixed(ticket.text)
    return ticket.quoted(
        language, "found" if clear else "uncertain", *([] if own is None else [own])
    )


def _is_written_in(sentence: str, language: str) -> bool:
    if detector.weight(sentence) < LEAST_LETTERS:
        return False
    # Asking the detector takes a millisecond.
    if len(_words_of(sentence) & _SMALL_WORDS.get(language, frozenset())) >= _MIXED:
        return True
    return detector.detect_piece(sentence) == language


def _is_mixed(text: str) -> bool:
    """Have two languages several of their small words in a text?"""
    words = _words_of(text)
    counts = sorted((len(words & small) for small in _SMALL_WORDS.values()), reverse=True)
    return counts[1] >= _MIXED and _MIXED * counts[1] > counts[0]


def _words_of(text: str) -> set[str]:
    return set(re.findall(r"[^\W\d_]+", text.casefold()))


def _summary(ticket: _Ticket, category: Field) -> Field:
    """The subject, or the sentence that tells what the ticket is about: never words of our own."""
    quoted = {evidence.quote for evidence in category.evidence}
    telling = [one for one in ticket.sentences if _cut(one) in quoted]
    for sentence in (ticket.subject, *telling, *ticket.sentences):
        value = " ".join(sentence.split())
        least, most = SUMMARY_LENGTH
        if least <= len(value) <= most and len(value.split()) >= _LEAST_WORDS:
            return ticket.quoted(value, "found", sentence)
    return UNKNOWN


def _cut(sentence: str) -> str:
    """A sentence as it is quoted: its beginning, where it is too long."""
    if len(sentence) <= LONGEST_QUOTE:
        return sentence
    return sentence[:LONGEST_QUOTE].rsplit(maxsplit=1)[0]
