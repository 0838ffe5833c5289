"""How far a document's text supports what is said about it: its words, its numbers.

Belongs here: comparing one statement with texts in the same language. Does not belong here: which
texts are read, and how much support is enough (the rules).

Words are compared by their beginning, so that "receives" is supported by "receiver"; Chinese and
Japanese by pairs of signs.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from pipeline_assets.workloads.text_folding import fold

STEM = 6
"""Letters of a word that count."""
NEAR = 150
"""Code points around a number in which a word of its sentence has to stand."""
_CJK = "\u3005-\u3007\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff"
_WORDS = re.compile(rf"[^\W\d_{_CJK}]{{4,}}|[{_CJK}]{{2,}}")
_DENSE = re.compile(rf"[{_CJK}]")
# English words that any text may have, and words for the document itself: they support nothing.
_EMPTY = frozenset(
    """
    about above after again against along also among another around because been before behind
    being below between both cannot could does down during each either every first followed
    following from further given have having here however inside into itself like made make makes
    many more most much must near neither only onto other others over several shall should side
    since some such than that their them then there these they this those three through together
    toward under until upon used uses using very what when where whether which while whose will
    with within without would your manual manuals guide guides document documents describes
    description descriptions instruction instructions book booklet reference datasheet sheet page
    pages handbook notes note text chapter table list user users brief version edition
    """.split()
)
_EMPTY_STEMS = frozenset(word[:STEM] for word in _EMPTY)
_DIGIT = re.compile(r"\d")
_EDGE = " \t.,;:!?()[]{}<>\"'“”„«»‘’…。、，；：（）「」"
_PIECES = re.compile(r"[/,;–—~…]|(?<=\d)[x×](?=\d)|\.{2,}")
_PARTS = re.compile(r"[^\W\d_]+|\d+(?:[.,]\d+)*")
_LETTER = re.compile(rf"[^\W\d_{_CJK}]")
_RUNS = re.compile(r"\w+")
_SHORT = re.compile(rf"[^\W\d_{_CJK}]{{1,4}}")
# A name and its number, not at the beginning of a sentence, where every word has a capital.
_NUMBERED = re.compile(r"(?<=[\w,] )([^\W\d_a-z][^\W\d_]{2,} \d{1,3})(?![\w%°]|[.,]\d)")
_SENTENCES = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])")
_JOINED = re.compile(r"\d+[^\W\d_]{1,2}")  # "3D" is a name, "4-inch" and "12pin" are measures
_GROUPED = re.compile(r"\d{1,3}(?:[.,]\d{3})+")
_SEPARATOR = r"[., '\u00a0\u202f]?"


@dataclass(frozen=True)
class Statement:
    """What a text says that can be looked up.

    Attributes:
        stems: beginnings of its words, without those that support nothing.
        numbers: its words that hold a digit, as written.
        measures: its numbers with a known unit: (number, how a folded text may write the unit).
        numbered: names with a number behind them ("Series 3"), folded.
        short: its words of at most four letters: they tell its language.
    """

    stems: frozenset[str]
    numbers: tuple[str, ...]
    measures: tuple[tuple[str, str], ...]
    numbered: tuple[str, ...]
    short: frozenset[str]


# How a unit is written in a statement, and how the text may write it. Of other units, and of signs
# that are also words, the number alone is looked up.
_UNITS = (
    (r"m?V(?:AC|DC)?|kV|[Vv]olts?|В", r"[mk]?v(?:ac|dc)?|volts?|вольт|в"),
    (r"[km]?W|[Ww]atts?|Вт|кВт", r"[km]?w|watts?|к?вт|ватт"),
    (r"m?A|[Aa]mps?|[Aa]mperes?|м?А", r"m?a|amps?|amperes?|м?а"),
    (r"[kMG]?Hz|[kMG]?hertz|[кМГ]?Гц", r"[kmg]?hz|[kmg]?hertz|[кмг]?гц"),
    (r"kg|kilograms?|кг", r"kg|kilograms?|кг"),
    (r"mm|millimet(?:re|er)s?|мм", r"mm|millimet(?:re|er)s?|мм"),
    (r"cm|centimet(?:re|er)s?|см", r"cm|centimet(?:re|er)s?|см"),
    (r"m|met(?:re|er)s?|м", r"m|met(?:re|er)s?|м"),
    (r"\"|''|[”″]|inch(?:es)?", r"\"|''|inch(?:es)?|in"),
    (r"[°º] ?[CF]", r"[°º]? ?[cf]|degrees?"),
    (r"[kKMG]?B(?:ytes?)?|bytes?", r"[kmg]?b(?:ytes?)?"),
    (r"[Bb]its?|бит", r"bits?|бит"),
    (r"[kMm]?Ω|[Oo]hms?|Ом", r"[km]?ω|ohms?|ом"),
    (r"m?bar|[kM]?Pa", r"m?bar|[km]?pa"),
    (r"rpm|%|dB[a-zA-Z]?", r"rpm|%|percent|db[a-z]?"),
)


def _measured_in(unit: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![\w.,])(\d+(?:[.,]\d+)*)[-\s]?(?:{unit})(?!\w)")


_MEASURED = _measured_in("|".join(written for written, _ in _UNITS))
_MEASURES = tuple((_measured_in(written), printed) for written, printed in _UNITS)


def read_statement(text: str) -> Statement:
    """What can be looked up of a text."""
    folded = fold(text)
    words, short = frozenset(stems(folded)), _short_words(folded)
    if not _DIGIT.search(text):
        return Statement(words, numbers=(), measures=(), numbered=(), short=short)
    numbers = (token.strip(_EDGE) for token in _tokens(text))
    measures = (
        (number, printed)
        for written, printed in (_MEASURES if _MEASURED.search(text) else ())
        for number in written.findall(text)
    )
    return Statement(
        stems=words,
        numbers=tuple(dict.fromkeys(filter(None, numbers))),
        measures=tuple(measures),
        numbered=tuple(fold(name) for name in _NUMBERED.findall(text)),
        short=short,
    )


def missing_numbers(statement: Statement, folded: str) -> bool:
    """Has a statement a number, a model number or a measure that a folded text has not?"""
    return not (
        all(has_number(token, folded) for token in statement.numbers)
        and all(_has_measure(number, unit, folded) for number, unit in statement.measures)
        and all(_has_numbered(name, folded) for name in statement.numbered)
    )


def stems(folded: str) -> set[str]:
    """The beginnings of a folded text's words, without those that support nothing."""
    words = set(_WORDS.findall(folded)) - _EMPTY
    if folded.isascii():
        return {word[:STEM] for word in words}
    return {stem for word in words for stem in _parts_of(word)}


