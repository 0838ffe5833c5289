"""Repair `encoding`: what transport and editors leave around and inside an answer.

A byte order mark and control characters at either end are taken away. A tabulator, line feed or
carriage return that stands as itself inside a string is escaped: the string's value is the same.
Other control characters inside a string stay, and so the answer stays unusable. Text that was
encoded twice is never touched: it is valid JSON, and decoding it once more can turn one right text
into another; whether it stands in the document is a question of evidence.
"""

from __future__ import annotations

import re

from pipeline_assets.workloads.format_repair.scanning import (
    JSON_SPACE,
    OTHER_STRING,
    STRING,
    Edit,
    edited,
    scan_object,
)
from pipeline_assets.workloads.workload import Repair

_CONTROLS = "".join(map(chr, (*range(0x20), *range(0x7F, 0xA0))))
_AROUND = _CONTROLS + "\ufeff" + JSON_SPACE
_RAW = re.compile(r"\\.|[\t\r\n]", re.DOTALL)
_ESCAPED = {"\t": "\\t", "\r": "\\r", "\n": "\\n"}


def mend(text: str) -> str | None:
    """Without what stands around, and with raw line breaks in strings escaped."""
    bare = _without_surroundings(text)
    escaped = _with_escapes(bare)
    mended = bare if escaped is None else escaped
    return None if mended == text else mended


def _without_surroundings(text: str) -> str:
    """The text; only white space of JSON's own at its ends is left where it is."""
    bare = text.strip(_AROUND)
    return text if bare == text.strip(JSON_SPACE) else bare


def _with_escapes(text: str) -> str | None:
    scanned = scan_object(text)
    if scanned is None:
        return None
    edits = []
    for token in scanned.tokens:
        if token.kind in (STRING, OTHER_STRING):
            raw = text[token.start : token.end]
            # An escaped line break (a backslash before it) has no agreed value: it stays.
            value = _RAW.sub(lambda found: _ESCAPED.get(found[0], found[0]), raw)
            if value != raw:
                edits.append(Edit(token.start, token.end, value))
    return edited(text, edits)


REPAIR = Repair(id="encoding", version=1, mend=mend)
