"""Repair `commas`: commas that are too many, and missing ones whose place is plain.

Taken away: commas before a closing bracket, and all but the first of several in a row, each only
behind a value. Put in: between a value and the key of the next member, and between two objects or
two lists inside a list. Behind a string the next key has to be on another line: on the same line
the mark between them may as well belong to the text of the string.
"""

from __future__ import annotations

from collections.abc import Sequence

from pipeline_assets.workloads.format_repair.scanning import (
    OTHER_STRING,
    STRING,
    VALUE_ENDS,
    Edit,
    Token,
    edited,
    scan_object,
)
from pipeline_assets.workloads.workload import Repair

_STRINGS = frozenset({STRING, OTHER_STRING})
_NEIGHBOURS = frozenset({("}", "{"), ("]", "[")})


def mend(text: str) -> str | None:
    """The text with as many commas as it needs."""
    scanned = scan_object(text)
    if scanned is None:
        return None
    return edited(text, sorted([*_surplus(scanned.tokens), *_missing(scanned.tokens, text)]))


def _surplus(tokens: Sequence[Token]) -> list[Edit]:
    edits = []
    index = 0
    while index < len(tokens):
        end = index
        # The last token is a closing brace, so a run of commas ends before it.
        while tokens[end].kind == ",":
            end += 1
        if end > index and tokens[index - 1].kind in VALUE_ENDS:
            surplus = index if tokens[end].kind in "}]" else index + 1
            edits += [Edit(comma.start, comma.end, "") for comma in tokens[surplus:end]]
        index = end + 1
    return edits


def _missing(tokens: Sequence[Token], text: str) -> list[Edit]:
    edits = []
    inside: list[str] = []
    for index, token in enumerate(tokens[:-1]):
        if inside and _misses_comma(tokens, index, inside[-1], text):
            end = tokens[index - 1].end
            edits.append(Edit(end, end, ","))
        if token.kind in "{[":
            inside.append(token.kind)
        elif token.kind in "}]":
            inside.pop()
    return edits


def _misses_comma(tokens: Sequence[Token], index: int, container: str, text: str) -> bool:
    """Is a comma missing before the token?"""
    left, right = tokens[index - 1], tokens[index]
    if container == "[":
        return (left.kind, right.kind) in _NEIGHBOURS
    if right.kind not in _STRINGS or tokens[index + 1].kind != ":":
        return False
    if left.kind in "}]":
        return True
    if left.kind not in VALUE_ENDS or tokens[index - 2].kind != ":":
        return False
    gap = text[left.end : right.start]
    return left.kind not in _STRINGS or "\n" in gap or "\r" in gap


REPAIR = Repair(id="commas", version=1, mend=mend)
