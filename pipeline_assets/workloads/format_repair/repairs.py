"""Mending an answer: which repairs there are, and trying them in order until one is enough.

Belongs here: the list, the order, and what no repaired answer may have. Does not belong here: any
one repair (a module each), which versions use them (a workload's acceptance), and storing what
was done (`resources/ledger/repairs.py`).

No repair closes what was cut off, puts in a member or a value, or looks inside a string; so a
mended answer says nothing that the answer did not say.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence

import msgspec

from pipeline_assets.workloads.format_repair import (
    commas,
    encoding,
    fences,
    quotes,
    surrounding_text,
)
from pipeline_assets.workloads.workload import AnswerInvalid, AnswerMalformed, Repair

REPAIRS: tuple[Repair, ...] = (
    encoding.REPAIR,
    fences.REPAIR,
    surrounding_text.REPAIR,
    commas.REPAIR,
    quotes.REPAIR,
)
"""Every repair, in the order in which they are tried: from the outside of an answer inwards."""


class RepairMade(msgspec.Struct, frozen=True):
    """One repair that changed an answer.

    Attributes:
        rule: the repair's id.
        version: its version.
        before: SHA-256 of the text (UTF-8) that it was given.
        after: SHA-256 of the text that it made of it.
    """

    rule: str
    version: int
    before: str
    after: str


class Mended(msgspec.Struct, frozen=True):
    """An answer that is usable after repairs.

    Attributes:
        answer: in the workload's normal form.
        made: every repair that changed the text, in order.
    """

    answer: str
    made: tuple[RepairMade, ...]


def mend(text: str, repairs: Sequence[Repair], check: Callable[[str], str]) -> Mended | None:
    """Mend an answer that a workload could not use; None where its form cannot be mended.

    Args:
        text: the answer as it came back, whole.
        repairs: in the order they are tried; each gets what the one before made of the text.
        check: the workload's (`Workload.check_answer`), tried again after every repair.

    JSON is never touched, whatever its shape. An answer that names a member twice once it is
    repaired is refused: nobody knows which of the two was meant.
    """
    if not repairs or _is_json(text):
        return None
    made: list[RepairMade] = []
    for repair in repairs:
        mended = repair.mend(text)
        if mended is None:
            continue
        made.append(RepairMade(repair.id, repair.version, _digest(text), _digest(mended)))
        text = mended
        try:
            answer = check(text)
        except (AnswerInvalid, AnswerMalformed):
            continue
        return Mended(answer, tuple(made)) if _has_unique_keys(text) else None
    return None


def _is_json(text: str) -> bool:
    """Is it JSON of any shape? What is nested too deeply to tell is left alone like JSON."""
    try:
        msgspec.json.decode(text)
    except msgspec.DecodeError:
        return False
    except RecursionError:
        return True
    return True


def _has_unique_keys(text: str) -> bool:
    """Does no object of a JSON text name a member twice? False where it cannot be told."""
    repeats = 0

    def count(pairs: list[tuple[str, object]]) -> None:
        nonlocal repeats
        repeats += len(pairs) - len({name for name, _ in pairs})

    try:
        json.loads(text, object_pairs_hook=count, parse_int=str, parse_float=str)
    except (ValueError, RecursionError):
        return False
    return repeats == 0


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
