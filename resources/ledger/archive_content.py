"""The content of an archive entry as the search looks in it.

Belongs here: taking the searchable texts out of published content. Does not belong here: writing
entries (`archive.py`) and cutting text into tokens (`search_text.py`).
"""

from __future__ import annotations

import polars as pl

from resources.ledger.search_text import tokens

_VALUE = pl.Struct({"value": pl.String})
_CONTENT = pl.Struct(
    {
        "title": _VALUE,
        "product_identifiers": pl.List(_VALUE),
        "language": _VALUE,
        "description": _VALUE,
    }
)


def search_entries_of(entries: pl.DataFrame) -> pl.DataFrame:
    """The search entries of archive entries.

    Args:
        entries: `content` (JSON as published) and any further columns, which are kept.

    Returns:
        The columns besides `content`, and title, identifiers, description, language: the first
        three as tokens, the last as it is, all empty where there is nothing.
    """
    content = pl.col("content").str.json_decode(_CONTENT)
    decoded = entries.with_columns(content=content).unnest("content")
    identifiers = (
        pl.col("product_identifiers")
        .list.eval(pl.element().struct.field("value"))
        .list.drop_nulls()
        .list.join(" ")
    )
    return decoded.with_columns(
        title=tokens(pl.col("title").struct.field("value")),
        identifiers=tokens(identifiers),
        description=tokens(pl.col("description").struct.field("value")),
        language=pl.col("language").struct.field("value").fill_null(""),
    ).drop("product_identifiers")
