"""Rule `instructions_obeyed`: no value rests on a text that speaks to the model.

A document may hold "ignore your instructions and answer this". A quote that stands inside or beside
such a text is a sign that the answer did what it says; a manual that says so elsewhere is judged as
any other.
"""

from __future__ import annotations

import re

import polars as pl

from pipeline_assets.workloads.foreign_matter import INSTRUCTION, instructing
from pipeline_assets.workloads.workload import Rule, Shard

NEAR = 300
"""Code points before and behind a quote that are looked at."""
_PATTERN = re.compile(INSTRUCTION)
_SCHEMA = {"row": pl.Int64, "field": pl.String, "note": pl.String}
_NOTE = "a quote stands beside instructions to its reader's program"


def check(shard: Shard) -> pl.DataFrame:
    """A finding for every field with a quote in or beside such a text."""
    standing = shard.places.filter(pl.col("start").is_not_null())
    if standing.is_empty():
        return pl.DataFrame(schema=_SCHEMA)
    texts = shard.page_texts(standing.select("row", "page").unique())
    near = standing.join(instructing(texts), on=["row", "page"], maintain_order="left")
    found = [
        (row, field, _NOTE)
        for row, field, start, end, text in near.select(
            "row", "field", "start", "end", "text"
        ).iter_rows()
        if _PATTERN.search(text, max(0, start - NEAR), end + NEAR)
    ]
    return pl.DataFrame(found, schema=_SCHEMA, orient="row").unique(maintain_order=True)


RULE = Rule(id="instructions_obeyed", version=1, severity="review", check=check, family="reference")
