"""What the sources hold: the sources themselves, their newest snapshots, their documents.

Belongs here: registering a source, what is known of its documents, and the documents that are
present now. Does not belong here: listing a source (`resources/sources`), storing a scan
(`scan_storage.py`), and what a scan means for records (`prepare`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import polars as pl
from sqlalchemy import Connection, insert, select, update

from resources.ledger.engine import Ledger
from resources.ledger.frames import json_of_texts
from resources.ledger.schema import snapshots, sources
from resources.sources.changes import KNOWN_SCHEMA

PRESENT_SCHEMA = {
    "document_no": pl.Int64,
    "document_id": pl.String,
    "source_version_no": pl.Int64,
    "checksum": pl.String,
    "bytes": pl.Int64,
    "excluded": pl.String,
    "detail": pl.String,
}


class SourceMoved(Exception):
    """A source's name is taken by another place."""

    def __init__(self, name: str, known: str, given: str) -> None:
        super().__init__(
            f"source {name!r} is {known}, and {given} was given. Documents are named after their "
            "source: give the other place a name of its own (--source-name, or another key in the "
            "sources file), or say that this one was moved (--source-moved)."
        )


class SourceOfOtherWorkload(Exception):
    """A source's documents are processed by another workload than was given."""

    def __init__(self, name: str, known: str, given: str) -> None:
        super().__init__(
            f"source {name!r} belongs to workload {known!r}, and {given!r} was given. A source "
            "belongs to one workload: declare the place again under a name of its own "
            "(--source-name, or another key in the sources file)."
        )


@dataclass(frozen=True)
class Snapshot:
    """A scan as stored: counts against the scan before it."""

    snapshot_no: int
    digest: str
    documents: int
    excluded: int
    added: int
    changed: int
    removed: int
    unchanged: int
    written: bool

    def again(self, unchanged: int) -> Snapshot:
        """The same snapshot, found to hold still by a scan that saw so many known documents."""
        return replace(self, added=0, changed=0, removed=0, unchanged=unchanged, written=False)


@dataclass(frozen=True)
class KnownSource:
    """A source that is registered.

    Attributes:
        source_no: its number.
        location: the place.
        fingerprint: of the place at the end of its last scan; None where it told nothing.
        newest: its newest snapshot, None before the first.
    """

    source_no: int
    location: str
    fingerprint: str | None
    newest: Snapshot | None


def register_source(
    ledger: Ledger, name: str, kind: str, location: str, *, workload: str, moved: bool = False
) -> int:
    """The number of a source, registered now if its name is new.

    Raises:
        SourceMoved: the name belongs to another place, and `moved` is not said.
        SourceOfOtherWorkload: the name belongs to another workload.
    """
    with ledger.write() as connection:
        row = connection.execute(select(sources).where(sources.c.name == name)).first()
        if row is None:
            key = connection.execute(
                insert(sources).values(
                    name=name,
                    kind=kind,
                    location=location,
                    workload=workload,
                    registered_at=ledger.now(),
                )
            ).inserted_primary_key
            assert key is not None  # noqa: S101 - a single insert returns its key
            return int(key[0])
        if row.workload != workload:
            raise SourceOfOtherWorkload(name, row.workload, workload)
        if row.location != location:
            if not moved:
                raise SourceMoved(name, row.location, location)
            connection.execute(
                update(sources)
                .where(sources.c.name == name)
                .values(location=location, kind=kind, fingerprint=None)
            )
        return int(row.source_no)


def known_source(ledger: Ledger, name: str) -> KnownSource | None:
    """A source by its name; None if it is not registered."""
    with ledger.read() as connection:
        row = connection.execute(select(sources).where(sources.c.name == name)).first()
        if row is None:
            return None
        newest = newest_snapshot(connection, int(row.source_no))
    return KnownSource(int(row.source_no), row.location, row.fingerprint, newest)


def newest_snapshot(connection: Connection, source_no: int) -> Snapshot | None:
    """The newest snapshot of a source; `unchanged` is not kept and is 0."""
    row = connection.execute(
        select(snapshots)
        .where(snapshots.c.source_no == source_no)
        .order_by(snapshots.c.snapshot_no.desc())
        .limit(1)
    ).first()
    if row is None:
        return None
    return Snapshot(
        row.snapshot_no,
        row.digest,
        documents=row.documents,
        excluded=row.excluded,
        added=row.added,
        changed=row.changed,
        removed=row.removed,
        unchanged=0,
        written=True,
    )


