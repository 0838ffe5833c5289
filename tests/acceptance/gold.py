"""Right answers: what a good and honest model that follows the prompt answers about a document.

Belongs here: making an answer of a gold label and the parsed text, quotes copied from the pages.
Does not belong here: judging it, and wrong answers (`tricks.py`).

The gold descriptions are in English, whatever the document's language is, and some name a product
that the text does not. The prompt asks for the document's language, and for nothing that it does
not say. Such a document is therefore described by a sentence of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline_assets.workloads.text_folding import find_quote, fold
from tests.acceptance.corpus import Document, Gold

Answer = dict[str, Any]
"""An answer without its reference: title, product_identifiers, language, description."""
MAX_DESCRIPTION = 600
MIN_SENTENCE, MAX_SENTENCE = 30, 280
SHORT_LINE = 0.55
"""Of a page's longest line: what is shorter ends a paragraph."""
DESCRIBED_BY = 3
"""Sentences that a description cites at most."""
_SPACE = re.compile(r"\s+")
_SENTENCE = re.compile(r"\S.*?(?:[.!?]+(?=\s|\Z)|[。！？]+)", re.DOTALL)
_NAMED = re.compile(r"\b[A-Za-z]+\d\w*")
_WIDE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")


@dataclass(frozen=True)
class Case:
    """A document with its right answer.

    Attributes:
        document: the document.
        answer: the right answer.
        whole: does every value that the gold label has stand in the parsed text? Else the answer
            calls it uncertain.
    """

    document: Document
    answer: Answer
    whole: bool


def make_case(document: Document) -> Case:
    """The right answer about a document."""
    gold = document.gold
    title = _title(document, gold)
    identifiers = [_identifier(document, value, pages, title) for value, pages in gold.identifiers]
    answer = {
        "title": title,
        "product_identifiers": identifiers,
        "language": _language(document, gold),
        "description": _description(document, gold),
    }
    fields = [title, *identifiers, answer["language"], answer["description"]]
    return Case(document, answer, all(part["status"] != "uncertain" for part in fields))


def found(value: str, *evidence: tuple[int, str]) -> dict[str, Any]:
    """A field that is found."""
    quotes = [{"page": page, "quote": quote} for page, quote in evidence]
    return {"value": value, "status": "found", "evidence": quotes}


def uncertain(value: str | None) -> dict[str, Any]:
    """A field that the text does not settle."""
    return {"value": value, "status": "uncertain", "evidence": []}


def absent() -> dict[str, Any]:
    """A field that the document does not have."""
    return {"value": None, "status": "absent", "evidence": []}


def _title(document: Document, gold: Gold) -> dict[str, Any]:
    if gold.title is None:
        return absent()
    pages = sorted(document.pages, key=lambda page: (page[0] != (gold.title_page or 1), page[0]))
    for number, text in pages[:3]:
        quotes = printed_parts(text, gold.title)
        if quotes:
            return found(gold.title, *((number, quote) for quote in quotes))
    return uncertain(gold.title)


def printed_parts(text: str, wanted: str) -> list[str]:
    """The fewest runs of words that stand on a page and together give a text; none if one fails."""
    words = wanted.split()
    parts: list[str] = []
    at = 0
    while at < len(words):
        for end in range(len(words), at, -1):
            place = find_quote(text, " ".join(words[at:end]))
            if place is not None:
                parts.extend(_lines(text[place[0] : place[1]]))
                at = end
                break
        else:
            return []
    return parts


def _lines(text: str) -> list[str]:
    """The printed lines of a run, as a model quotes them: one below the other."""
    return [one_line(line) for line in text.splitlines() if line.strip()]


def one_line(text: str) -> str:
    """White space as single blanks."""
    return _SPACE.sub(" ", text).strip()


def _identifier(
    document: Document, value: str, pages: tuple[int, ...], title: dict[str, Any]
) -> dict[str, Any]:
    wanted = dict.fromkeys((*pages, *(number for number, _ in document.pages)))
    texts = dict(document.pages)
    for number in wanted:
        line = _line_with(texts.get(number, ""), value)
        if line is not None:
            return found(value, (number, line))
    titled = next((each for each in title["evidence"] if fold(value) in fold(each["quote"])), None)
    return uncertain(value) if titled is None else found(value, (titled["page"], titled["quote"]))


