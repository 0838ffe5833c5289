"""The disk: what is used, what is free, and what the work that is still ahead may take.

Belongs here: counting bytes and the forecast. Does not belong here: refusing work for want of
room (`prepare/room.py`), and when the disk will be full: nobody knows how fast documents come.

The forecast is an upper bound of a plain kind: what a record has cost so far under this version,
part by part, times the records that this part is still ahead of. A part that no record has cost
yet is not known, and then the forecast is not, unless it is ahead of none.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl
from sqlalchemy import Connection

from pipeline_assets.account.standing import count_standings
from pipeline_assets.disk_room import (
    ARTIFACTS,
    LEDGER,
    MEGABYTE,
    RecordBytes,
    Volume,
    each,
    measure_records,
    volumes,
)
from pipeline_assets.known_version import KnownVersion, VersionNeverUsed, known_version
from resources.artifacts import KINDS, ArtifactStore, Kind
from resources.context import Context
from resources.ledger.engine import Ledger
from resources.ledger.versions import list_versions

_INCOMING = "incoming"
_OF_A_DOCUMENT: tuple[Kind, ...] = ("source", "text", "thumbnail")
_WITHOUT_RESULT = ("queued", "prepared", "submitted", "retry_wait")
_OPEN = (*_WITHOUT_RESULT, "collected", "accepted", "awaiting_review")
"""States of records that still grow on their way to the archive."""

_NOT_PARSED = """
SELECT COUNT(*) FROM source_entries e
JOIN documents d ON d.document_no = e.document_no
JOIN sources c ON c.source_no = d.source_no AND c.workload = ?
JOIN source_versions v ON v.source_version_no = e.source_version_no
LEFT JOIN parses p ON p.checksum = v.checksum AND p.parser_key = ?
WHERE e.to_snapshot IS NULL AND e.excluded IS NULL AND p.checksum IS NULL
"""


@dataclass(frozen=True)
class Ahead:
    """What is still to come.

    Attributes:
        unparsed: present documents whose text is not known yet.
        pending: present documents without a record.
        unanswered: records without a result.
        retries: records that get another request.
        open: records that are not published and may be.
    """

    unparsed: int
    pending: int
    unanswered: int
    retries: int
    open: int

    @property
    def records(self) -> int:
        """Documents and records on the way."""
        return self.pending + self.open


@dataclass(frozen=True)
class Place:
    """A file system that holds something.

    Attributes:
        holds: what is there: `artifacts`, `ledger`.
        free: bytes that this user may still write; None where that is not known.
        total: its size; None where that is not known.
        forecast: bytes that the work ahead may put there; None where that is not known.
        enough: the reserve stays free after that; None where that is not known.
    """

    holds: tuple[str, ...]
    free: int | None
    total: int | None
    forecast: int | None
    enough: bool | None


@dataclass(frozen=True)
class DiskFacts:
    """The disk as a version sees it.

    Attributes:
        artifacts: kind → bytes, every version's; `incoming` is work in progress.
        artifact_files: kind → files.
        artifact_bytes: all of them.
        ledger_bytes: the ledger, every version's.
        places: the file systems. The ledger of a database server is on one that is not known.
        per_document: what a document's kept bytes, text and thumbnail take on average, over all
            versions; None where none was parsed.
        per_record: what a record has cost, part by part.
        record_bytes: these together; None where one is not known.
        ahead: what is still to come.
        records_ahead: documents and records on the way.
        forecast: bytes that they may take; None where that is not known.
        unknown: parts that are ahead and not known.
        reserve: bytes that are to stay free.
        enough: False where a place would have less than the reserve, None where that is not known
            of some place and no other has too little.
    """

    artifacts: dict[str, int]
    artifact_files: dict[str, int]
    artifact_bytes: int
    ledger_bytes: int
    places: tuple[Place, ...]
    per_document: float | None
    per_record: RecordBytes
    record_bytes: int | None
    ahead: Ahead
    records_ahead: int
    forecast: int | None
    unknown: tuple[str, ...]
    reserve: int
    enough: bool | None


def disk_facts(context: Context, version_no: int) -> DiskFacts:
    """Count what is used, and foresee what a version still needs.

    Raises:
        VersionNeverUsed: there is no such version here.
    """
    ledger = context.ledger
    version = _version(context, version_no)
    sizes, files = count_artifacts(context.artifacts)
    with ledger.read() as connection:
        ledger_bytes = ledger.dialect.bytes_used(connection)
        record = measure_records(connection, ledger, context.artifacts, version_no)
        ahead = _ahead(connection, ledger, version)
        parsed = _parsed(connection, ledger)
    document = each(sum(sizes[kind] for kind in _OF_A_DOCUMENT), parsed)
    reserve = context.settings.disk_reserve_mb * MEGABYTE
    to_come, unknown = foresee(document, record, ahead)
    places = tuple(_place(volume, to_come, reserve) for volume in volumes(context))
    return DiskFacts(
        artifacts=sizes,
        artifact_files=files,
        artifact_bytes=sum(sizes.values()),
        ledger_bytes=ledger_bytes,
        places=places,
        per_document=document,
        per_record=record,
        record_bytes=_sum_of((record.request, record.result, record.frame, record.ledger)),
        ahead=ahead,
        records_ahead=ahead.records,
        forecast=_sum_of(list(to_come.values())),
        unknown=unknown,
        reserve=reserve,
        enough=all_enough(place.enough for place in places),
    )


def foresee(
    document: float | None, record: RecordBytes, ahead: Ahead
) -> tuple[dict[str, int | None], tuple[str, ...]]:
    """Bytes that are still to come, for `artifacts` and `ledger`, and the parts not known; pure."""
    parts = (
        (ARTIFACTS, "document", document, ahead.unparsed),
        (ARTIFACTS, "request", record.request, ahead.pending + ahead.retries),
        (ARTIFACTS, "result", record.result, ahead.pending + ahead.unanswered),
        (ARTIFACTS, "frame", record.frame, ahead.pending + ahead.unanswered),
        (LEDGER, "ledger", record.ledger, ahead.records),
    )
    to_come: dict[str, int | None] = {
        place: _sum_of(
            [
                0 if not count else None if size is None else size * count
                for where, _, size, count in parts
                if where == place
            ]
        )
        for place in (ARTIFACTS, LEDGER)
    }
    return to_come, tuple(name for _, name, size, count in parts if count and size is None)


def is_enough(free: int | None, forecast: int | None, reserve: int) -> bool | None:
    """Does the reserve stay free? None where that is not known; pure."""
    if free is None:
        return None
    if free < reserve:
        return False
    return None if forecast is None else free - forecast >= reserve


def all_enough(places: Iterable[bool | None]) -> bool | None:
    """One place with too little is too little; else one that is not known leaves it open."""
    found = set(places)
    if False in found:
        return False
    return None if None in found or not found else True


def count_artifacts(store: ArtifactStore) -> tuple[dict[str, int], dict[str, int]]:
    """Kind → bytes and kind → files of everything in the store."""
    sizes, files = {}, {}
    for kind in (*KINDS, _INCOMING):
        sizes[kind], files[kind] = _walk(store.root / kind)
    return sizes, files


def _walk(folder: Path) -> tuple[int, int]:
    size = files = 0
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    inner, more = _walk(Path(entry.path))
                    size, files = size + inner, files + more
                else:
                    size += _size_of(entry)
                    files += 1
    except FileNotFoundError:
        # Nothing of this kind was stored yet, or a pruning is under way.
        return size, files
    return size, files


def _size_of(entry: os.DirEntry[str]) -> int:
    """0 for a file that went while the folder was read."""
    try:
        return entry.stat(follow_symlinks=False).st_size
    except FileNotFoundError:
        return 0


def _version(context: Context, version_no: int) -> KnownVersion:
    keys = {frozen.version_no: frozen.key for frozen in list_versions(context.ledger)}
    if version_no not in keys:
        raise VersionNeverUsed(str(version_no), sorted(keys.values()))
    return known_version(context, keys[version_no])


def _ahead(connection: Connection, ledger: Ledger, version: KnownVersion) -> Ahead:
    standings = count_standings(connection, ledger, version)
    states = standings.states
    unparsed = 0
    if standings.pending:
        unparsed = ledger.dialect.fetch(
            connection,
            _NOT_PARSED,
            {"n": pl.Int64},
            (version.workload, version.parser_key),
        ).item()
    return Ahead(
        unparsed=unparsed,
        pending=standings.pending,
        unanswered=sum(states.get(state, 0) for state in _WITHOUT_RESULT),
        retries=states.get("retry_wait", 0),
        open=sum(states.get(state, 0) for state in _OPEN),
    )


def _parsed(connection: Connection, ledger: Ledger) -> int:
    return ledger.dialect.fetch(
        connection,
        "SELECT COUNT(DISTINCT checksum) FROM parses WHERE excluded IS NULL",
        {"parsed": pl.Int64},
    ).item()


def _place(volume: Volume, to_come: dict[str, int | None], reserve: int) -> Place:
    forecast = _sum_of([to_come[held] for held in volume.holds])
    return Place(
        holds=volume.holds,
        free=volume.free,
        total=volume.total,
        forecast=forecast,
        enough=is_enough(volume.free, forecast, reserve),
    )


def _sum_of(parts: Sequence[float | None]) -> int | None:
    known = [part for part in parts if part is not None]
    return round(sum(known)) if len(known) == len(parts) else None
