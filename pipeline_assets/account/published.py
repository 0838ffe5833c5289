"""One published document, now or as it was, and the text of one of its pages, for a person.

Belongs here: finding them. Page text goes through `resources/access.py`, which records who looked
and why.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import polars as pl
from sqlalchemy import Connection

from pipeline_assets.account.documents import find_document
from pipeline_assets.account.explain import explain
from pipeline_assets.account.export import entry_of
from pipeline_assets.known_version import known_version
from resources.access import read_page_texts
from resources.clock import to_text
from resources.context import Context
from resources.ledger.erasures import erasure_of

_SHOWN_SCHEMA = {"entry_no": pl.Int64, "version_no": pl.Int64, "valid_to": pl.String}


class NotPublished(LookupError):
    """The document has no visible entry in the archive, or none of the version asked for."""

    def __init__(self, document_id: str, key: str | None = None) -> None:
        super().__init__(
            f"{document_id} is not published{_under(key)}. `tallybook explain "
            f"{document_id!r}` says why."
        )


class NotPublishedThen(LookupError):
    """The document had no visible entry at a time."""

    def __init__(self, document_id: str, at: datetime, key: str | None = None) -> None:
        super().__init__(
            f"{document_id} was not published at {to_text(at)}{_under(key)}. `tallybook explain "
            f"{document_id!r}` shows when it was."
        )


class DocumentErased(LookupError):
    """The document was erased: nothing of what it ever showed is kept."""

    def __init__(self, document_id: str, at: str) -> None:
        super().__init__(
            f"{document_id} was erased at {at}: nothing of what it showed is kept. `tallybook "
            f"explain {document_id!r}` says why."
        )


def _under(key: str | None) -> str:
    """It may be published all the same, under another version."""
    return "" if key is None else f" with the values of {key}"


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


def published_entry(
    context: Context, document: str, key: str | None = None, as_of: datetime | None = None
) -> dict[str, Any]:
    """The archive entry that a document shows, or showed, in the shape of an exported row.

    Entries are visible from their publication up to, and without, the moment at which they ended.

    Args:
        context: the open resources.
        document: its id, or an ending that no other id has.
        key: only an entry of this processing version.
        as_of: what was visible at this (aware) time; what is visible now by default.

    Returns:
        An exported row; with `as_of` also `visible_until`, null while it is the visible one.

    Raises:
        UnknownDocument, AmbiguousDocument: no document, or several.
        MalformedVersionKey, VersionNeverUsed: there is no such version here.
        NotPublished: it has no visible entry.
        NotPublishedThen: it had none at that time.
        DocumentErased: what it showed was erased.
    """
    found = find_document(context, document)
    number = None if key is None else known_version(context, key).version_no
    with context.ledger.read() as connection:
        erased = erasure_of(connection, found.document_no)
        if erased is not None:
            raise DocumentErased(found.document_id, erased.begun_at)
        shown = (
            _visible(connection, context, found.document_no)
            if as_of is None
            else _visible_at(connection, context, found.document_no, to_text(as_of))
        )
        if number is not None:
            shown = shown.filter(pl.col("version_no") == number)
        if shown.is_empty():
            if as_of is None:
                raise NotPublished(found.document_id, key)
            raise NotPublishedThen(found.document_id, as_of, key)
        entry = entry_of(connection, context.ledger, shown["entry_no"][0])
    return entry if as_of is None else entry | {"visible_until": shown["valid_to"][0]}


def _visible(connection: Connection, context: Context, document_no: int) -> pl.DataFrame:
    return context.ledger.dialect.fetch(
        connection,
        "SELECT h.entry_no, e.version_no, e.valid_to FROM archive_heads h "
        "JOIN archive_entries e ON e.entry_no = h.entry_no WHERE h.document_no = ?",
        _SHOWN_SCHEMA,
        (document_no,),
    )


def _visible_at(
    connection: Connection, context: Context, document_no: int, at: str
) -> pl.DataFrame:
    return context.ledger.dialect.fetch(
        connection,
        "SELECT entry_no, version_no, valid_to FROM archive_entries WHERE document_no = ? "
        "AND valid_from <= ? AND (valid_to IS NULL OR valid_to > ?)",
        _SHOWN_SCHEMA,
        (document_no, at, at),
    )


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
