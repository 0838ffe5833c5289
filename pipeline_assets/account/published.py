"""One published document, and the text of one of its pages, for a person to look at.

Belongs here: finding them. Page text goes through `resources/access.py`, which records who looked
and why.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from pipeline_assets.account.documents import find_document
from pipeline_assets.account.explain import explain
from pipeline_assets.account.export import entry_of
from pipeline_assets.account.known_version import known_version
from resources.access import read_page_texts
from resources.context import Context


class NotPublished(LookupError):
    """The document has no visible entry in the archive."""

    def __init__(self, document_id: str) -> None:
        super().__init__(
            f"{document_id} is not published. `tallybook explain {document_id!r}` says why."
        )


class NoText(LookupError):
    """The document's present bytes gave no text."""

    def __init__(self, document_id: str) -> None:
        super().__init__(
            f"there is no text of {document_id}: it was excluded or not read yet. "
            f"`tallybook explain {document_id!r}` says why."
        )


class NoSuchPage(LookupError):
    """The document has no page of this number."""

    def __init__(self, document_id: str, page: int, pages: list[int]) -> None:
        known = f"{pages[0]} to {pages[-1]}" if pages else "none"
        super().__init__(f"{document_id} has no page {page}; pages that were read: {known}.")


def published_entry(context: Context, document: str, key: str | None = None) -> dict[str, Any]:
    """The visible archive entry of a document, in the shape of an exported row.

    Args:
        context: the open resources.
        document: its id, or an ending that no other id has.
        key: only an entry of this processing version.

    Raises:
        UnknownDocument, AmbiguousDocument: no document, or several.
        MalformedVersionKey, VersionNeverUsed: there is no such version here.
        NotPublished: it has no visible entry.
    """
    found = find_document(context, document)
    number = None if key is None else known_version(context, key).version_no
    with context.ledger.read() as connection:
        head = context.ledger.dialect.fetch(
            connection,
            "SELECT h.entry_no, e.version_no FROM archive_heads h "
            "JOIN archive_entries e ON e.entry_no = h.entry_no WHERE h.document_no = ?",
            {"entry_no": pl.Int64, "version_no": pl.Int64},
            (found.document_no,),
        )
        if head.is_empty() or (number is not None and head["version_no"][0] != number):
            raise NotPublished(found.document_id)
        return entry_of(connection, context.ledger, head["entry_no"][0])


def page_text(
    context: Context, document: str, page: int, key: str, *, who: str, why: str
) -> dict[str, Any]:
    """One page of a document's present bytes: document_id, page, origin, text.

    Raises:
        UnknownDocument, AmbiguousDocument: no document, or several.
        MalformedVersionKey, VersionNeverUsed: there is no such version here.
        NoText: its present bytes gave no text under this version.
        NoSuchPage: it has no such page.
        ArtifactMissing: the text is not in the store.
    """
    story = explain(context, document, key)
    parse = story.parse
    if not story.present or parse is None or parse["text_pack"] is None:
        raise NoText(story.document_id)
    pages = read_page_texts(context, story.source["checksum"], parse["text_pack"], who, why)
    wanted = pages.filter(pl.col("page") == page)
    if wanted.is_empty():
        raise NoSuchPage(story.document_id, page, pages["page"].to_list())
    return {"document_id": story.document_id, **wanted.row(0, named=True)}
