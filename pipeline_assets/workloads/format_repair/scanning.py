"""Scanning one object out of a text that is nearly JSON: its tokens, and where it ends.

Belongs here: telling strings from what stands between them, so that no repair ever looks into one.
Does not belong here: changing anything, and judging whether the tokens make sense.

The scan is one pass without recursion. It knows the strings of JSON and, at places where a string
may begin, strings in other quotation marks; such a string counts only if its first closing mark is
followed by `:`, `,`, `}` or `]`. Whatever else is met, an end inside a string or a bracket that
does not match included, ends the scan without a result: what is not understood is not repaired.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

JSON_SPACE = " \t\r\n"
MAX_DEPTH = 64
"""Deeper nesting is not looked at; no answer that a schema describes comes near it."""

STRING = "string"
OTHER_STRING = "other string"
SCALAR = "scalar"
VALUE_ENDS = frozenset({STRING, OTHER_STRING, SCALAR, "}", "]"})
"""Kinds of tokens that a value may end with."""

DOUBLE_MARKS = "“”„‟"
SINGLE_MARKS = "‘’‚‛"

_FOLLOWS = r"(?=[ \t\r\n]*+[:,}\]])"
_TOKEN = re.compile(
    r"[ \t\r\n]*+(?:"
    r"(?P<mark>[{}\[\]:,])"
    r'|(?P<string>"[^"\\]*+(?:\\.[^"\\]*+)*+")'
    r"|(?P<scalar>true|false|null|-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?)"
    rf"|(?P<single>'[^'\\]*+(?:\\.[^'\\]*+)*+'{_FOLLOWS})"
    rf'|(?P<curly>[{DOUBLE_MARKS}][^"{DOUBLE_MARKS}\\]*+(?:\\.[^"{DOUBLE_MARKS}\\]*+)*+'
    rf"[{DOUBLE_MARKS}]{_FOLLOWS})"
    rf"|(?P<curly_single>[{SINGLE_MARKS}][^'{SINGLE_MARKS}\\]*+(?:\\.[^'{SINGLE_MARKS}\\]*+)*+"
    rf"[{SINGLE_MARKS}]{_FOLLOWS})"
    r")",
    re.DOTALL,
)
_KINDS = {"string": STRING, "scalar": SCALAR}
_OPENING = {"}": "{", "]": "["}


class Token(NamedTuple):
    """A token and its place in the text.

    Attributes:
        kind: one of `{}[]:,`, or `STRING`, `OTHER_STRING` (in other marks than JSON's), `SCALAR`.
        start: of its first character.
        end: behind its last character.
    """

    kind: str
    start: int
    end: int


class Edit(NamedTuple):
    """A part of a text, and what comes in its place."""

    start: int
    end: int
    replacement: str


@dataclass(frozen=True)
class Scanned:
    """The first object of a text, balanced.

    Attributes:
        tokens: from its opening brace to its closing one.
        start: of its opening brace.
        end: behind its closing one.
    """

    tokens: list[Token]
    start: int
    end: int


def scan_object(text: str) -> Scanned | None:
    """The object that opens with the text's first brace; None where it cannot be told apart."""
    start = text.find("{")
    if start < 0:
        return None
    tokens: list[Token] = []
    inside: list[str] = []
    place = start
    while (found := _TOKEN.match(text, place)) is not None:
        group = found.lastgroup or ""
        begin, place = found.span(group)
        kind = found[group] if group == "mark" else _KINDS.get(group, OTHER_STRING)
        tokens.append(Token(kind, begin, place))
        if kind in "{[":
            inside.append(kind)
            if len(inside) > MAX_DEPTH:
                return None
        elif kind in _OPENING:
            if inside.pop() != _OPENING[kind]:
                return None
            if not inside:
                return Scanned(tokens, start, place)
    return None


def edited(text: str, edits: list[Edit]) -> str | None:
    """The text with its edits, which are in order and apart; None where there are none."""
    if not edits:
        return None
    parts: list[str] = []
    place = 0
    for edit in edits:
        parts += (text[place : edit.start], edit.replacement)
        place = edit.end
    return "".join((*parts, text[place:]))
