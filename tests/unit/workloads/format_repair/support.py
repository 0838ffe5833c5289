"""A check that stands for a workload's, and answers written right and damaged at the same time."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import cycle, pairwise
from typing import Any

import msgspec

from pipeline_assets.workloads.format_repair.repairs import REPAIRS, mend
from pipeline_assets.workloads.workload import AnswerInvalid, AnswerMalformed


def check(text: str) -> str:
    """Any object is an answer; its normal form is its text, so that tests see every character."""
    try:
        value = msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise AnswerMalformed("not JSON") from error
    if not isinstance(value, dict):
        raise AnswerInvalid("not an object")
    return text


def mended(text: str) -> str | None:
    """What all repairs make of a text; None where they refuse."""
    found = mend(text, REPAIRS, check)
    return None if found is None else found.answer


Maybe = Callable[[], bool]


def never() -> bool:
    return False


def maybe_of(bits: int) -> Maybe:
    """Yes and no by the bits of a number, over and over."""
    answers = cycle(f"1{bits:b}")
    return lambda: next(answers) == "1"


@dataclass(frozen=True)
class Damage:
    """How an answer is written wrong: where it is allowed to be, `maybe` says whether it is.

    Attributes:
        marks: opening and closing delimiter of strings; `""` for JSON's own.
        trailing: a comma before a closing bracket?
        doubled: one comma more between members?
        missing: no comma between members, where its place is plain?
        raw: a line break in a string as itself?
    """

    marks: tuple[str, str] = ('"', '"')
    trailing: Maybe = never
    doubled: Maybe = never
    missing: Maybe = never
    raw: Maybe = never


_ESCAPES = re.compile(r"\\.")


def write(value: Any, damage: Damage, *, ascii_only: bool = False) -> tuple[str, str]:
    """A value as JSON, one member a line, and the same damaged."""
    if isinstance(value, str):
        right = json.dumps(value, ensure_ascii=ascii_only)
        return right, _string(right, damage)
    if isinstance(value, dict):
        members = []
        for key, member in value.items():
            name, wrong_name = write(key, damage, ascii_only=ascii_only)
            right, wrong = write(member, damage, ascii_only=ascii_only)
            members.append((f"{name}: {right}", f"{wrong_name}: {wrong}"))
        # Behind a string in other marks a comma may not be missing.
        plain = [not isinstance(member, str) or damage.marks[0] == '"' for member in value.values()]
        return _members(members, plain[:-1], "{}", damage)
    if isinstance(value, list):
        members = [write(member, damage, ascii_only=ascii_only) for member in value]
        plain = [
            type(one) is type(two) and isinstance(one, (dict, list)) for one, two in pairwise(value)
        ]
        return _members(members, plain, "[]", damage)
    text = json.dumps(value)
    return text, text


def _string(right: str, damage: Damage) -> str:
    def escape(found: re.Match[str]) -> str:
        raw = {"\\n": "\n", "\\t": "\t", "\\r": "\r"}.get(found[0])
        return raw if raw is not None and damage.raw() else found[0]

    return damage.marks[0] + _ESCAPES.sub(escape, right[1:-1]) + damage.marks[1]


def _members(
    members: list[tuple[str, str]], may_miss: list[bool], brackets: str, damage: Damage
) -> tuple[str, str]:
    right, wrong = brackets[0], brackets[0]
    for number, (member, wrong_member) in enumerate(members):
        right += f"\n {member}"
        wrong += f"\n {wrong_member}"
        if number < len(may_miss):
            right += ","
            if may_miss[number] and damage.missing():
                continue
            wrong += ",," if damage.doubled() else ","
        elif damage.trailing():
            wrong += ","
    return right + "\n" + brackets[1], wrong + "\n" + brackets[1]
