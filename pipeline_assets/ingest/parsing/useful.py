"""Decides which page text is worth keeping: stamps, mojibake, pages that need OCR.

Pure functions on strings, judged by structure only: no site, maker or product is named here.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Sequence
from typing import Final

from pipeline_assets.ingest.parsing.normalise import control_share

REPEAT_SHARE: Final = 0.8
REPEAT_MIN_PAGES: Final = 3
_GARBLED_CONTROLS: Final = 0.02
_VOWEL_FLOOR: Final = 0.2
_VOWEL_MIN_LETTERS: Final = 120
_MIN_FIGURES: Final = 12
_ODD_SHARE: Final = 0.3

_URL: Final = re.compile(
    r"(?:https?://|www\.)\S+|\b[\w-]+(?:\.[\w-]+)*\.[a-z]{2,6}(?:/\S*)?\b", re.I
)
_STAMP_WORDS: Final = re.compile(
    r"\b(?:down-?load(?:ed)?|free (?:service )?manuals?|manuals? (?:search|library|archive)"
    r"|scanned (?:by|for)|(?:provided|supplied|hosted|brought to you) by)\b",
    re.I,
)
_VOWELS: Final = frozenset("aeiouyæøœıаеёиоуыэюяіїєαεηιουω")
_ALPHABETS_WITH_VOWELS: Final = ("LATIN", "CYRILLIC", "GREEK")
_WORD: Final = re.compile(r"[^\W\d_]{4,}")


def fold_line(line: str) -> str:
    """Key by which two lines count as the same stamp: case, spaces and digits do not matter."""
    return re.sub(r"[\W\d_]+", "", unicodedata.normalize("NFKC", line)).casefold()


def repeated_lines(pages: Sequence[str]) -> frozenset[str]:
    """Folded lines that stand on at least 80 % of at least three pages that have text.

    Page numbers do not tell them apart: a scan that prints "page 3 of 9" has no other text.
    """
    counts: Counter[str] = Counter()
    with_text = 0
    for page in pages:
        folded = {key for key in map(fold_line, page.split("\n")) if key}
        with_text += bool(folded)
        counts.update(folded)
    if with_text < REPEAT_MIN_PAGES:
        return frozenset()
    return frozenset(line for line, count in counts.items() if count >= REPEAT_SHARE * with_text)


def is_download_stamp(line: str) -> bool:
    """Whether a repeated line is a distributor's stamp: an address alone or with such words.

    A running header that has a product's name beside an address is content and stays.
    """
    rest, addresses = _URL.subn(" ", line)
    return addresses > 0 and (not fold_line(rest) or bool(_STAMP_WORDS.search(rest)))


def without_stamps(page: str, repeated: Collection[str]) -> tuple[str, bool]:
    """The page without repeated download stamps, and whether there was one."""
    if not repeated:
        return page, False
    lines = page.split("\n")
    kept = [li for li in lines if not (fold_line(li) in repeated and is_download_stamp(li))]
    return "\n".join(kept).strip("\n"), len(kept) < len(lines)


def without_repeated(page: str, repeated: Collection[str]) -> str:
    """The page without any repeated line: what OCR found beside a stamp drawn on the picture."""
    return "\n".join(li for li in page.split("\n") if fold_line(li) not in repeated).strip("\n")


def is_garbled(raw: str) -> bool:
    """Whether a reader's raw text is mojibake of a font without a usable character map.

    Three signs, each enough: control codes inside the text; symbols of the Latin-1 supplement
    outnumbering letters that spell words; words of a vowel-writing alphabet almost without vowels.
    """
    if control_share(raw) > _GARBLED_CONTROLS:
        return True
    visible = [char for char in raw if not char.isspace()]
    if len(visible) < 8:
        return False
    odd = sum(len(token) for token in raw.split() if _is_odd(token))
    if odd > _ODD_SHARE * len(visible):
        return True
    return _lacks_vowels(raw)


def needs_ocr(page_text: str, repeated: Collection[str]) -> bool:
    """Whether a page's own text is no use: none at all, or only lines that every page repeats."""
    if not fold_line(page_text):
        # A page number alone is no content; a table may well be all figures.
        return sum(1 for char in page_text if not char.isspace()) < _MIN_FIGURES
    if not repeated:
        return False
    return not fold_line(without_repeated(page_text, repeated))


def _is_odd(token: str) -> bool:
    """A word of which half or more stands beyond ASCII, symbols or private codes among it.

    Signs of units and quotation stand alone or beside plain letters; in mojibake of Latin text
    the symbols of the Latin-1 supplement take the place of the commonest letters.
    """
    beyond = sum(1 for char in token if "\xa1" <= char <= "\xff" or _is_undefined(char))
    symbols = sum(1 for char in token if "\xa1" <= char <= "\xbf" or _is_undefined(char))
    return len(token) > 2 and symbols > 0 and 2 * beyond >= len(token)


def _is_undefined(char: str) -> bool:
    return "\ue000" <= char <= "\uf8ff" or char == "\ufffd"


def _lacks_vowels(text: str) -> bool:
    letters = vowels = 0
    for word in _WORD.findall(text):
        for char in word:
            if not unicodedata.name(char, "").startswith(_ALPHABETS_WITH_VOWELS):
                continue
            letters += 1
            base = unicodedata.normalize("NFD", char.casefold())[0]
            vowels += base in _VOWELS
    return letters >= _VOWEL_MIN_LETTERS and vowels < _VOWEL_FLOOR * letters
