"""Folding of text for evidence comparison, and finding a quote on a page.

Two texts that a reader would call the same words fold to the same string: Unicode forms, letter
case, dashes, quotation marks, line breaks, hyphenation and invisible characters do not count.
Folded text is for comparing only; what is shown and stored as a value is always the raw text.

Nothing here knows what is looked for, or why.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

_DASHES = "\u2010\u2011\u2012\u2013\u2014\u2015\u2212\u2043\ufe58\ufe63\uff0d"
_SINGLE_QUOTES = "\u2018\u2019\u201a\u201b\u2032\u2035\u00b4\u0060\u02b9\u02bc\uff07"
_DOUBLE_QUOTES = "\u201c\u201d\u201e\u201f\u2033\u2036\u00ab\u00bb\u301d\u301e\u301f\uff02"
_UNIFY = {
    **dict.fromkeys(map(ord, _DASHES), "-"),
    **dict.fromkeys(map(ord, _SINGLE_QUOTES), "'"),
    **dict.fromkeys(map(ord, _DOUBLE_QUOTES), '"'),
}
_UNIFIED = re.compile(f"[{_DASHES}{_SINGLE_QUOTES}{_DOUBLE_QUOTES}]")

# Soft hyphen; U+0002 and U+FFFE are what PDFium writes where a line ends in a hyphen.
_SOFT_HYPHENS = "\u00ad\u0002\ufffe"
_BREAK = r"(?:\r\n|[\n\r\u0085\u2028\u2029])"
_SOFT_HYPHENATION = re.compile(rf"[{_SOFT_HYPHENS}](?:[ \t]*{_BREAK}[ \t]*)?")
_HARD_HYPHENATION = re.compile(
    rf"(?<=[^\W\d_])[-{_DASHES[:2]}][ \t]*{_BREAK}[ \t]*(?=(?P<next>[^\W\d_]))"
)
# Format characters and controls that print nothing; white space controls stay.
_INVISIBLE = re.compile(
    "[\u0000-\u0008\u000e-\u001b\u007f-\u0084\u0086-\u009f\u034f\u061c\u115f\u1160\u17b4\u17b5"
    "\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0"
    "\ufff0-\ufffb\ufffe\uffff\U000e0000-\U000e0fff]+"
)
# Without a look at the letters around it, a hyphen at a line end is found much faster.
_ENDS_IN_HYPHEN = re.compile(rf"[-{_DASHES[:2]}][ \t]*{_BREAK}")
_ENDS_IN_ASCII_HYPHEN = re.compile(r"-[ \t]*[\n\r]")
# Chinese and Japanese set no space between words, so one that extraction put there means nothing.
_CJK = "\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_CJK_GAP = re.compile(rf"(?<=[{_CJK}]) (?=[{_CJK}])")


# What folding does to ASCII characters, but for runs of white space.
_FOLDED_ASCII = {
    code: "'" if sign == "`" else None if _INVISIBLE.match(sign) else sign.casefold()
    for code, sign in enumerate(map(chr, range(128)))
}


@dataclass(frozen=True)
class FoldedText:
    """A folded text that remembers where each of its characters came from.

    Attributes:
        text: what `fold` returns for the same input.
        starts: for each folded character, the code-point offset in the raw text where it begins.
        ends: likewise, where it ends (exclusive).
    """

    text: str
    starts: tuple[int, ...]
    ends: tuple[int, ...]


def fold(text: str, *, keep_line_end_hyphens: bool = False) -> str:
    """Fold `text` for comparison. Idempotent.

    Args:
        text: any text.
        keep_line_end_hyphens: a hyphen at the end of a line may be hyphenation ("manu-/facturer")
            or belong to the word ("high-/quality"). By default it is taken for hyphenation and
            dropped; with this set it is kept and only the line break goes.
    """
    if not text.isascii() or "\u0002" in text:
        text = _SOFT_HYPHENATION.sub("", text)
    if _ends_in_hyphen(text):
        text = _HARD_HYPHENATION.sub(_hyphen_replacement(keep_line_end_hyphens), text)
    if text.isascii():
        return " ".join(text.translate(_FOLDED_ASCII).split())
    text = " ".join(_fold_characters(_INVISIBLE.sub("", text)).split())
    return text if text.isascii() else _CJK_GAP.sub("", text)


def hyphens_matter(text: str) -> bool:
    """May `keep_line_end_hyphens` fold this text otherwise? Never false where it does."""
    # A soft hyphen goes with the line break behind it, and may leave another hyphen at a line end.
    return _ends_in_hyphen(text) or _SOFT_HYPHENATION.search(text) is not None


def fold_with_offsets(text: str, *, keep_line_end_hyphens: bool = False) -> FoldedText:
    """Fold `text` and keep, for each folded character, its place in the raw text.

    Slower than `fold`; use it when a match has to be shown in the raw text.
    """
    raw = [(character, at, at + 1) for at, character in enumerate(text)]
    raw = _drop(raw, _SOFT_HYPHENATION)
    joined = "".join(character for character, _, _ in raw)
    replacement = _hyphen_replacement(keep_line_end_hyphens)
    kept: list[tuple[str, int, int]] = []
    at = 0
    for match in _HARD_HYPHENATION.finditer(joined):
        kept.extend(raw[at : match.start()])
        new = replacement(match)
        if new == match.group():
            kept.extend(raw[match.start() : match.end()])
        elif new:
            kept.append((new, raw[match.start()][1], raw[match.end() - 1][2]))
        at = match.end()
    kept.extend(raw[at:])
    kept = _drop(kept, _INVISIBLE)
    folded: list[tuple[str, int, int]] = []
    for cluster in _clusters(kept):
        start, end = cluster[0][1], cluster[-1][2]
        joined = "".join(character for character, _, _ in cluster)
        folded.extend((character, start, end) for character in _fold_characters(joined))
    folded = _collapse_spaces(folded)
    if not "".join(character for character, _, _ in folded).isascii():
        folded = _drop(folded, _CJK_GAP)
    return FoldedText(
        text="".join(character for character, _, _ in folded),
        starts=tuple(start for _, start, _ in folded),
        ends=tuple(end for _, _, end in folded),
    )


def find_quote(page_text: str, quote: str) -> tuple[int, int] | None:
    """Find `quote` on a page: as an exact substring first, then folded.

    Returns:
        The code-point offsets (start, end) of the first match in the raw page text, or None if
        the page does not have these words. An empty or invisible quote is never found.
    """
    wanted = quote.strip()
    if not fold(wanted):
        return None
    at = page_text.find(wanted)
    if at >= 0:
        return at, at + len(wanted)
    for keep in (False, True):
        folded_quote = fold(wanted, keep_line_end_hyphens=keep)
        if folded_quote not in fold(page_text, keep_line_end_hyphens=keep):
            continue
        page = fold_with_offsets(page_text, keep_line_end_hyphens=keep)
        at = page.text.find(folded_quote)
        return page.starts[at], page.ends[at + len(folded_quote) - 1]
    return None


def has_quote(page_text: str, quote: str) -> bool:
    """Does the page have the words of `quote`? The answer of `find_quote`, without the place."""
    wanted = quote.strip()
    folded = fold(wanted)
    if not folded:
        return False
    if wanted in page_text or folded in fold(page_text):
        return True
    if not (_HARD_HYPHENATION.search(page_text) or _HARD_HYPHENATION.search(wanted)):
        return False
    kept = fold(wanted, keep_line_end_hyphens=True)
    return kept in fold(page_text, keep_line_end_hyphens=True)


def _ends_in_hyphen(text: str) -> bool:
    pattern = _ENDS_IN_ASCII_HYPHEN if text.isascii() else _ENDS_IN_HYPHEN
    return pattern.search(text) is not None


def _fold_characters(text: str) -> str:
    """The part of folding that works on characters and the marks that follow them."""
    text = unicodedata.normalize("NFKC", _unified(text))
    text = unicodedata.normalize("NFKC", text.casefold())
    return _unified(text)


def _unified(text: str) -> str:
    return _UNIFIED.sub(lambda sign: _UNIFY[ord(sign[0])], text)


class _HyphenReplacement:
    def __init__(self, keep: bool) -> None:
        self._keep = keep

    def __call__(self, match: re.Match[str]) -> str:
        # Before a capital the hyphen joins two words or two parts of a model number.
        if self._keep or not match.group("next").islower():
            return "-"
        return ""


def _hyphen_replacement(keep: bool) -> _HyphenReplacement:
    return _HyphenReplacement(keep)


def _drop(
    characters: list[tuple[str, int, int]], pattern: re.Pattern[str]
) -> list[tuple[str, int, int]]:
    joined = "".join(character for character, _, _ in characters)
    kept: list[tuple[str, int, int]] = []
    at = 0
    for match in pattern.finditer(joined):
        kept.extend(characters[at : match.start()])
        at = match.end()
    kept.extend(characters[at:])
    return kept


def _collapse_spaces(characters: list[tuple[str, int, int]]) -> list[tuple[str, int, int]]:
    kept: list[tuple[str, int, int]] = []
    for character, start, end in characters:
        if not character.isspace():
            kept.append((character, start, end))
        elif kept and kept[-1][0] != " ":
            kept.append((" ", start, end))
    if kept and kept[-1][0] == " ":
        kept.pop()
    return kept


def _joins_previous(character: str) -> bool:
    """Whether normalisation may combine `character` with the one before it."""
    if character.isascii():
        return False
    first = unicodedata.normalize("NFKD", character)[0]
    # Combining marks, and the vowel and final parts of Hangul syllables.
    return unicodedata.category(first)[0] == "M" or "\u1160" <= first <= "\u11ff"


def _clusters(characters: list[tuple[str, int, int]]) -> Iterator[list[tuple[str, int, int]]]:
    """Split where normalising piece by piece gives the same as normalising the whole."""
    cluster: list[tuple[str, int, int]] = []
    for item in characters:
        if cluster and not _joins_previous(item[0]):
            yield cluster
            cluster = []
        cluster.append(item)
    if cluster:
        yield cluster
