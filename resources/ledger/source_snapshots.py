"""What the sources held, snapshot by snapshot.

Belongs here: registering a source, what is known of its files, storing a scan as intervals, and
the documents that are present now. Does not belong here: walking a source
(`resources/sources`) and what a scan means for records (`prepare`).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import msgspec
import polars as pl
from sqlalchemy import Connection, insert, select, text, update

from resources.ledger.allocate import next_number
from resources.ledger.engine import Ledger
from resources.ledger.schema import (
    documents,
    snapshots,
    source_entries,
    source_versions,
    sources,
)

SCAN_SCHEMA = {
    "document_id": pl.String,
    "checksum": pl.String,
    "size": pl.Int64,
    "mtime_ns": pl.Int64,
    "device": pl.String,
    "inode": pl.String,
    "scanned_at_ns": pl.Int64,
    "excluded": pl.String,
    "detail": pl.String,
}
"""A scan: one row a document; `checksum` is null exactly where `excluded` is not."""

_KNOWN_SCHEMA = {
    "entry_no": pl.Int64,
    "document_no": pl.Int64,
    "source_version_no": pl.Int64,
    **SCAN_SCHEMA,
}

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
            "source: give the other folder a name of its own (--source-name), or say that the "
            "folder was moved (--source-moved)."
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


def register_source(
    ledger: Ledger, name: str, kind: str, location: str, *, moved: bool = False
) -> int:
    """The number of a source, registered now if its name is new.

    Raises:
        SourceMoved: the name belongs to another place, and `moved` is not said.
    """
    with ledger.write() as connection:
        row = connection.execute(select(sources).where(sources.c.name == name)).first()
        if row is None:
            key = connection.execute(
                insert(sources).values(
                    name=name, kind=kind, location=location, registered_at=ledger.now()
                )
            ).inserted_primary_key
            assert key is not None  # noqa: S101 - a single insert returns its key
            return int(key[0])
        if row.location != location:
            if not moved:
                raise SourceMoved(name, row.location, location)
            connection.execute(
                update(sources).where(sources.c.name == name).values(location=location)
            )
        return int(row.source_no)


def known_entries(ledger: Ledger, source_no: int) -> pl.DataFrame:
    """The open entries of a source, sorted by document id."""
    with ledger.read() as connection:
        return _open_entries(connection, ledger, source_no)


def present_documents(ledger: Ledger) -> pl.DataFrame:
    """Every document that the newest snapshots hold (`PRESENT_SCHEMA`), sorted by id."""
    with ledger.read() as connection:
        return ledger.dialect.fetch(
            connection,
            "SELECT d.document_no, d.document_id, e.source_version_no, v.checksum, e.size, "
            "e.excluded, e.detail FROM source_entries e "
            "JOIN documents d ON d.document_no = e.document_no "
            "LEFT JOIN source_versions v ON v.source_version_no = e.source_version_no "
            "WHERE e.to_snapshot IS NULL",
            PRESENT_SCHEMA,
        ).sort("document_id")


def store_scan(
    connection: Connection,
    ledger: Ledger,
    source_no: int,
    scan: pl.DataFrame,
    *,
    complete: bool,
    kept: pl.DataFrame,
) -> Snapshot:
    """Store a scan: new and changed entries open, removed and changed ones close.

    Args:
        connection: a write transaction.
        ledger: the ledger.
        source_no: which source.
        scan: what was seen (`SCAN_SCHEMA`).
        complete: was every folder listed?
        kept: `document_id` of documents that could not be seen and stay as they were.

    Returns:
        The snapshot; nothing is written when nothing changed.
    """
    known = _open_entries(connection, ledger, source_no)
    seen = scan.with_columns(seen=pl.lit(value=True))
    both = known.join(
        seen, on="document_id", how="full", coalesce=True, suffix="_now"
    ).with_columns(
        was=pl.col("document_no").is_not_null(), seen=pl.col("seen").fill_null(value=False)
    )
    same = (
        pl.col("was")
        & pl.col("seen")
        & pl.col("checksum").eq_missing(pl.col("checksum_now"))
        & pl.col("excluded").eq_missing(pl.col("excluded_now"))
    )
    hidden = pl.col("document_id").is_in(kept["document_id"].implode())
    both = both.with_columns(
        change=pl.when(same)
        .then(pl.lit("unchanged"))
        .when(~pl.col("seen") & hidden)
        .then(pl.lit("kept"))
        .when(~pl.col("seen"))
        .then(pl.lit("removed"))
        .when(pl.col("was"))
        .then(pl.lit("changed"))
        .otherwise(pl.lit("added"))
    )
    counts = dict(both["change"].value_counts().iter_rows())
    # What could not be seen is still held: without it the same archive would get another digest.
    unseen = both.filter(pl.col("change") == "kept").select("document_id", "checksum", "excluded")
    holds = pl.concat([scan.select(unseen.columns), unseen])
    digest = _digest(holds)
    previous = connection.execute(
        select(snapshots)
        .where(snapshots.c.source_no == source_no)
        .order_by(snapshots.c.snapshot_no.desc())
        .limit(1)
    ).first()
    _refresh_stat(connection, ledger, both.filter(pl.col("change") == "unchanged"))
    moved = any(counts.get(name) for name in ("added", "changed", "removed"))
    figures = {
        "documents": holds.height,
        "excluded": holds["excluded"].count(),
        "added": counts.get("added", 0),
        "changed": counts.get("changed", 0),
        "removed": counts.get("removed", 0),
    }
    if previous is not None and not moved:
        return Snapshot(
            previous.snapshot_no,
            digest,
            unchanged=counts.get("unchanged", 0),
            written=False,
            **figures,
        )
    key = connection.execute(
        insert(snapshots).values(
            source_no=source_no,
            taken_at=ledger.now(),
            digest=digest,
            complete=int(complete),
            **figures,
        )
    ).inserted_primary_key
    assert key is not None  # noqa: S101 - a single insert returns its key
    snapshot_no = int(key[0])
    _close(
        connection, ledger, both.filter(pl.col("change").is_in(["removed", "changed"])), snapshot_no
    )
    _open(
        connection,
        ledger,
        source_no,
        both.filter(pl.col("change").is_in(["added", "changed"])),
        snapshot_no,
    )
    return Snapshot(
        snapshot_no, digest, unchanged=counts.get("unchanged", 0), written=True, **figures
    )


def _open_entries(connection: Connection, ledger: Ledger, source_no: int) -> pl.DataFrame:
    return ledger.dialect.fetch(
        connection,
        "SELECT e.entry_no, e.document_no, e.source_version_no, d.document_id, v.checksum, "
        "e.size, e.mtime_ns, e.device, e.inode, e.scanned_at_ns, e.excluded, e.detail "
        "FROM source_entries e JOIN documents d ON d.document_no = e.document_no "
        "LEFT JOIN source_versions v ON v.source_version_no = e.source_version_no "
        "WHERE e.to_snapshot IS NULL AND d.source_no = ?",
        _KNOWN_SCHEMA,
        (source_no,),
    ).sort("document_id")


def _refresh_stat(connection: Connection, ledger: Ledger, unchanged: pl.DataFrame) -> None:
    """Same content, newer stat: remember it, so that the next scan need not read the file."""
    stat = ("size", "mtime_ns", "device", "inode", "scanned_at_ns")
    # An excluded entry has no bytes that were read at some time.
    told = pl.col("checksum").is_not_null()
    newer = unchanged.filter(
        pl.any_horizontal(
            pl.col(name).ne_missing(pl.col(f"{name}_now")) & (told | (name != "scanned_at_ns"))
            for name in stat
        )
    )
    if newer.is_empty():
        return
    ledger.dialect.stage(
        connection,
        "stage_stat",
        newer.select("entry_no", *(pl.col(f"{name}_now").alias(f"new_{name}") for name in stat)),
    )
    assignments = ", ".join(f"{name} = new_{name}" for name in stat)
    connection.execute(
        text(
            f"UPDATE source_entries SET {assignments} FROM stage_stat s "  # noqa: S608 - own names
            "WHERE source_entries.entry_no = s.entry_no"
        )
    )


def _close(connection: Connection, ledger: Ledger, gone: pl.DataFrame, snapshot_no: int) -> None:
    if gone.is_empty():
        return
    ledger.dialect.stage(connection, "stage_gone", gone.select("entry_no"))
    connection.execute(
        text(
            "UPDATE source_entries SET to_snapshot = :snapshot_no "
            "WHERE entry_no IN (SELECT entry_no FROM stage_gone)"
        ),
        {"snapshot_no": snapshot_no},
    )


def _open(
    connection: Connection,
    ledger: Ledger,
    source_no: int,
    fresh: pl.DataFrame,
    snapshot_no: int,
) -> None:
    if fresh.is_empty():
        return
    now = ledger.now()
    numbered = _with_document_numbers(connection, ledger, source_no, fresh, now)
    numbered = _with_version_numbers(connection, ledger, numbered, now)
    first = next_number(connection, ledger.dialect, source_entries.c.entry_no)
    rows = (
        numbered.sort("document_id")
        .with_row_index("index")
        .select(
            entry_no=pl.col("index").cast(pl.Int64) + first,
            document_no="document_no",
            from_snapshot=pl.lit(snapshot_no, dtype=pl.Int64),
            source_version_no="source_version_no",
            size="size_now",
            mtime_ns="mtime_ns_now",
            device="device_now",
            inode="inode_now",
            scanned_at_ns="scanned_at_ns_now",
            excluded="excluded_now",
            detail="detail_now",
        )
    )
    ledger.dialect.load(connection, source_entries, rows)


def _with_document_numbers(
    connection: Connection, ledger: Ledger, source_no: int, fresh: pl.DataFrame, now: str
) -> pl.DataFrame:
    """Give every row its document number, making documents that were never seen before."""
    fresh = fresh.drop("document_no")
    ledger.dialect.stage(connection, "stage_documents", fresh.select("document_id"))
    known = ledger.dialect.fetch(
        connection,
        "SELECT d.document_no, d.document_id FROM documents d "
        "JOIN stage_documents s ON s.document_id = d.document_id",
        {"document_no": pl.Int64, "document_id": pl.String},
    )
    first = next_number(connection, ledger.dialect, documents.c.document_no)
    made = (
        fresh.join(known, on="document_id", how="anti")
        .select("document_id")
        .sort("document_id")
        .with_row_index("index")
        .select(document_no=pl.col("index").cast(pl.Int64) + first, document_id="document_id")
    )
    ledger.dialect.load(
        connection,
        documents,
        made.with_columns(source_no=pl.lit(source_no, dtype=pl.Int64), first_seen_at=pl.lit(now)),
    )
    return fresh.join(pl.concat([known, made]), on="document_id", how="left")


def _with_version_numbers(
    connection: Connection, ledger: Ledger, rows: pl.DataFrame, now: str
) -> pl.DataFrame:
    """Give every row with a checksum its source version, making those that are new."""
    rows = rows.drop("source_version_no")
    wanted = rows.filter(pl.col("checksum_now").is_not_null()).select(
        "document_no", checksum="checksum_now", bytes="size_now"
    )
    ledger.dialect.stage(connection, "stage_versions", wanted.select("document_no", "checksum"))
    known = ledger.dialect.fetch(
        connection,
        "SELECT v.source_version_no, v.document_no, v.checksum FROM source_versions v "
        "JOIN stage_versions s ON s.document_no = v.document_no AND s.checksum = v.checksum",
        {"source_version_no": pl.Int64, "document_no": pl.Int64, "checksum": pl.String},
    )
    first = next_number(connection, ledger.dialect, source_versions.c.source_version_no)
    made = (
        wanted.join(known, on=["document_no", "checksum"], how="anti")
        .sort("document_no")
        .with_row_index("index")
        .with_columns(source_version_no=pl.col("index").cast(pl.Int64) + first)
        .drop("index")
    )
    ledger.dialect.load(connection, source_versions, made.with_columns(first_seen_at=pl.lit(now)))
    numbers = pl.concat([known, made.select(known.columns)])
    return rows.join(
        numbers,
        left_on=["document_no", "checksum_now"],
        right_on=["document_no", "checksum"],
        how="left",
    )


def _digest(holds: pl.DataFrame) -> str:
    """SHA-256 over (document_id, checksum, excluded) rows, sorted, as JSON lines."""
    digest = hashlib.sha256()
    encoder = msgspec.json.Encoder()
    for row in holds.sort("document_id").iter_rows():
        digest.update(encoder.encode(row))
        digest.update(b"\n")
    return digest.hexdigest()
