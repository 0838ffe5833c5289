"""What the names of a filter mean for a workload, and whether they are compared with sense.

Belongs here: names to facts, literals to values, and the errors of both. Does not belong here:
reading facts (`load.py`) and computing with them (`evaluate.py`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from difflib import get_close_matches

from pipeline_assets.selection.errors import AmbiguousFact, FactMisused, UnknownFact
from pipeline_assets.selection.expression import (
    Absence,
    Among,
    Comparison,
    FactName,
    Literal,
    Where,
    leaves,
)
from pipeline_assets.selection.facts import FACTS, OF_FIELD, Fact
from pipeline_assets.workloads.workload import PublishedField
from resources.clock import to_text

_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?")
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_MOST_DIGITS = 15
"""Numbers that a 64-bit float holds exactly."""
_FLAGS = {"true": True, "yes": True, "false": False, "no": False}
_ORDERED = frozenset({"<", "<=", ">", ">="})
_FIRST_YEAR = 1000
"""The ledger compares times as texts of fixed width."""
_ALLOWED: Mapping[str, frozenset[str]] = {
    "text": frozenset({"=", "!=", "like"}),
    "digest": frozenset({"=", "!=", "like"}),
    "number": frozenset({"=", "!="}) | _ORDERED,
    "time": frozenset({"=", "!="}) | _ORDERED,
    "flag": frozenset({"=", "!="}),
    "list": frozenset({"=", "!=", "like", "has"}),
}
_WHAT = {
    "text": "text",
    "digest": "a digest",
    "number": "a number",
    "time": "a time",
    "flag": "true or false",
    "list": "a set",
}


@dataclass(frozen=True)
class Span:
    """A moment, or a whole day in UTC: its first and its last microsecond as the ledger's text."""

    first: str
    last: str


Value = str | Decimal | bool | Span
"""What a literal is to its fact. A `list` takes text for a member, a number for how many."""


@dataclass(frozen=True)
class Bound:
    """A filter whose names are known.

    Attributes:
        where: the filter.
        facts: name as written → fact, in the order that they were written in.
    """

    where: Where
    facts: Mapping[str, Fact]

    def fact(self, name: FactName) -> Fact:
        """The fact that a name means."""
        return self.facts[name.text]

    @property
    def mentioned(self) -> tuple[tuple[str, Fact], ...]:
        """Each fact once, with the name that it was first written by."""
        first: dict[str, tuple[str, Fact]] = {}
        for name, fact in self.facts.items():
            first.setdefault(fact.name, (name, fact))
        return tuple(first.values())


def bind(where: Where, fields: Callable[[], tuple[PublishedField, ...]]) -> Bound:
    """Find what every name means, and check every comparison.

    Args:
        where: the filter.
        fields: the fields of the workload; asked only where a name is no fact of the ledger.

    Raises:
        UnknownFact, AmbiguousFact: a name means nothing, or several fields.
        FactMisused: a fact cannot be compared like that.
    """
    facts: dict[str, Fact] = {}
    for leaf in leaves(where.expression):
        name = leaf.fact
        if name.text not in facts:
            facts[name.text] = FACTS.get(name.text) or _field(name, fields())
        _check(leaf, facts[name.text])
    return Bound(where, facts)


def _field(name: FactName, fields: tuple[PublishedField, ...]) -> Fact:
    by_name = {field.name: field for field in fields}
    found = by_name.get(name.text.removeprefix(OF_FIELD))
    if found is not None:
        return fact_of(found)
    roles = [field for field in fields if field.search == name.text]
    if len(roles) > 1:
        raise AmbiguousFact(name.text, name.place, [field.name for field in roles])
    if roles:
        return fact_of(roles[0])
    full = (f"{OF_FIELD}{field}" for field in by_name)
    aliases = (field.search for field in fields if field.search is not None)
    raise UnknownFact(name.text, name.place, {*FACTS, *by_name, *full, *aliases})


def fact_of(field: PublishedField) -> Fact:
    """The value of a field as a fact."""
    return Fact(
        name=f"{OF_FIELD}{field.name}",
        kind="list" if field.many else "text",
        group="field",
        meaning=field.label,
        shown="present",
    )


