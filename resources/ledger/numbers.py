"""Record numbers in statements: a read transaction may not fill a temporary table.

Belongs here: only that; a list of numbers stands in the statement itself, so it is bounded.
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

MOST_NUMBERS = 10_000
"""Numbers that one statement names; about 100 kB of text."""


def parts_of(numbers: pl.Series) -> Iterator[pl.Series]:
    """The numbers, each once and sorted, in parts that a statement can name."""
    known = numbers.drop_nulls().unique().sort()
    for start in range(0, known.len(), MOST_NUMBERS):
        yield known.slice(start, MOST_NUMBERS)


def is_one_of(column: str, numbers: pl.Series) -> str:
    """The SQL condition that an integer column has one of these numbers; never true for none."""
    if numbers.is_empty():
        return "1 = 0"
    known = numbers.unique().sort()
    # Numbers follow the order of ids, so a shard is a range or nearly one; said as a range, the
    # planner reads a piece of an index even where it has no statistics yet.
    within = f"{column} BETWEEN {int(known[0])} AND {int(known[-1])}"
    if known.len() == int(known[-1]) - int(known[0]) + 1:
        return within
    return f"{within} AND {column} IN ({','.join(str(int(number)) for number in known)})"
