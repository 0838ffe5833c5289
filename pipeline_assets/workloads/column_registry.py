"""The registry of a workload's columns: name, type, meaning and limits, told once.

Belongs here: what one column may hold, and the two things that are made of it: the Pandera column
that the acceptance boundary checks, and the sentences that Dagster shows beside the column. Does
not belong here: any workload's columns, rules over several columns (a workload's rule `frame`),
and Dagster itself (`accept/asset.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pandera.polars as pa
import polars as pl

from resources.ledger.frames import PolarsType


@dataclass(frozen=True)
class ColumnRule:
    """One column of the frame that is accepted.

    Attributes:
        name: of the column.
        dtype: its type.
        meaning: one line for people.
        nullable: may a row have no value?
        allowed: the only values, where they are a closed list.
        length: shortest and longest text in code points.
        needs_word: must the text have a letter or a digit?
        pattern: a regular expression that the text matches, and what it is called in findings.
    """

    name: str
    dtype: PolarsType
    meaning: str
    nullable: bool = False
    allowed: tuple[str, ...] = ()
    length: tuple[int, int] | None = None
    needs_word: bool = False
    pattern: tuple[str, str] | None = None

    @property
    def limits(self) -> list[str]:
        """What a value has to be, a few words each."""
        told = []
        if self.allowed:
            told.append(f"one of {', '.join(self.allowed)}")
        if self.length is not None:
            told.append(f"{self.length[0]} to {self.length[1]} characters")
        if self.needs_word:
            told.append("has a letter or digit")
        if self.pattern is not None:
            told.append(f"matches {self.pattern[0]}")
        return told


def pandera_column(column: ColumnRule) -> pa.Column:
    """The column as the boundary checks it; a check's name is the note of its findings."""
    checks: list[pa.Check] = []
    if column.allowed:
        checks.append(pa.Check.isin(list(column.allowed)))
    if column.length is not None:
        shortest, longest = column.length
        checks.append(
            column_check(
                lambda value: value.str.len_chars().is_between(shortest, longest),
                f"length_{shortest}_to_{longest}",
            )
        )
    if column.needs_word:
        checks.append(
            column_check(lambda value: value.str.contains(r"[\p{L}\p{N}]"), "no letter or digit")
        )
    if column.pattern is not None:
        pattern, name = column.pattern
        checks.append(column_check(lambda value: value.str.contains(pattern), name))
    return pa.Column(column.dtype, checks, nullable=column.nullable)


def column_check(fits: Callable[[pl.Expr], pl.Expr], name: str) -> pa.Check:
    """A check of one column by an expression."""
    return pa.Check(lambda data: data.lazyframe.select(fits(pl.col(data.key))), name=name)
