"""The writer's own words behind each answer of a shard, for the rules that compare with them.

Belongs here: reading them. Does not belong here: judging (the rules beside it).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from pipeline_assets.workloads.workload import Shard

from ..message import Message, read_message

FOUND_SCHEMA = {"row": pl.Int64, "field": pl.String, "note": pl.String}
Found = tuple[int, str, str]


def messages(shard: Shard) -> Mapping[int, list[Message]]:
    """Row → what the pages that its answer quotes say in the writer's own words.

    A ticket is one page, nearly always; an answer without a quote is judged by other rules.
    """
    if shard.evidence.is_empty():
        return {}
    texts = shard.page_texts(shard.evidence.select("row", "page").unique()).sort("row", "page")
    read: dict[int, list[Message]] = {}
    for row, text in texts.select("row", "text").iter_rows():
        read.setdefault(row, []).append(read_message(text))
    return read


def quotes_of(shard: Shard, field: str) -> Mapping[int, list[str]]:
    """Row → the quotes of a field."""
    return dict(
        shard.evidence.filter(pl.col("field") == field)
        .group_by("row", maintain_order=True)
        .agg("quote")
        .iter_rows()
    )


def findings(found: Sequence[Found]) -> pl.DataFrame:
    """Findings as a frame, each once."""
    return pl.DataFrame(list(dict.fromkeys(found)), schema=FOUND_SCHEMA, orient="row")
