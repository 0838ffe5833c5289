"""What the lines of a batch cost that is just being settled, before the ledger has them.

Belongs here: the rule of `charges.py` over frames. Does not belong here: matching lines
(`collect`).
"""

from __future__ import annotations

from decimal import Decimal

import polars as pl

from pipeline_assets.costs.charges import MODEL_ANSWERED
from pipeline_assets.costs.rates import JobRates

TOKEN_COLUMNS = ("input_tokens", "output_tokens", "cached_tokens")


def cost_of_lines(lines: pl.DataFrame, rates: JobRates) -> tuple[Decimal | None, int]:
    """What lines cost together, exactly, and how many lines of a model's do not say their tokens.

    Args:
        lines: disposition, failure_class and `TOKEN_COLUMNS` of attempts with a line.
        rates: of their job.

    Returns:
        The amount of those whose tokens are known, None where they have no price; and the number
        of the others.
    """
    counted = pl.col("input_tokens").is_not_null() & pl.col("output_tokens").is_not_null()
    answered = (
        (pl.col("disposition") == "succeeded")
        | pl.col("input_tokens").is_not_null()
        | pl.col("output_tokens").is_not_null()
        | pl.col("failure_class").is_in(MODEL_ANSWERED)
    ).fill_null(value=False)
    cached = pl.col("cached_tokens").fill_null(0)
    impossible = (
        (pl.col("output_tokens") < 0) | (cached < 0) | (cached > pl.col("input_tokens"))
    ).fill_null(value=False)
    known = lines.filter(counted & ~impossible).select(*TOKEN_COLUMNS[:2], cached_tokens=cached)
    unsized = lines.filter((answered & ~counted) | (counted & impossible)).height
    total = Decimal(0)
    for read, written, from_cache, rows in known.group_by(TOKEN_COLUMNS).len().iter_rows():
        usd = rates.amount(read, written, from_cache, read)
        if usd is None:
            return None, unsized
        total += rows * usd
    return total, unsized