def _check(leaf: Comparison | Among | Absence, fact: Fact) -> None:
    if isinstance(leaf, Comparison):
        _check_comparison(leaf, fact)
    elif isinstance(leaf, Among):
        for literal in leaf.values:
            _require_known(leaf.fact, fact, literal, value_of(leaf.fact, fact, literal))


def _check_comparison(leaf: Comparison, fact: Fact) -> None:
    counted = fact.kind == "list" and leaf.operator in _ORDERED and is_number(leaf.value)
    if leaf.operator not in _ALLOWED[fact.kind] and not counted:
        allowed = sorted(_ALLOWED[fact.kind] | {"in"})
        more = "; < <= > >= compare how many it has, with a number" if fact.kind == "list" else ""
        raise FactMisused(
            leaf.fact.text,
            leaf.value.place,
            f"{leaf.operator} {_quoted(leaf.value)}",
            f"one of {' '.join(allowed)}, since it is {_WHAT[fact.kind]}{more}",
        )
    if leaf.operator in ("=", "!="):
        _require_known(leaf.fact, fact, leaf.value, value_of(leaf.fact, fact, leaf.value))
    elif leaf.operator in _ORDERED:
        value_of(leaf.fact, fact, leaf.value)


def _require_known(name: FactName, fact: Fact, literal: Literal, value: Value) -> None:
    """A value that the fact can never have is a slip of the keyboard, not an empty selection."""
    if not fact.known or value in fact.known:
        return
    close = get_close_matches(str(value), fact.known, n=1)
    expected = f"{close[0]!r}, or another of" if close else "one of"
    raise FactMisused(
        name.text, literal.place, _quoted(literal), f"{expected} {', '.join(fact.known)}"
    )


def is_number(literal: Literal) -> bool:
    """Is it a number that is not in quotes?"""
    return not literal.quoted and _NUMBER.fullmatch(literal.text) is not None


def value_of(name: FactName, fact: Fact, literal: Literal) -> Value:
    """What a literal is to a fact.

    Raises:
        FactMisused: it is nothing that the fact can be compared with.
    """
    if fact.kind == "number" or (fact.kind == "list" and is_number(literal)):
        return _number(name, literal)
    if fact.kind == "time":
        return _span(name, literal)
    if fact.kind == "flag":
        return _flag(name, literal)
    if fact.kind == "digest":
        return _digest(name, literal)
    return literal.text


def _number(name: FactName, literal: Literal) -> Decimal:
    if not is_number(literal):
        raise FactMisused(name.text, literal.place, _quoted(literal), "a number without quotes")
    if sum(character.isdigit() for character in literal.text) > _MOST_DIGITS:
        raise FactMisused(
            name.text, literal.place, _quoted(literal), f"at most {_MOST_DIGITS} digits"
        )
    return Decimal(literal.text)


def _flag(name: FactName, literal: Literal) -> bool:
    value = _FLAGS.get(literal.text.lower())
    if value is None:
        raise FactMisused(name.text, literal.place, _quoted(literal), "true or false")
    return value


def _digest(name: FactName, literal: Literal) -> str:
    digest = literal.text.lower()
    if not _DIGEST.fullmatch(digest):
        raise FactMisused(
            name.text,
            literal.place,
            _quoted(literal),
            'all 64 hexadecimal digits, or the first of them with a star: like "0a1b2c*"',
        )
    return digest


def _span(name: FactName, literal: Literal) -> Span:
    try:
        moment = datetime.fromisoformat(literal.text)
        zoned = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
        first = zoned.astimezone(UTC)
        whole = _DAY.fullmatch(literal.text) is not None
        last = first + (timedelta(days=1, microseconds=-1) if whole else timedelta())
    except (ValueError, OverflowError):
        first = last = datetime.min.replace(tzinfo=UTC)
    if first.year < _FIRST_YEAR:
        raise FactMisused(
            name.text,
            literal.place,
            _quoted(literal),
            "a day or a time in UTC: 2026-11-30 or 2026-11-30T12:00:00Z",
        )
    return Span(to_text(first), to_text(last))


def _quoted(literal: Literal) -> str:
    most = 40
    return ascii(literal.text if len(literal.text) <= most else literal.text[:most] + "...")
