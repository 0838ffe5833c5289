"""The content of an archive entry as the search looks in it.

Belongs here: taking the searchable texts out of published content, by what the caller says of its
members. Does not belong here: which members a workload has (`pipeline_assets/workloads`), writing
entries (`archive.py`) and cutting text into tokens (`search_text.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import polars as pl

from resources.ledger.frames import PolarsType
from resources.ledger.search_text import tokens

Searched = Mapping[str, tuple[bool, str]]
"""Of a workload, the members of its content that are searched: name → (is it a list?, the column
of the search that it goes to). Members of one column stand behind one another in it."""
SearchedOf = Callable[[str], Searched]
"""A workload's name → its searched members; raises where the workload is not known."""
TOKENS = ("title", "identifiers", "description")
"""Columns of the search that hold tokens."""
AS_THEY_ARE = "language"
"""The column that holds values as they are."""
SEARCH_COLUMNS = (*TOKENS, AS_THEY_ARE)
_VALUE = pl.Struct({"value": pl.String})
_AT = "_at"


def search_entries_of(entries: pl.DataFrame, searched: Searched) -> pl.DataFrame:
    """Archive entries of one workload with their search entries.

    Args:
        entries: `content` (JSON as published) and any further columns.
        searched: what is searched in the content.

    Returns:
        The entries, and title, identifiers, description, language: the first three as tokens, the
        last as it is, all empty where there is nothing.
    """
    return entries.hstack(_texts(entries["content"], searched)).with_columns(
        *(tokens(pl.col(column)) for column in TOKENS), pl.col(AS_THEY_ARE).fill_null("")
    )


def search_entries_by_workload(entries: pl.DataFrame, searched_of: SearchedOf) -> pl.DataFrame:
    """Archive entries of any workloads with their search entries.

    Args:
        entries: `workload`, `content` and any further columns.
        searched_of: what is searched in a workload's content.

    Returns:
        As `search_entries_of`, in the order of the entries.
    """
    parts = [
        search_entries_of(part, searched_of(part["workload"][0]))
        for part in entries.with_row_index(_AT).partition_by("workload", maintain_order=True)
    ]
    if not parts:
        return search_entries_of(entries, {})
    return pl.concat(parts).sort(_AT).drop(_AT)


def _texts(contents: pl.Series, searched: Searched) -> pl.DataFrame:
    """The columns of the search as plain text; null where there is none."""
    members: dict[str, PolarsType] = {
        name: pl.List(_VALUE) if many else _VALUE for name, (many, _) in searched.items()
    }
    if not members:
        return pl.DataFrame({column: [None] * contents.len() for column in SEARCH_COLUMNS}).cast(
            pl.String
        )
    content = pl.DataFrame({"content": contents.str.json_decode(pl.Struct(members))})
    return content.unnest("content").select(_text(searched, column) for column in SEARCH_COLUMNS)


def _text(searched: Searched, column: str) -> pl.Expr:
    parts = [
        _joined(name) if many else pl.col(name).struct.field("value")
        for name, (many, wanted) in searched.items()
        if wanted == column
    ]
    if not parts:
        return pl.lit(None, dtype=pl.String).alias(column)
    whole = pl.concat_str(parts, separator=" ", ignore_nulls=True) if parts[1:] else parts[0]
    return whole.alias(column)


def _joined(name: str) -> pl.Expr:
    values = pl.col(name).list.eval(pl.element().struct.field("value"))
    return values.list.drop_nulls().list.join(" ")
