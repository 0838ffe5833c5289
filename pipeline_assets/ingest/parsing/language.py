"""Guesses the language of a text, and the languages of a text in several.

Pure on text: `detect` depends on nothing but its arguments. The choice of lines that speak for
the body (not contents lists, code or tables of figures) belongs here too.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from lingua import ConfidenceValue, LanguageDetector

CODES: Final = (
    "ar be bg bs ca cs cy da de el en es et fa fi fr ga he hi hr hu id is it ja ko lt lv mk nb nl "
    "pl pt ro ru sk sl sq sr sv th tr uk vi zh"
).split()
"""ISO 639-1 codes to choose from. An explicit list keeps the models small and the odd guesses,
which short technical lines provoke, out."""

SUBSTANTIAL_SHARE: Final = 0.25
MAJORITY_SHARE: Final = 0.6
NEAR_SHARE: Final = 0.7
_CONFIDENCE_FLOOR: Final = 0.5
_SHORT_CONFIDENCE_FLOOR: Final = 0.6
_MAX_PAGES: Final = 200
_PAGE_CHARS: Final = 20_000
_MAX_CHUNKS: Final = 250
_SCRIPT_CHARS: Final = 40_000
_CHUNK_LETTERS: Final = 160
_MIN_LETTERS: Final = 25
_MIN_WORDS: Final = 5
_MIN_LETTERS_OWN_SCRIPT: Final = 4

_DOT_LEADERS: Final = re.compile(r"(?:\.\s?){4,}|_{4,}|…{2,}")
_CODE: Final = re.compile(
    r"[{}<>\\|=;]|0x[0-9a-f]+|\b(?:https?://|www\.)|^\s*[:*]?[A-Z]+:[A-Z]", re.I
)
_WIDE_SCRIPTS: Final = ("CJK", "HIRAGANA", "KATAKANA", "HANGUL", "THAI")
_FIRST_WIDE: Final = "\u0e00"
_SHARED_SCRIPTS: Final = ("Latin", "Cyrillic")
_SCRIPT_NAMES: Final = {
    "LATIN": "Latin",
    "CYRILLIC": "Cyrillic",
    "GREEK": "Greek",
    "CJK": "Han",
    "HIRAGANA": "Japanese",
    "KATAKANA": "Japanese",
    "HANGUL": "Hangul",
    "ARABIC": "Arabic",
    "HEBREW": "Hebrew",
    "THAI": "Thai",
    "DEVANAGARI": "Devanagari",
}


def detect(pages: Sequence[str]) -> tuple[str | None, tuple[str, ...]]:
    """The language of the body and any others with a quarter of it or more.

    Args:
        pages: Page texts; up to 250 pieces of about two lines are sampled evenly over them.

    Returns:
        ISO 639-1 code, or None when there is too little text or no language prevails; and the
        further languages, largest share first.
    """
    chunks = _chunks(pages)
    return prevailing(list(zip(map(_guess, chunks), map(_weight, chunks), strict=True)))


def detect_many(texts: Sequence[str]) -> list[tuple[str | None, tuple[str, ...]]]:
    """What `detect` says of each text, taken as one page, with every core at work at once."""
    pieces = [_chunks([text]) for text in texts]
    guesses = iter(_guesses([chunk for chunks in pieces for chunk in chunks]))
    return [prevailing([(next(guesses), _weight(chunk)) for chunk in chunks]) for chunks in pieces]


def prevailing(weighed: Sequence[tuple[str | None, int]]) -> tuple[str | None, tuple[str, ...]]:
    """The main and the further languages of pieces of text in reading order.

    Languages with a quarter of the text count; together they must hold most of it. In a text in
    several, the main one is the first to appear among those nearly as large as the largest.

    Args:
        weighed: Each piece's language, None for no telling, and its weight.
    """
    total = sum(weight for _, weight in weighed)
    weights: Counter[str] = Counter()
    for code, weight in weighed:
        if code is not None:
            weights[code] += weight
    ranked = sorted(weights, key=lambda code: (-weights[code], code))
    large = [code for code in ranked if weights[code] >= SUBSTANTIAL_SHARE * total]
    if not large or sum(weights[code] for code in large) < MAJORITY_SHARE * total:
        return None, ()
    main = _first_to_lead(
        weighed, {code for code in large if weights[code] >= NEAR_SHARE * weights[ranked[0]]}
    )
    main = main or ranked[0]
    return main, tuple(code for code in large if code != main)


def _first_to_lead(weighed: Sequence[tuple[str | None, int]], codes: set[str]) -> str | None:
    """The first of the codes with two pieces' worth of text; one alone may be a mixed title."""
    seen: Counter[str] = Counter()
    for code, weight in weighed:
        if code in codes:
            seen[code] += weight
            if seen[code] >= 2 * _CHUNK_LETTERS:
                return code
    return None


