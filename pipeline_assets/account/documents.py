"""Finding the document that a person means.

Belongs here: exact ids, unique endings of ids, and what to suggest when neither fits.
"""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches

import polars as pl

from resources.context import Context

_SUGGESTED = 3
_COMPARED = 20_000
"""Comparing one text with so many takes about a second."""


class UnknownDocument(LookupError):
    """No document has this id, nor an id that ends with it."""

    def __init__(self, given: str, close: list[str]) -> None:
        hint = f"the closest are: {', '.join(close)}" if close else "no id is like it"
        super().__init__(
            f"there is no document {given!r} ({hint}). `tallybook outcomes` lists every document; "
            "give its id or the end of it."
        )


class AmbiguousDocument(LookupError):
    """Several ids end with what was given."""

    def __init__(self, given: str, found: list[str]) -> None:
        shown = ", ".join(found[:_SUGGESTED])
        super().__init__(
            f"{len(found)} documents end with {given!r} ({shown}"
            f"{', ...' if len(found) > _SUGGESTED else ''}): give more of the id."
        )


@dataclass(frozen=True)
class DocumentKey:
    """A document that the ledger knows, present or not."""

    document_no: int
    document_id: str


def find_document(context: Context, given: str) -> DocumentKey:
    """The document with this id, else the only one whose id ends with it.

    An ending that starts at a folder's slash wins over one inside a name.

    Raises:
        UnknownDocument: none; the message names the closest.
        AmbiguousDocument: several.
    """
    schema = {"document_no": pl.Int64, "document_id": pl.String}
    dialect = context.ledger.dialect
    with context.ledger.read() as connection:
        exact = dialect.fetch(
            connection,
            "SELECT document_no, document_id FROM documents WHERE document_id = ?",
            schema,
            (given,),
        )
        if not exact.is_empty():
            return DocumentKey(*exact.row(0))
        known = dialect.fetch(connection, "SELECT document_no, document_id FROM documents", schema)
    for ending in (f"/{given.removeprefix('/')}", given):
        found = known.filter(pl.col("document_id").str.ends_with(ending)).sort("document_id")
        if found.height == 1:
            return DocumentKey(*found.row(0))
        if found.height > 1:
            raise AmbiguousDocument(given, found["document_id"].to_list())
    raise UnknownDocument(given, _closest(given, known["document_id"].sort()))


def _closest(given: str, ids: pl.Series) -> list[str]:
    name = given.rsplit("/", 1)[-1].casefold()
    if name:
        inside = ids.filter(ids.str.to_lowercase().str.contains(name, literal=True))
        if not inside.is_empty():
            return inside.head(_SUGGESTED).to_list()
    compared = ids.head(_COMPARED).to_list()
    by_name = {text.rsplit("/", 1)[-1].casefold(): text for text in reversed(compared)}
    close = get_close_matches(name, by_name, n=_SUGGESTED, cutoff=0.5)
    return [by_name[found] for found in close]
