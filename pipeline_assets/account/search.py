"""Searching what is published: ranked hits with a snippet.

Belongs here: filters, and the shape of a hit. Does not belong here: the full text and its
ranking, which each database has its own of.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec
import polars as pl
from sqlalchemy import Connection

from pipeline_assets.account.known_workload import require_used
from pipeline_assets.account.snippet import snippet
from pipeline_assets.workloads.fields import (
    Fields,
    Role,
    field_in_role,
    heading_field,
    readable_fields,
    text_of,
    values_of,
)
from resources.context import Context
from resources.identifiers import fold_identifier
from resources.ledger.numbers import MOST_NUMBERS, is_one_of
from resources.ledger.search_text import query_terms

_FIRST_LOOK = 200


class NothingToSearchFor(ValueError):
    """The text holds no letter and no digit."""

    def __init__(self, text: str) -> None:
        super().__init__(
            f"{text!a} holds nothing to search for; give at least one word or part number"
        )


@dataclass(frozen=True)
class Wanted:
    """Which entries are meant; None: all.

    Attributes:
        product: only documents with exactly this identifier, but for case, hyphens and spaces.
        language: only documents in this language (ISO 639-1).
        workload: only entries of this workload.
    """

    product: str | None = None
    language: str | None = None
    workload: str | None = None


class _Entry(NamedTuple):
    """A visible entry that may be a hit."""

    document_id: str
    workload: str
    content: dict[str, Any]
    fields: Fields

    def values(self, role: Role) -> tuple[str, ...]:
        return values_of(self.content, field_in_role(self.fields, role))


@dataclass(frozen=True)
class Hit:
    """A published document that holds every word of the query.

    Attributes:
        document_id: the document.
        workload: what was extracted from it.
        title: the value of the field with the search role `title`, else of its first field; None
            where it has none.
        label: what the workload calls that field.
        identifiers: values of the field with that role; empty where there are none.
        language: ISO 639-1 code, or None.
        snippet: where the words stand, in square brackets; safe to print.
        score: higher is better; comparable within one answer only.
    """

    document_id: str
    workload: str
    title: str | None
    label: str
    identifiers: tuple[str, ...]
    language: str | None
    snippet: str
    score: float


def search(
    context: Context,
    text: str,
    product: str | None = None,
    language: str | None = None,
    limit: int = 20,
    *,
    workload: str | None = None,
) -> list[Hit]:
    """Published documents that hold every word of `text`, best first.

    Args:
        context: the open resources.
        text: words and part numbers; case and accents do not matter.
        product: only documents with exactly this identifier, but for case, hyphens and spaces.
        language: only documents in this language (ISO 639-1).
        limit: at most so many.
        workload: only entries of this workload.

    Raises:
        NothingToSearchFor: `text` has no word in it.
        WorkloadNeverUsed: there is no such workload here.
    """
    terms = query_terms(text)
    if not terms:
        raise NothingToSearchFor(text)
    if workload is not None:
        require_used(context, workload)
    ledger = context.ledger
    wanted = Wanted(product, language, workload)
    asked = limit if wanted == Wanted() else max(_FIRST_LOOK, limit)
    chosen: list[Hit] = []
    seen = 0
    with ledger.read() as connection:
        while True:
            found = ledger.dialect.search(connection, terms, asked)
            chosen += _hits(connection, context, found[seen:], terms, wanted)
            # Filters are applied to the best entries first, so ask for more until it is enough.
            if len(chosen) >= limit or len(found) < asked:
                return chosen[:limit]
            seen, asked = len(found), asked * 4


def _hits(
    connection: Connection,
    context: Context,
    found: list[tuple[int, float]],
    terms: list[list[str]],
    wanted: Wanted,
) -> list[Hit]:
    """Those of the found entries that pass the filters, in their order."""
    hits = []
    for start in range(0, len(found), MOST_NUMBERS):
        part = found[start : start + MOST_NUMBERS]
        entries = _entries(connection, context, [number for number, _ in part])
        for number, score in part:
            entry = entries.get(number)
            if entry is not None and _matches(entry, wanted):
                hits.append(_hit(entry, score, terms))
    return hits


def _entries(connection: Connection, context: Context, numbers: list[int]) -> dict[int, _Entry]:
    """entry_no → the entry, of visible ones."""
    rows = context.ledger.dialect.fetch(
        connection,
        "SELECT h.entry_no, d.document_id, v.workload, e.content FROM archive_heads h "  # noqa: S608
        "JOIN archive_entries e ON e.entry_no = h.entry_no "
        "JOIN documents d ON d.document_no = h.document_no "
        "JOIN processing_versions v ON v.version_no = e.version_no "
        f"WHERE {is_one_of('e.entry_no', pl.Series(numbers, dtype=pl.Int64))}",
        {
            "entry_no": pl.Int64,
            "document_id": pl.String,
            "workload": pl.String,
            "content": pl.String,
        },
    )
    return {number: _entry(context, *row) for number, *row in rows.rows()}


def _entry(context: Context, document: str, workload: str, text: str) -> _Entry:
    content = msgspec.json.decode(text)
    fields = readable_fields(context.settings, workload, content)
    return _Entry(document, workload, content, fields)


def _matches(entry: _Entry, wanted: Wanted) -> bool:
    if wanted.workload is not None and entry.workload != wanted.workload:
        return False
    if wanted.language is not None:
        found = {value.casefold() for value in entry.values("language")}
        if wanted.language.casefold() not in found:
            return False
    if wanted.product is None:
        return True
    known = {fold_identifier(value) for value in entry.values("identifiers")}
    return fold_identifier(wanted.product) in known


def _hit(entry: _Entry, score: float, terms: list[list[str]]) -> Hit:
    heading = heading_field(entry.fields)
    title = text_of(entry.content, heading)
    identifiers = entry.values("identifiers")
    shown = [" ".join(entry.values("description")), title or "", ", ".join(identifiers)]
    if not any(field.search for field in entry.fields):
        # Nobody says any more what was searched: it may stand in any of them.
        shown += [text_of(entry.content, field) or "" for field in entry.fields]
    return Hit(
        document_id=entry.document_id,
        workload=entry.workload,
        title=title,
        label="" if heading is None else heading.label,
        identifiers=identifiers,
        language=next(iter(entry.values("language")), None),
        # The title is shown anyway, so the description says more where it holds a word.
        snippet=snippet(shown, terms),
        score=round(score, 6),
    )
