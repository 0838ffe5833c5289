"""A folder as a listed source: frames of its documents, their checksums and their bytes.

Belongs here: turning the walk's entries into frames and back. Does not belong here: walking and
opening safely (`directory.py`) and reading for checksums (`checksums.py`).
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Literal

import polars as pl

from resources.sources.checksums import ChecksumOutcome, checksums
from resources.sources.directory import (
    DEFAULT_MAX_FILE_BYTES,
    NO_LONGER_THERE,
    DirectorySource,
    display_name,
)
from resources.sources.document_id import DocumentIdError
from resources.sources.listing import LISTED_ROWS, LISTED_SCHEMA, READ_SCHEMA, Listing
from resources.sources.port import EntryRefused, SourceEntry, Walk, WalkReport
from resources.sources.spelling import Spelt, spelt

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from resources.ledger.engine import Ledger

LATEST_NS = 2**63 - 1
"""The latest time, in the year 2262, that 64 bits of nanoseconds hold; file systems go further."""
FIRST_ROWS = 100
"""Rows of the first frame: whoever only asks whether there is anything waits for so many."""
READ_DOCUMENTS = 500
READ_SECONDS = 1.0
"""Checksums are handed on at the first of these, so that little is read twice after a kill."""


class FolderListing:
    """A folder of documents, as the scan sees it.

    Args:
        name: the source's name in document ids.
        root: the folder; may itself be a link.
        max_file_bytes: larger files are excluded as `too_large` without being read.
        allow_empty: accept a root without a single name.

    Raises:
        DocumentIdError: the name cannot name a source.
    """

    kind = "directory"
    holds: Literal["files", "rows"] = "files"

    def __init__(
        self,
        name: str,
        root: Path | str | bytes,
        *,
        max_file_bytes: int = DEFAULT_MAX_FILE_BYTES,
        allow_empty: bool = False,
    ) -> None:
        self._folder = DirectorySource(
            name, root, max_file_bytes=max_file_bytes, allow_empty=allow_empty
        )

    @property
    def name(self) -> str:
        """The source's name in document ids."""
        return self._folder.name

    @property
    def location(self) -> str:
        """The root folder as given; bytes that are no text are shown as escapes."""
        return self._folder.location

    def fingerprint(self) -> str | None:
        """None: a folder does not tell that nothing below it changed."""
        return None

    def listing(self) -> Listing:
        """Start a pass over everything below the root.

        Raises, with the first frame:
            SourceMissing, SourceUnreadable, SourceEmpty: as `DirectorySource.walk`.
        """
        return Listing(_frames(self._folder.walk()))

    def read(self, wanted: pl.DataFrame) -> Iterator[pl.DataFrame]:
        """The checksums of listed files, each read to its end.

        Raises:
            SourceMissing, SourceUnreadable: the root is not usable any more.
        """
        part: list[tuple[object, ...]] = []
        due = time.monotonic() + READ_SECONDS
        for entry, outcome in checksums(self._folder, _entries(wanted)):
            part.append(_read_row(entry, outcome))
            if len(part) >= READ_DOCUMENTS or time.monotonic() >= due:
                yield pl.DataFrame(part, schema=READ_SCHEMA, orient="row")
                part, due = [], time.monotonic() + READ_SECONDS
        if part:
            yield pl.DataFrame(part, schema=READ_SCHEMA, orient="row")

    def open(self, document_id: str) -> BinaryIO:
        """The bytes of one file; the caller closes it.

        Raises:
            EntryRefused: it cannot be opened, or is no longer there.
            SourceMissing, SourceUnreadable: the root is not usable.
        """
        try:
            name = spelt(document_id)
        except DocumentIdError as error:
            refusal = EntryRefused(document_id, "name_too_long", "no path can be told from its id")
            raise refusal from error
        refusal = None
        for path in self._raw_paths(document_id, name):
            shown = display_name(path)
            entry = SourceEntry(document_id, path, shown, size=0, mtime_ns=0, inode=(0, 0))
            try:
                return self._folder.open(entry)
            except EntryRefused as error:
                # What is wrong with a file that is there says more than that another is not.
                if refusal is None or refusal.detail == NO_LONGER_THERE:
                    refusal = error
        raise refusal or EntryRefused(document_id, "unreadable", NO_LONGER_THERE)

    def _raw_paths(self, document_id: str, name: Spelt) -> Iterator[bytes]:
        """Where a file may be, the likely places first; for the last ones folders are listed."""
        yield from name.likely()
        if name.may_differ():
            yield from self._folder.spelt_as(document_id, name.path)

    def texts(self, document_ids: pl.Series) -> Iterator[pl.DataFrame]:
        """Nothing: a folder holds files."""
        del document_ids
        return iter(())

    def settle(self, connection: Connection, ledger: Ledger) -> None:
        """Nothing to do: a folder is told nothing about what was taken from it."""


@dataclass
class _Columns:
    """Entries column by column: several times as fast as a frame made of rows."""

    document_id: list[str] = field(default_factory=list)
    place: list[bytes] = field(default_factory=list)
    size: list[int] = field(default_factory=list)
    mtime_ns: list[int] = field(default_factory=list)
    device: list[str] = field(default_factory=list)
    inode: list[str] = field(default_factory=list)
    excluded: list[str | None] = field(default_factory=list)
    detail: list[str] = field(default_factory=list)

    def add(self, entry: SourceEntry) -> None:
        self.document_id.append(entry.document_id)
        self.place.append(entry.relative_path)
        self.size.append(entry.size)
        self.mtime_ns.append(within_64_bits(entry.mtime_ns))
        self.device.append(str(entry.inode[0]))
        self.inode.append(str(entry.inode[1]))
        self.excluded.append(entry.excluded)
        self.detail.append(entry.detail)

    def frame(self) -> pl.DataFrame:
        rows = len(self.document_id)
        nothing = pl.Series([None] * rows, dtype=pl.String)
        told = {name: getattr(self, name, nothing) for name in LISTED_SCHEMA}
        return pl.DataFrame(told, schema=LISTED_SCHEMA)


def within_64_bits(mtime_ns: int) -> int:
    """A time as the ledger can keep it: one beyond never equals the file's, so it is read again."""
    return min(max(mtime_ns, -LATEST_NS), LATEST_NS)


def _frames(walk: Walk) -> Generator[pl.DataFrame, None, WalkReport]:
    rows = FIRST_ROWS
    while (frame := _taken(islice(walk, rows))).height:
        yield frame
        rows = LISTED_ROWS
    return walk.report()


def _taken(entries: Iterable[SourceEntry]) -> pl.DataFrame:
    columns = _Columns()
    for entry in entries:
        columns.add(entry)
    return columns.frame()


def _entries(wanted: pl.DataFrame) -> Iterator[SourceEntry]:
    rows = wanted.select("document_id", "place", "size", "mtime_ns", "device", "inode")
    for document_id, place, size, mtime_ns, device, inode in rows.iter_rows():
        name = display_name(place)
        yield SourceEntry(document_id, place, name, size, mtime_ns, (int(device), int(inode)))


def _read_row(entry: SourceEntry, outcome: ChecksumOutcome) -> tuple[object, ...]:
    row = {
        "document_id": entry.document_id,
        "size": entry.size,
        "mtime_ns": within_64_bits(entry.mtime_ns),
        "device": str(entry.inode[0]),
        "inode": str(entry.inode[1]),
        "mark": None,
        "checksum": outcome.checksum,
        "excluded": outcome.excluded,
        "detail": outcome.detail,
    }
    return tuple(row[name] for name in READ_SCHEMA)
