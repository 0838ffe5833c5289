"""What a record costs on the disk, and which disks there are.

Belongs here: measuring both, for whoever tells of them (`account/disk.py`) and whoever decides
on them (`prepare/room.py`). Does not belong here: either of these.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl
from sqlalchemy import Connection, make_url

from resources.artifacts import ArtifactStore
from resources.context import Context
from resources.ledger.engine import Ledger

MEGABYTE = 1_000_000
ARTIFACTS, LEDGER = "artifacts", "ledger"

LEDGER_BYTES = 2875.5
"""Of the ledger for each record, where it holds too few to tell: measured on 50,000 documents of
the benchmark's synthetic archive (`tests/benchmarks/synthetic.py`) on SQLite, from the scan to
the archive."""
ENOUGH_TO_TELL = 1_000
"""Below so many documents, empty tables and the write-ahead log are most of a ledger."""

_BATCHES = """
SELECT b.expected_records, b.request_bytes, b.collected_artifact, b.staging_artifact,
    b.places_artifact, COALESCE(f.bytes, 0)
FROM batches b LEFT JOIN (
    SELECT batch_no, SUM(bytes) AS bytes FROM result_files GROUP BY batch_no
) f ON f.batch_no = b.batch_no
WHERE b.version_no = ? AND b.state <> 'cancelled'
"""
_BATCH_SCHEMA = {
    "records": pl.Int64,
    "request_bytes": pl.Int64,
    "collected": pl.String,
    "staging": pl.String,
    "places": pl.String,
    "result_bytes": pl.Int64,
}


@dataclass(frozen=True)
class RecordBytes:
    """Bytes that a record has cost so far, on average; None where none has yet.

    Attributes:
        request: its line in a version's request files.
        result: its line in that version's files of results.
        frame: its rows in that version's frames of decoded and judged answers.
        ledger: its share of the ledger, over all versions; `LEDGER_BYTES` where that holds fewer
            than `ENOUGH_TO_TELL` documents and records.
    """

    request: float | None
    result: float | None
    frame: float | None
    ledger: float


@dataclass(frozen=True)
class Volume:
    """A file system that holds something.

    Attributes:
        holds: `artifacts`, `ledger`, or both.
        free: bytes that this user may still write; None for a database server's, which is not
            known here.
        total: its size; None likewise.
    """

    holds: tuple[str, ...]
    free: int | None
    total: int | None


def measure_records(
    connection: Connection, ledger: Ledger, store: ArtifactStore, version_no: int
) -> RecordBytes:
    """What the records of a version have cost so far."""
    batches = ledger.dialect.fetch(connection, _BATCHES, _BATCH_SCHEMA, (version_no,))
    answered = batches.filter(pl.col("result_bytes") > 0)
    return RecordBytes(
        request=each(int(batches["request_bytes"].sum()), int(batches["records"].sum())),
        result=each(int(answered["result_bytes"].sum()), int(answered["records"].sum())),
        frame=_each_frame(batches, store),
        ledger=_each_in_ledger(connection, ledger),
    )


def volumes(context: Context) -> tuple[Volume, ...]:
    """The file systems of artifacts and ledger: one where they share it."""
    root = context.artifacts.root
    file = _ledger_file(context)
    if file is not None and root.stat().st_dev == file.parent.stat().st_dev:
        return (_volume((ARTIFACTS, LEDGER), root),)
    return (
        _volume((ARTIFACTS,), root),
        _volume((LEDGER,), None if file is None else file.parent),
    )


def each(total: int, count: int) -> float | None:
    """The mean to a tenth; None of nothing."""
    return round(total / count, 1) if count else None


def _each_in_ledger(connection: Connection, ledger: Ledger) -> float:
    # A document that has no record yet takes room too: it would be blamed on the records.
    documents, records = ledger.dialect.fetch(
        connection,
        "SELECT (SELECT COUNT(*) FROM documents), (SELECT COUNT(*) FROM records)",
        {"documents": pl.Int64, "records": pl.Int64},
    ).row(0)
    things = max(documents, records)
    if things < ENOUGH_TO_TELL:
        return LEDGER_BYTES
    return each(ledger.dialect.bytes_used(connection), things) or LEDGER_BYTES


def _volume(holds: tuple[str, ...], folder: Path | None) -> Volume:
    if folder is None:
        return Volume(holds, None, None)
    usage = shutil.disk_usage(folder)
    return Volume(holds, usage.free, usage.total)


def _ledger_file(context: Context) -> Path | None:
    """The file of a SQLite ledger; None for a database server, whose disk is its own."""
    url = make_url(context.settings.ledger_place)
    if url.get_backend_name() != "sqlite" or not url.database:
        return None
    return Path(url.database).absolute()


def _each_frame(batches: pl.DataFrame, store: ArtifactStore) -> float | None:
    """Of batches that were judged; a frame that was pruned says nothing any more."""
    total = records = 0
    judged = batches.drop_nulls(["collected", "staging"])
    for count, *digests in judged.select("records", "collected", "staging", "places").iter_rows():
        sizes = _sizes(store, [digest for digest in digests if digest is not None])
        if sizes is not None:
            total, records = total + sum(sizes), records + count
    return each(total, records)


def _sizes(store: ArtifactStore, digests: Sequence[str]) -> list[int] | None:
    try:
        return [store.path("frame", digest).stat().st_size for digest in digests]
    except FileNotFoundError:
        return None
