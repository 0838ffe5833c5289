"""Rule `own_words`: nothing rests on an earlier mail that the ticket only quotes.

What the service wrote last week is no wish of the writer's.
"""

from __future__ import annotations

import polars as pl

from pipeline_assets.workloads.text_folding import fold
from pipeline_assets.workloads.workload import Rule, Shard

from .words import Found, findings, messages

_FIELDS = ("category", "priority", "language", "summary")
"""A product may well be named in the earlier mail alone."""
_NOTE = "a quote stands in an earlier mail, not in the writer's own words"


def check(shard: Shard) -> pl.DataFrame:
    """A finding for every field with a quote that is not of the writer's own sentences."""
    own = {
        row: fold("\n".join(message.text for message in read))
        for row, read in messages(shard).items()
        if any(message.earlier for message in read)
    }
    quotes = shard.evidence.filter(pl.col("field").is_in(_FIELDS) & pl.col("row").is_in(list(own)))
    found: list[Found] = [
        (row, field, _NOTE)
        for row, field, quote in quotes.select("row", "field", "quote").iter_rows()
        if fold(quote) not in own[row]
    ]
    return findings(found)


RULE = Rule(id="own_words", version=1, severity="review", check=check, family="evidence")