def share_of_stems(wanted: Collection[str], folded: str) -> float:
    """How many of these beginnings of words a folded text has; 0 if nothing is wanted.

    As asking for each in `stems(folded)`, but a text is read for what is wanted alone.
    """
    return sum(has_stem(stem, folded) for stem in wanted) / len(wanted) if wanted else 0.0


def has_short_words(wanted: Collection[str], folded: str, least: float) -> bool:
    """Are so many of these (a share of them) whole words of a folded text? True if none is wanted.

    Args:
        wanted: words as `Statement.short` has them.
        folded: the text.
        least: from 0 to 1.
    """
    if not wanted:
        return True
    others = [word for word in wanted if f" {word} " not in folded]
    between_spaces = len(wanted) - len(others)
    if between_spaces / len(wanted) >= least:
        return True
    held = sum(_whole(word).search(folded) is not None for word in others)
    return (between_spaces + held) / len(wanted) >= least


def has_stem(stem: str, folded: str) -> bool:
    """Is this, as `stems` gives it, among the stems of a folded text?"""
    if _DENSE.match(stem):
        return stem in folded
    at = folded.find(stem)
    while at >= 0:
        if _is_stem(stem, folded, at):
            return True
        at = folded.find(stem, at + 1)
    return False


def has_number(token: str, folded: str) -> bool:
    """Does a folded text have this number, measure or model number, in any usual spelling?

    Joints and spaces inside, decimal comma or point, and separators of thousands do not count.
    Of a measure the number is enough.
    """
    return _stands(token, folded) or (
        len(pieces := [piece for piece in _PIECES.split(token) if piece.strip(_EDGE)]) > 1
        and all(_stands(piece, folded) for piece in pieces)
    )


def out_of_context(text: str, folded: str) -> bool:
    """Has a statement (`text`) a bare number that stands in a long text by chance?

    A number has to stand near some word of the sentence that has it.
    """
    for sentence in _SENTENCES.split(text):
        numbers = [n for n in _tokens(sentence) if n.strip(_EDGE).isdigit()]
        words = stems(fold(sentence))
        if any(not _stands_near(number.strip(_EDGE), words, folded) for number in numbers):
            return True
    return False


def _tokens(text: str) -> Iterator[str]:
    """The words with a digit."""
    return (word for word in text.split() if _DIGIT.search(word))


def _short_words(folded: str) -> frozenset[str]:
    return frozenset(
        run for run in _RUNS.findall(folded) if len(run) <= 4 and _SHORT.fullmatch(run)
    )


def _is_stem(stem: str, folded: str, at: int) -> bool:
    """Does a word that supports something begin here, and have this stem?"""
    if at and _LETTER.match(folded, at - 1):
        return False
    if len(stem) < STEM:
        return not _LETTER.match(folded, at + len(stem)) and stem not in _EMPTY
    if stem not in _EMPTY_STEMS:
        return True
    word = _WORDS.match(folded, at)
    return word is not None and word[0] not in _EMPTY


