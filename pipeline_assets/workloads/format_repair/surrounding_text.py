"""Repair `surrounding_text`: words before or after the one object that is the answer.

Refused where it is not plain that the object is the whole answer: where another bracket stands
beside it (two objects, a list of them), or something that reads as a member of a larger object.
"""

from __future__ import annotations

import re

from pipeline_assets.workloads.format_repair.scanning import (
    DOUBLE_MARKS,
    JSON_SPACE,
    SINGLE_MARKS,
    scan_object,
)
from pipeline_assets.workloads.workload import Repair

_MARKS = f"\"'{DOUBLE_MARKS}{SINGLE_MARKS}"
_BRACKET_OR_MEMBER = re.compile(rf"[{{}}\[\]]|[{_MARKS}]\s*+:")


def mend(text: str) -> str | None:
    """The object alone."""
    scanned = scan_object(text)
    if scanned is None:
        return None
    before = text[: scanned.start].strip(JSON_SPACE)
    after = text[scanned.end :].strip(JSON_SPACE)
    if not before and not after:
        return None
    if before.endswith((",", *_MARKS)) or after.startswith((",", ":", *_MARKS)):
        return None
    if _BRACKET_OR_MEMBER.search(before) or _BRACKET_OR_MEMBER.search(after):
        return None
    return text[scanned.start : scanned.end]


REPAIR = Repair(id="surrounding_text", version=1, mend=mend)
