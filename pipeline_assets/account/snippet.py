"""A short piece of a text around what was searched for, with the terms marked.

Belongs here: finding folded terms in a text that is not folded. Does not belong here: the search
itself (the ledger's full text), whose folding is followed here character by character.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from pipeline_assets.account.plain_text import one_line

WIDTH = 160
"""Characters of a snippet, without its marks."""
_LEAD = 50
_INNER = "-/."


def snippet(texts: Sequence[str], terms: Sequence[Sequence[str]]) -> str:
    """The first of the texts that holds a term, cut around it; safe to print on a terminal.

    Args:
        texts: candidates, best first; the first that is not empty is shown where none matches.
        terms: as `search_text.query_terms` gives them.

    Returns:
        One line; each term stands in square brackets, a cut end is shown as "…".
    """
    flat = [" ".join(text.split()) for text in texts if text.strip()]
    for text in flat:
        spans = find_terms(text, terms)
        if spans:
            return _cut(text, spans)
    return _cut(flat[0], []) if flat else ""


def find_terms(text: str, terms: Sequence[Sequence[str]]) -> list[tuple[int, int]]:
    """Where terms stand in the text, as (start, end) offsets, sorted, not overlapping."""
    tokens = _tokens(text)
    spans = []
    for term in terms:
        size = len(term)
        for first in range(len(tokens) - size + 1):
            if all(tokens[first + i][0] == term[i] for i in range(size)):
                spans.append((tokens[first][1], tokens[first + size - 1][2]))
    return _merged(spans)


def _tokens(text: str) -> list[tuple[str, int, int]]:
    """(folded token, start, end) in order, cut as `search_text.tokens` cuts."""
    found: list[tuple[str, int, int]] = []
    current, start, end = "", 0, 0
    for index, character in enumerate(text):
        folded = _fold(character)
        if folded and all(_is_cjk(part) for part in folded):
            found += _closed(current, start, end)
            current = ""
            found += [(part, index, index + 1) for part in folded]
        elif folded and all(part.isalnum() or part in _INNER for part in folded):
            if not current:
                start = index
            current += folded
            end = index + 1
        elif folded:
            found += _closed(current, start, end)
            current = ""
        elif current:
            end = index + 1  # a combining mark belongs to the letter before it
    return found + _closed(current, start, end)


def _closed(token: str, start: int, end: int) -> list[tuple[str, int, int]]:
    left = token.lstrip(_INNER)
    bare = left.rstrip(_INNER)
    if not bare:
        return []
    return [(bare, start + len(token) - len(left), end - (len(left) - len(bare)))]


def _fold(character: str) -> str:
    decomposed = unicodedata.normalize("NFKD", character)
    bare = "".join(part for part in decomposed if unicodedata.category(part) != "Mn")
    return unicodedata.normalize("NFKC", bare).lower()


def _is_cjk(character: str) -> bool:
    name = unicodedata.name(character, "")
    return name.startswith(("CJK UNIFIED", "CJK COMPATIBILITY", "HIRAGANA", "KATAKANA", "HANGUL"))


def _merged(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _cut(text: str, spans: list[tuple[int, int]]) -> str:
    first = spans[0][0] if spans else 0
    begin = max(0, first - _LEAD) if len(text) > WIDTH else 0
    stop = min(len(text), begin + WIDTH)
    pieces = ["…"] if begin else []
    at = begin
    for start, end in spans:
        if end > stop:
            break
        pieces += [one_line(text[at:start]), "[", one_line(text[start:end]), "]"]
        at = end
    pieces.append(one_line(text[at:stop]))
    if stop < len(text):
        pieces.append("…")
    return "".join(pieces)
