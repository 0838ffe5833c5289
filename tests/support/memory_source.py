"""A source in memory, whose every listing and reading can be watched and broken."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from typing import BinaryIO, Literal

import polars as pl
from sqlalchemy import Connection

from resources.ledger.engine import Ledger
from resources.sources.declared import FolderSource
from resources.sources.document_id import document_id, parse_document_id
from resources.sources.listing import LISTED_SCHEMA, READ_SCHEMA, Listing
from resources.sources.port import EntryRefused, SourceError, WalkReport

WORKLOAD = "equipment_manuals"


@dataclass
class Shelf:
    """Path → bytes, or the reason why it is excluded; some folders unseen.

    Attributes:
        files: what it holds.
        unlisted: folders that could not be listed.
        broken: paths that cannot be opened.
        times: modification times in nanoseconds; a file's length where none is given.
        marks: marks of files; the source has none where this is empty.
        told: paths that are listed with their checksum.
        rows: rows of a frame at most.
        print: what `fingerprint` says.
        partial, gone: as in `WalkReport`.
        failure: raised instead of the first frame.
        opened: every path that was read, in order.
        listings: how many passes were begun.
        settled: how often a snapshot was stored.
        before_read: called with each path before it is read.
    """

    files: dict[str, bytes | str]
    unlisted: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()
    times: dict[str, int] = field(default_factory=dict)
    marks: dict[str, str] = field(default_factory=dict)
    told: tuple[str, ...] = ()
    rows: int = 25_000
    print: str | None = None
    partial: bool = False
    gone: tuple[str, ...] = ()
    failure: SourceError | None = None
    opened: list[str] = field(default_factory=list)
    listings: int = 0
    settled: int = 0
    before_read: Callable[[str], None] = lambda _path: None
    name: str = "shelf"
    kind: str = "memory"
    location: str = "memory"
    holds: Literal["files", "rows"] = "files"

    @property
    def declared(self) -> FolderSource:
        """A declaration that goes with it."""
        return declared(self.name)

    def fingerprint(self) -> str | None:
        return self.print

    def listing(self) -> Listing:
        self.listings += 1
        return Listing(self._frames())

    def _frames(self) -> Generator[pl.DataFrame, None, WalkReport]:
        if self.failure is not None:
            raise self.failure
        rows = [self._row(path, content) for path, content in sorted(self.files.items())]
        for start in range(0, len(rows), self.rows):
            part = rows[start : start + self.rows]
            yield pl.DataFrame(part, schema=LISTED_SCHEMA, orient="row")
        unlisted = tuple(path.encode() for path in self.unlisted)
        gone = tuple(document_id(self.name, path.encode()) for path in self.gone)
        return WalkReport(len(rows), unlisted, partial=self.partial, gone=gone)

    def _row(self, path: str, content: bytes | str) -> dict[str, object]:
        told = path in self.told and isinstance(content, bytes)
        return {
            "document_id": document_id(self.name, path.encode()),
            "place": path.encode(),
            "size": len(content),
            "mtime_ns": self.times.get(path, len(content)),
            "device": str(2**63),
            "inode": str(2**64 - 1),
            "mark": self.marks.get(path),
            "checksum": checksum(content) if told else None,
            "excluded": content if isinstance(content, str) else None,
            "detail": "",
        }

    def read(self, wanted: pl.DataFrame) -> Iterator[pl.DataFrame]:
        assert wanted.schema == LISTED_SCHEMA
        for row in wanted.iter_rows(named=True):
            path = row["place"].decode()
            self.before_read(path)
            refused = None
            content: bytes | str = b""
            try:
                with self.open(row["document_id"]) as stream:
                    content = stream.read()
            except EntryRefused as error:
                refused = error
            found = {
                **row,
                "checksum": None if refused else checksum(content),
                "excluded": refused.reason if refused else None,
                "detail": refused.detail if refused else "",
            }
            yield pl.DataFrame([{name: found[name] for name in READ_SCHEMA}], schema=READ_SCHEMA)

    def open(self, document_id: str) -> BinaryIO:
        path = parse_document_id(document_id)[1].decode()
        self.opened.append(path)
        if path in self.broken:
            raise EntryRefused(document_id, "unreadable", "told by the test")
        content = self.files[path]
        assert isinstance(content, bytes)
        return io.BytesIO(content)

    def texts(self, document_ids: pl.Series) -> Iterator[pl.DataFrame]:
        return iter(())

    def settle(self, connection: Connection, ledger: Ledger) -> None:
        self.settled += 1


def checksum(content: bytes | str) -> str:
    """The checksum of a file's bytes."""
    assert isinstance(content, bytes)
    return hashlib.sha256(content).hexdigest()


def declared(name: str, workload: str = WORKLOAD) -> FolderSource:
    """A declaration of a source of that name."""
    return FolderSource.model_validate(
        {"name": name, "kind": "folder", "path": "nowhere", "workload": workload}
    )