def main_script(text: str) -> str | None:
    """The script most letters are written in, by Tesseract's name; None without letters.

    A text with kana is Japanese however many Han characters it has.
    """
    counts: Counter[str] = Counter()
    for char in text[:_SCRIPT_CHARS]:
        if char.isalpha():
            script = _script(char)
            if script:
                counts[script] += 1
    if not counts:
        return None
    if counts["Japanese"] > 0.1 * (counts["Japanese"] + counts["Han"]) > 0:
        counts["Japanese"] += counts.pop("Han", 0)
    return max(sorted(counts), key=lambda script: counts[script])


@cache
def _script(char: str) -> str | None:
    return _SCRIPT_NAMES.get(unicodedata.name(char, "").partition(" ")[0])


def is_prose(line: str) -> bool:
    """Whether a line can speak for the language: mostly letters, no contents entry, no code."""
    if _DOT_LEADERS.search(line) or _CODE.search(line):
        return False
    visible = len(line) - sum(map(str.isspace, line))
    letters = sum(map(str.isalpha, line))
    if not line.isascii():
        letters += sum(1 for char in line if unicodedata.combining(char) and not char.isalpha())
    return letters >= 2 and letters >= 0.6 * visible


def _chunks(pages: Sequence[str]) -> list[str]:
    """Groups of neighbouring prose lines, spread evenly over the text.

    Whole pages are cut before any is left out: where columns in several languages stand side by
    side, the first lines of a page would speak for one language only.
    """
    with_text = [page[:_PAGE_CHARS] for page in pages if page.strip()]
    chunks = [chunk for page in _spread(with_text, _MAX_PAGES) for chunk in _page_chunks(page)]
    if len(chunks) > 1:
        return _spread(chunks, _MAX_CHUNKS)
    whole = " ".join(
        line for page in with_text[:10] for line in page.split("\n") if _has_word(line)
    )
    return [whole[:_PAGE_CHARS]] if _long_enough(whole) else []


def _spread(items: Sequence[str], most: int) -> list[str]:
    """At most `most` of the items, evenly spaced, in order."""
    if len(items) <= most:
        return list(items)
    return [items[index * len(items) // most] for index in range(most)]


def _page_chunks(page: str) -> list[str]:
    chunks: list[str] = []
    lines: list[str] = []
    weight = 0
    for line in filter(is_prose, page.split("\n")):
        lines.append(line)
        weight += _weight(line)
        if weight >= _CHUNK_LETTERS:
            chunks.append(" ".join(lines))
            lines, weight = [], 0
    if weight >= _CHUNK_LETTERS // 2:
        chunks.append(" ".join(lines))
    return chunks


def _weight(text: str) -> int:
    """Letters; one of a script without word spaces says as much as three of an alphabet."""
    if text.isascii() or max(text) < _FIRST_WIDE:
        return sum(map(str.isalpha, text))
    return sum(
        3 if char >= _FIRST_WIDE and unicodedata.name(char, "").startswith(_WIDE_SCRIPTS) else 1
        for char in text
        if char.isalpha()
    )


def _has_word(line: str) -> bool:
    return any(char.isalpha() for char in line) and not _DOT_LEADERS.search(line)


def _long_enough(text: str) -> bool:
    """A script of one language speaks for it at once; alphabets that many share need a sentence."""
    letters = sum(1 for char in text if char.isalpha())
    if main_script(text) not in _SHARED_SCRIPTS:
        return letters >= _MIN_LETTERS_OWN_SCRIPT
    words = {word.casefold() for word in text.split() if any(map(str.isalpha, word))}
    return letters >= _MIN_LETTERS and len(words) >= _MIN_WORDS


def _guess(chunk: str) -> str | None:
    """ISO 639-1 code, None when the detector is not sure enough for the chunk's length."""
    return _sure_enough(chunk, _detector().compute_language_confidence_values(chunk)[0])


def _guesses(chunks: list[str]) -> list[str | None]:
    found = _detector().compute_language_confidence_values_in_parallel(chunks)
    return [_sure_enough(chunk, values[0]) for chunk, values in zip(chunks, found, strict=True)]


def _sure_enough(chunk: str, best: ConfidenceValue) -> str | None:
    short = _weight(chunk) < _CHUNK_LETTERS
    if best.value < (_SHORT_CONFIDENCE_FLOOR if short else _CONFIDENCE_FLOOR):
        return None
    return best.language.iso_code_639_1.name.lower()


@cache
def _detector() -> LanguageDetector:
    from lingua import IsoCode639_1, LanguageDetectorBuilder

    codes = [getattr(IsoCode639_1, code.upper()) for code in CODES]
    builder = LanguageDetectorBuilder.from_iso_codes_639_1(*codes)
    return builder.with_low_accuracy_mode().build()