def has_source(ledger: Ledger, workload: str) -> bool:
    """Is any source of the workload registered?"""
    with ledger.read() as connection:
        one = select(sources.c.source_no).where(sources.c.workload == workload).limit(1)
        return connection.execute(one).first() is not None


def source_names(ledger: Ledger) -> dict[int, str]:
    """Number to name of every registered source."""
    with ledger.read() as connection:
        rows = connection.execute(select(sources.c.source_no, sources.c.name))
        return {row.source_no: row.name for row in rows}


def newest_digests(ledger: Ledger) -> list[tuple[str, str]]:
    """Name and newest snapshot's digest of every source that was ever scanned, by name."""
    with ledger.read() as connection:
        rows = connection.execute(
            select(sources.c.name, snapshots.c.snapshot_no, snapshots.c.digest)
            .join(snapshots, snapshots.c.source_no == sources.c.source_no)
            .order_by(snapshots.c.snapshot_no)
        )
        newest = {row.name: row.digest for row in rows}
    return sorted(newest.items())


def known_entries(ledger: Ledger, source_no: int, document_ids: pl.Series) -> pl.DataFrame:
    """What the newest snapshot holds of these documents of a source (`KNOWN_SCHEMA`)."""
    with ledger.read() as connection:
        return ledger.dialect.fetch(
            connection,
            "SELECT d.document_id, e.entry_no, e.size, e.mtime_ns, e.device, e.inode, e.mark, "  # noqa: S608 - own names
            f"v.checksum, e.scanned_at_ns, e.excluded FROM ({ledger.dialect.texts_of_json}) s "
            "JOIN documents d ON d.document_id = s.value "
            "JOIN source_entries e ON e.document_no = d.document_no AND e.to_snapshot IS NULL "
            "LEFT JOIN source_versions v ON v.source_version_no = e.source_version_no "
            "WHERE d.source_no = ?",
            KNOWN_SCHEMA,
            (json_of_texts(document_ids), source_no),
        )


def open_entries(ledger: Ledger, source_no: int) -> pl.Series:
    """The numbers of all entries that the newest snapshot of a source holds, in order."""
    with ledger.read() as connection:
        return ledger.dialect.fetch(
            connection,
            "SELECT e.entry_no FROM source_entries e "
            "JOIN documents d ON d.document_no = e.document_no "
            "WHERE e.to_snapshot IS NULL AND d.source_no = ?",
            {"entry_no": pl.Int64},
            (source_no,),
        )["entry_no"].sort()


def documents_of_entries(ledger: Ledger, numbers: pl.Series) -> pl.DataFrame:
    """The document ids of entries: entry_no, document_id; sorted by entry."""
    with ledger.read() as connection:
        return ledger.dialect.fetch(
            connection,
            f"SELECT e.entry_no, d.document_id FROM ({ledger.dialect.texts_of_json}) s "  # noqa: S608 - own names
            "JOIN source_entries e ON e.entry_no = CAST(s.value AS BIGINT) "
            "JOIN documents d ON d.document_no = e.document_no",
            {"entry_no": pl.Int64, "document_id": pl.String},
            (json_of_texts(numbers),),
        ).sort("entry_no")


def present_documents(ledger: Ledger, workload: str) -> pl.DataFrame:
    """Every document that a workload's sources hold now (`PRESENT_SCHEMA`), sorted by id.

    All of them are in memory: for an archive of any size, `stream_present`.
    """
    empty = pl.DataFrame(schema=PRESENT_SCHEMA)
    return pl.concat([empty, *stream_present(ledger, workload)]).sort("document_id")


def stream_present(ledger: Ledger, workload: str) -> Iterator[pl.DataFrame]:
    """What `present_documents` gives, in no order, some tens of thousands of rows at a time."""
    with ledger.read() as connection:
        yield from ledger.dialect.stream(
            connection,
            "SELECT d.document_no, d.document_id, e.source_version_no, v.checksum, e.size, "
            f"e.excluded, e.detail {_PRESENT}",
            PRESENT_SCHEMA,
            (workload,),
        )


def count_present(ledger: Ledger, workload: str) -> int:
    """How many documents a workload's sources hold now."""
    with ledger.read() as connection:
        return ledger.dialect.fetch(
            connection,
            f"SELECT COUNT(*) {_PRESENT}",
            {"documents": pl.Int64},
            (workload,),
        ).item()


_PRESENT = (
    "FROM source_entries e "
    "JOIN documents d ON d.document_no = e.document_no "
    "JOIN sources c ON c.source_no = d.source_no AND c.workload = ? "
    "LEFT JOIN source_versions v ON v.source_version_no = e.source_version_no "
    "WHERE e.to_snapshot IS NULL"
)
