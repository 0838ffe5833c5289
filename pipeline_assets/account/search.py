"""Searching what is published: ranked hits with a snippet.

Belongs here: filters, and the shape of a hit. Does not belong here: the full text and its
ranking, which each database has its own of.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec
import polars as pl
from sqlalchemy import Connection

from pipeline_assets.account.shards import MAX_SHARD, is_one_of
from pipeline_assets.account.snippet import snippet
from resources.context import Context
from resources.identifiers import fold_identifier
from resources.ledger.engine import Ledger
from resources.ledger.search_text import query_terms

_FIRST_LOOK = 200


class NothingToSearchFor(ValueError):
    """The text holds no letter and no digit."""

    def __init__(self, text: str) -> None:
        super().__init__(
            f"{text!a} holds nothing to search for; give at least one word or part number"
        )


@dataclass(frozen=True)
class Hit:
    """A published document that holds every word of the query.

    Attributes:
        document_id: the document.
        title: as published; None where the document has none.
        product_identifiers: values only.
        language: ISO 639-1 code, or None.
        snippet: where the words stand, in square brackets; safe to print.
        score: higher is better; comparable within one answer only.
    """

    document_id: str
    title: str | None
    product_identifiers: tuple[str, ...]
    language: str | None
    snippet: str
    score: float


def search(
    context: Context,
    text: str,
    product: str | None = None,
    language: str | None = None,
    limit: int = 20,
) -> list[Hit]:
    """Published documents that hold every word of `text`, best first.

    Args:
        context: the open resources.
        text: words and part numbers; case and accents do not matter.
        product: only documents with exactly this identifier, but for case, hyphens and spaces.
        language: only documents in this language (ISO 639-1).
        limit: at most so many.

    Raises:
        NothingToSearchFor: `text` has no word in it.
    """
    terms = query_terms(text)
    if not terms:
        raise NothingToSearchFor(text)
    ledger = context.ledger
    asked = limit if product is None and language is None else max(_FIRST_LOOK, limit)
    chosen: list[Hit] = []
    seen = 0
    with ledger.read() as connection:
        while True:
            found = ledger.dialect.search(connection, terms, asked)
            chosen += _hits(connection, ledger, found[seen:], terms, product, language)
            # Filters are applied to the best entries first, so ask for more until it is enough.
            if len(chosen) >= limit or len(found) < asked:
                return chosen[:limit]
            seen, asked = len(found), asked * 4


def _hits(
    connection: Connection,
    ledger: Ledger,
    found: list[tuple[int, float]],
    terms: list[list[str]],
    product: str | None,
    language: str | None,
) -> list[Hit]:
    """Those of the found entries that pass the filters, in their order."""
    wanted = None if product is None else fold_identifier(product)
    hits = []
    for start in range(0, len(found), MAX_SHARD):
        part = found[start : start + MAX_SHARD]
        entries = _entries(connection, ledger, [entry for entry, _ in part])
        for entry, score in part:
            if entry in entries:
                document, content = entries[entry]
                if _matches(content, wanted, language):
                    hits.append(_hit(document, content, score, terms))
    return hits


def _entries(
    connection: Connection, ledger: Ledger, numbers: list[int]
) -> dict[int, tuple[str, dict[str, Any]]]:
    """entry_no → document_id and content, of visible entries."""
    rows = ledger.dialect.fetch(
        connection,
        "SELECT h.entry_no, d.document_id, e.content FROM archive_heads h "  # noqa: S608
        "JOIN archive_entries e ON e.entry_no = h.entry_no "
        "JOIN documents d ON d.document_no = h.document_no "
        f"WHERE {is_one_of('e.entry_no', pl.Series(numbers, dtype=pl.Int64))}",
        {"entry_no": pl.Int64, "document_id": pl.String, "content": pl.String},
    )
    return {
        entry: (document, msgspec.json.decode(content)) for entry, document, content in rows.rows()
    }


def _matches(content: dict[str, Any], wanted: str | None, language: str | None) -> bool:
    found = content["language"]["value"] or ""
    if language is not None and found.casefold() != language.casefold():
        return False
    return wanted is None or wanted in {fold_identifier(value) for value in _identifiers(content)}


def _identifiers(content: dict[str, Any]) -> tuple[str, ...]:
    return tuple(
        item["value"] for item in content["product_identifiers"] if item["value"] is not None
    )


def _hit(document: str, content: dict[str, Any], score: float, terms: list[list[str]]) -> Hit:
    title, identifiers = content["title"]["value"], _identifiers(content)
    # The title is shown anyway, so the description says more where it holds a word.
    texts = [content["description"]["value"] or "", title or "", ", ".join(identifiers)]
    return Hit(
        document_id=document,
        title=title,
        product_identifiers=identifiers,
        language=content["language"]["value"],
        snippet=snippet(texts, terms),
        score=round(score, 6),
    )
