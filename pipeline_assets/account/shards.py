"""Reading a long list of things from the ledger in shards, in the order that people see.

Belongs here: only that. Sorting happens here and not in the database, whose collation may be
another one on each machine; a read transaction may not fill a temporary table, so a shard's
numbers stand in the statement.
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from resources.context import Context

MAX_SHARD = 10_000
"""Numbers that one statement names; about 100 kB of text."""


def shards(context: Context, keys: pl.DataFrame, by: str) -> Iterator[pl.DataFrame]:
    """`keys` sorted by the text column `by` (by code point), in shards that memory can hold."""
    size = min(MAX_SHARD, context.settings.shard_records)
    yield from keys.sort(by).iter_slices(size)


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
