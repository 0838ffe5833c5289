"""What a source lists: frames of documents, a bounded number at a time.

Belongs here: the columns, the iterator with its account, and the port of every declared source.
Does not belong here: any kind of source, and what changed since an earlier listing.

A listing is cheap: it reads no document, or (where a source has nothing cheaper) reads each once
and says its checksum with it. After an interruption a listing starts anew, because half of an old
listing is none; what was read is kept by the scan and not read again.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, BinaryIO, Literal, Protocol

import polars as pl

from resources.sources.port import Pass

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from resources.ledger.engine import Ledger

LISTED_ROWS = 25_000
"""Rows of a frame at most: memory is bounded by it, whatever the source holds."""

LISTED_SCHEMA = {
    "document_id": pl.String,
    "place": pl.Binary,
    "size": pl.Int64,
    "mtime_ns": pl.Int64,
    "device": pl.String,
    "inode": pl.String,
    "mark": pl.String,
    "checksum": pl.String,
    "excluded": pl.String,
    "detail": pl.String,
}
"""A listed document. `place` is what the source itself opens it by (raw path, object key, row key).
`mark` is the source's own name of this version (an etag, a time of change), null where it has none;
`checksum` is SHA-256, null where it was not read; `excluded` is a key of `EXCLUSION_REASONS`, null
for a document to read. `size` 0, `mtime_ns` 0 and device and inode "0" where there are none."""

READ_SCHEMA = {name: kind for name, kind in LISTED_SCHEMA.items() if name != "place"}
"""A document that was read: as listed, with the size, time and mark of the very bytes whose
checksum this is; `checksum` is null exactly where `excluded` is not."""

TEXT_SCHEMA = {"document_id": pl.String, "checksum": pl.String, "text": pl.String}
"""The text of a row; `checksum` is the SHA-256 of its UTF-8 bytes."""


class Listing(Pass[pl.DataFrame]):
    """A pass that gives frames (`LISTED_SCHEMA`)."""


class ListedSource(Protocol):
    """A place that documents come from, as the scan and the parser see it."""

    @property
    def name(self) -> str:
        """The source's name in document ids."""
        ...

    @property
    def kind(self) -> str:
        """`directory`, `table`, `sql`, `bucket` or `queue`, as the ledger keeps it."""
        ...

    @property
    def location(self) -> str:
        """The place, for people to read; free of credentials."""
        ...

    @property
    def holds(self) -> Literal["files", "rows"]:
        """`files` are opened one by one (`open`); `rows` are read many at a time (`texts`)."""
        ...

    def fingerprint(self) -> str | None:
        """What the place as a whole is like now; the same text again means that nothing changed.

        None where that cannot be told without listing it.

        Raises:
            SourceError: the place cannot be looked at.
        """
        ...

    def listing(self) -> Listing:
        """Start a pass over all documents, in the same order each time.

        Raises, at once or with the first frame:
            SourceMissing, SourceUnreadable, SourceEmpty: never taken as "no documents".
        """
        ...

    def read(self, wanted: pl.DataFrame) -> Iterator[pl.DataFrame]:
        """The checksums of listed documents (`READ_SCHEMA`), a few at a time.

        Args:
            wanted: rows of `LISTED_SCHEMA` without checksum and exclusion.

        Raises:
            SourceError: the source as a whole is not usable any more.
        """
        ...

    def open(self, document_id: str) -> BinaryIO:
        """The bytes of one document of a source that holds files; the caller closes it.

        Raises:
            EntryRefused: the document cannot be opened or is no longer there.
        """
        ...

    def texts(self, document_ids: pl.Series) -> Iterator[pl.DataFrame]:
        """The texts (`TEXT_SCHEMA`) of documents of a source that holds rows, many at a time.

        Documents that are no longer there, or are excluded now, are left out.

        Raises:
            SourceError: the source as a whole is not usable any more.
        """
        ...

    def settle(self, connection: Connection, ledger: Ledger) -> None:
        """Note that what was listed is stored; inside the transaction that stores the snapshot.

        Nothing to do but for sources that must be told, such as a queue.
        """
        ...
