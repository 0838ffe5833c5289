"""Reading a long list of things from the ledger in shards, in the order that people see.

Belongs here: only that. Sorting happens here and not in the database, whose collation may be
another one on each machine; a shard is no larger than what one statement can name
(`resources/ledger/numbers.py`).
"""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from resources.context import Context
from resources.ledger.numbers import MOST_NUMBERS


def shards(context: Context, keys: pl.DataFrame, by: str) -> Iterator[pl.DataFrame]:
    """`keys` sorted by the text column `by` (by code point), in shards that memory can hold."""
    size = min(MOST_NUMBERS, context.settings.shard_records)
    yield from keys.sort(by).iter_slices(size)