@lru_cache(maxsize=4096)
def _whole(word: str) -> re.Pattern[str]:
    # Looked for by its letters first: what stands before it costs at every place of a text.
    return re.compile(rf"{word}(?!\w)(?<!\w{word})")


def _stands_near(number: str, words: set[str], folded: str) -> bool:
    return any(
        words & stems(folded[max(0, start - NEAR) : end + NEAR])
        for start, end in _numbers_at(_spelled(number), folded)
    )


def _has_numbered(name: str, folded: str) -> bool:
    word, number = name.split()
    return word in folded and _any(
        _numbers_at(rf"{re.escape(word)}[\W_]{{0,3}}{_spelled(number)}", folded)
    )


def _has_measure(number: str, unit: str, folded: str) -> bool:
    pattern = rf"{_spelled(number)}(?=[-\s]{{0,3}}(?:{unit})(?!\w))"
    return _may_have([number], folded) and any(
        not _in_number(folded, start, start) for start, _ in _matches_at(pattern, folded)
    )


def _stands(token: str, folded: str) -> bool:
    wanted = fold(token)
    if any(_is_whole(folded, *place) for place in _places(wanted, folded)):
        return True
    parts = _PARTS.findall(wanted)
    if not any(part[0].isdigit() for part in parts):
        return False
    whole = r"[\W_]{0,3}".join(map(_spelled, parts))
    if (
        len(parts) > 1
        and _may_have(parts, folded)
        and any(_is_whole(folded, *at) for at in _matches_at(whole, folded))
    ):
        return True
    if not parts[0][0].isdigit() or any(part[0].isdigit() for part in parts[1:]):
        return False
    if _JOINED.fullmatch(wanted):
        return False
    return _may_have(parts[:1], folded) and _any(_numbers_at(_spelled(parts[0]), folded))


def _may_have(parts: Iterable[str], folded: str) -> bool:
    """Has a text all that every spelling of these has? A pattern costs a thousand times more."""
    return all(piece in folded for part in parts for piece in _pieces(part))


def _any(places: Iterator[tuple[int, int]]) -> bool:
    return next(places, None) is not None


def _places(wanted: str, folded: str) -> Iterator[tuple[int, int]]:
    at = folded.find(wanted)
    while at >= 0:
        yield at, at + len(wanted)
        at = folded.find(wanted, at + 1)


def _matches_at(pattern: str, folded: str) -> Iterator[tuple[int, int]]:
    return (match.span() for match in re.finditer(pattern, folded))


def _numbers_at(pattern: str, folded: str) -> Iterator[tuple[int, int]]:
    """The matches that are no part of a longer number."""
    return (place for place in _matches_at(pattern, folded) if not _in_number(folded, *place))


def _is_whole(folded: str, start: int, end: int) -> bool:
    """Is a place no part of a longer word or number?"""
    joins = _joins(folded[start - 1 : start]) or _joins(folded[end : end + 1])
    return not joins and not _in_number(folded, start, end)


def _joins(sign: str) -> bool:
    """Chinese, Japanese and Korean are set without spaces, so their signs end a word too."""
    return sign.isalnum() and not _DENSE.match(sign)


def _in_number(folded: str, start: int, end: int) -> bool:
    before, behind = folded[max(0, start - 2) : start], folded[end : end + 2]
    return (
        before[-1:].isdigit()
        or (before[-1:] in {".", ","} and before[:1].isdigit() and len(before) == 2)
        or (start < end and _goes_on(folded[end - 1], behind))
    )


def _goes_on(last: str, behind: str) -> bool:
    if not last.isdigit():
        return False
    return behind[:1].isdigit() or (behind[:1] in {".", ","} and behind[1:2].isdigit())


def _spelled(part: str) -> str:
    """A pattern for a word, or for a number with any separators."""
    if not part[0].isdigit():
        return re.escape(part)
    return (_SEPARATOR if _is_grouped(part) else "[.,]").join(_pieces(part))


def _pieces(part: str) -> list[str]:
    """A word, or what is between a number's separators."""
    if part.isdigit() and len(part) > 3:
        head = len(part) % 3 or 3
        return [part[:head], *(part[at : at + 3] for at in range(head, len(part), 3))]
    return re.split("[.,]", part) if part[0].isdigit() else [part]


def _is_grouped(number: str) -> bool:
    return (number.isdigit() and len(number) > 3) or _GROUPED.fullmatch(number) is not None


def _parts_of(word: str) -> Iterator[str]:
    if _DENSE.match(word):
        return (word[at : at + 2] for at in range(len(word) - 1))
    return iter((word[:STEM],))
