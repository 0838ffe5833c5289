"""A filter as a tree: what a person wrote, without what the names in it mean.

Belongs here: the nodes and their printed form, which reads back as the same tree. Does not belong
here: reading text (`parse.py`), meaning (`bind.py`) and evaluation (`evaluate.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal as OneOf

Operator = OneOf["=", "!=", "<", "<=", ">", ">=", "like", "has"]


@dataclass(frozen=True)
class Literal:
    """A value as it was written.

    Attributes:
        text: without quotes and escapes.
        quoted: was it in quotes? A number in quotes is text.
        place: where it stands, for messages.
    """

    text: str
    quoted: bool
    place: str = field(default="", compare=False)

    def __str__(self) -> str:
        if not self.quoted:
            return self.text
        escaped = self.text.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'


@dataclass(frozen=True)
class FactName:
    """The name of a fact as it was written."""

    text: str
    place: str = field(default="", compare=False)

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Comparison:
    """`fact operator value`."""

    fact: FactName
    operator: Operator
    value: Literal

    def __str__(self) -> str:
        return f"{self.fact} {self.operator} {self.value}"


@dataclass(frozen=True)
class Among:
    """`fact in (value, ...)`."""

    fact: FactName
    values: tuple[Literal, ...]

    def __str__(self) -> str:
        return f"{self.fact} in ({', '.join(map(str, self.values))})"


@dataclass(frozen=True)
class Absence:
    """`fact is null`."""

    fact: FactName

    def __str__(self) -> str:
        return f"{self.fact} is null"


@dataclass(frozen=True)
class Negation:
    """`not part`."""

    part: Expression

    def __str__(self) -> str:
        if isinstance(self.part, Absence):
            return f"{self.part.fact} is not null"
        if isinstance(self.part, AllOf | AnyOf):
            return f"not ({self.part})"
        return f"not {self.part}"


@dataclass(frozen=True)
class AllOf:
    """`part and part ...`; no part is an `AllOf` itself."""

    parts: tuple[Expression, ...]

    def __str__(self) -> str:
        return " and ".join(
            f"({part})" if isinstance(part, AnyOf) else str(part) for part in self.parts
        )


@dataclass(frozen=True)
class AnyOf:
    """`part or part ...`; no part is an `AnyOf` itself."""

    parts: tuple[Expression, ...]

    def __str__(self) -> str:
        return " or ".join(map(str, self.parts))


Expression = Comparison | Among | Absence | Negation | AllOf | AnyOf


@dataclass(frozen=True)
class Where:
    """A filter.

    Attributes:
        text: as it was given.
        expression: what was read.
    """

    text: str
    expression: Expression


def all_of(parts: Sequence[Expression]) -> Expression:
    """The parts joined by `and`, nested ones taken up."""
    flat = [
        inner for part in parts for inner in (part.parts if isinstance(part, AllOf) else (part,))
    ]
    return flat[0] if len(flat) == 1 else AllOf(tuple(flat))


def any_of(parts: Sequence[Expression]) -> Expression:
    """The parts joined by `or`, nested ones taken up."""
    flat = [
        inner for part in parts for inner in (part.parts if isinstance(part, AnyOf) else (part,))
    ]
    return flat[0] if len(flat) == 1 else AnyOf(tuple(flat))


def leaves(expression: Expression) -> Iterator[Comparison | Among | Absence]:
    """The parts that name a fact, in the order that they were written in."""
    if isinstance(expression, AllOf | AnyOf):
        for part in expression.parts:
            yield from leaves(part)
    elif isinstance(expression, Negation):
        yield from leaves(expression.part)
    else:
        yield expression
