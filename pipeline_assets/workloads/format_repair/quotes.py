"""Repair `quotes`: keys and strings in other quotation marks than JSON's.

Straight single marks and typographic ones, single or double, where they are delimiters. What
stands inside a string is never changed, but for the escapes that its new marks need: a straight
double mark gets one, and a mark that was escaped because of the old ones loses its own. A string
that holds a mark like its own is ambiguous, and refused (`scanning.py`).
"""

from __future__ import annotations

import re

from pipeline_assets.workloads.format_repair.scanning import (
    DOUBLE_MARKS,
    OTHER_STRING,
    SINGLE_MARKS,
    Edit,
    edited,
    scan_object,
)
from pipeline_assets.workloads.workload import Repair

_INSIDE = re.compile(r'\\.|"', re.DOTALL)
_NEEDLESS = frozenset(f"\\{mark}" for mark in f"'{DOUBLE_MARKS}{SINGLE_MARKS}")


def mend(text: str) -> str | None:
    """The text with JSON's own marks around every key and string."""
    scanned = scan_object(text)
    if scanned is None:
        return None
    return edited(
        text,
        [
            Edit(token.start, token.end, _straight(text[token.start + 1 : token.end - 1]))
            for token in scanned.tokens
            if token.kind == OTHER_STRING
        ],
    )


def _straight(inside: str) -> str:
    return f'"{_INSIDE.sub(_escape, inside)}"'


def _escape(found: re.Match[str]) -> str:
    if found[0] == '"':
        return '\\"'
    return found[0][1] if found[0] in _NEEDLESS else found[0]


REPAIR = Repair(id="quotes", version=1, mend=mend)