def _line_with(text: str, value: str) -> str | None:
    """The first line of a page on which an identifier stands by itself."""
    alone = re.compile(rf"(?<!\w){re.escape(fold(value))}(?!\w)")
    for line in text.splitlines():
        if alone.search(fold(line)) and len(line) <= MAX_SENTENCE:
            return one_line(line)
    return None


def _language(document: Document, gold: Gold) -> dict[str, Any]:
    lines = ((number, line) for number, text in document.pages[:3] for line in _lines(text))
    best = max(list(sentences(document)) or lines, key=lambda each: _weight(each[1]), default=None)
    return uncertain(gold.language) if best is None else found(gold.language, best)


def _weight(sentence: str) -> int:
    """How much of a sentence is words rather than numbers and marks."""
    return sum(character.isalpha() for character in sentence[:MAX_SENTENCE])


def sentences(document: Document) -> Iterator[tuple[int, str]]:
    """(page, sentence) of the prose of the first pages, white space as single blanks."""
    for number, text in document.pages[:12]:
        for paragraph in _paragraphs(text):
            for match in _SENTENCE.finditer(paragraph):
                sentence = one_line(match[0])
                if _is_prose(sentence):
                    yield number, sentence


def _paragraphs(text: str) -> list[str]:
    """A page in runs of lines: a short line ends a run, as a heading or a last line does."""
    lines = text.splitlines()
    longest = max((len(line) for line in lines), default=0)
    runs = [""]
    for line in lines:
        runs[-1] += line + "\n"
        if len(line.strip()) < SHORT_LINE * longest:
            runs.append("")
    return runs


def _is_prose(sentence: str) -> bool:
    if "@" in sentence or "://" in sentence:
        return False
    if wide := len(_WIDE.findall(sentence)):
        return 15 <= len(sentence) <= MAX_SENTENCE and wide >= 0.5 * len(sentence)
    words = [word.strip(",;:()\"'.") for word in sentence.split()]
    plain = sum(word.isalpha() for word in words)
    return (
        MIN_SENTENCE <= len(sentence) <= MAX_SENTENCE
        and len(words) >= 6
        and sentence[0].isupper()
        and len(words[-1]) > 1
        and plain >= 0.75 * len(words)
        and sum(word.islower() for word in words) >= 0.6 * len(words)
    )


def _description(document: Document, gold: Gold) -> dict[str, Any]:
    prose = list(sentences(document))
    if not prose:
        lines = [(number, line) for number, text in document.pages[:2] for line in _lines(text)]
        prose = [(number, line) for number, line in lines if len(line) >= MIN_SENTENCE]
    if not prose:
        return uncertain(gold.description)
    wanted = set(_words(gold.description)) | {fold(value) for value, _ in gold.identifiers}
    ranked = sorted(prose, key=lambda each: -len(wanted & set(_words(each[1]))))
    if gold.language == "en" and gold.description and _says_no_more(gold.description, document):
        return found(gold.description, *ranked[:DESCRIBED_BY])
    number, sentence = _own_words(document, ranked, gold)
    return found(sentence[:MAX_DESCRIPTION], (number, sentence))


def _says_no_more(description: str, document: Document) -> bool:
    """Is every product that it names in the text? The prompt asks to use nothing else."""
    text = fold(document.text)
    return all(fold(name) in text for name in _NAMED.findall(description))


def _own_words(document: Document, prose: Sequence[tuple[int, str]], gold: Gold) -> tuple[int, str]:
    """The sentence of the document that is next to the label, or else the first to name it."""
    if gold.language == "en" and gold.description:
        return prose[0]
    names = [fold(value) for value, _ in gold.identifiers]
    first = sorted(prose, key=lambda each: each[0])
    named = [each for each in first if any(name in fold(each[1]) for name in names)]
    return next(iter(named or first))


def _words(text: str) -> list[str]:
    return [word for word in re.findall(r"\w+", fold(text)) if len(word) > 3]
