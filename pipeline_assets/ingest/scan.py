"""Scanning the folder source into the ledger: one snapshot, every name accounted for.

Belongs here: walking, deciding which checksums are needed, storing the snapshot. Does not
belong here: safe opening (`resources/sources`), parsing, and anything about versions.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import polars as pl

from resources.context import Context
from resources.ledger.leases import Heartbeat, fenced, held
from resources.ledger.source_snapshots import (
    SCAN_SCHEMA,
    Snapshot,
    known_entries,
    register_source,
    store_scan,
)
from resources.sources.changes import unlisted_prefixes
from resources.sources.checksums import ChecksumOutcome, KnownFile, checksums, needs_checksum
from resources.sources.directory import DirectorySource
from resources.sources.port import Source, SourceEntry

LATEST_NS = 2**63 - 1
"""The latest time, in the year 2262, that 64 bits of nanoseconds hold; file systems go further."""


@dataclass(frozen=True)
class ScanReport:
    """What a scan found.

    Attributes:
        source: the source's name.
        snapshot: counts against the scan before.
        read: documents whose bytes were read for a checksum.
        bytes_read: how many bytes that was.
        complete: every folder was listed; if not, unseen documents were kept as they were.
    """

    source: str
    snapshot: Snapshot
    read: int
    bytes_read: int
    complete: bool


def scan_folder(context: Context, *, moved: bool = False) -> ScanReport:
    """Scan the settings' folder.

    Raises:
        SourceError: the folder is missing, empty or unreadable; nothing was stored.
        SourceMoved: its name belongs to another folder.
        LeaseHeld: another worker is scanning it.
    """
    settings = context.settings
    source = DirectorySource(settings.source_name, settings.source_folder)
    return scan_source(context, source, moved=moved)


def scan_source(context: Context, source: Source, *, moved: bool = False) -> ScanReport:
    """Scan one source into a snapshot.

    Raises:
        SourceError: the source cannot be listed; nothing was stored.
        SourceMoved: its name belongs to another place.
        LeaseHeld: another worker is scanning it.
    """
    # A place that cannot be listed must leave no trace in the ledger, not even its name.
    next(source.walk(), None)
    source_no = register_source(
        context.ledger, source.name, source.kind, source.location, moved=moved
    )
    with held(context.ledger, f"source:{source.name}", context.worker) as lease:
        # Under the lease, so that a slow walk cannot overwrite what a later one saw.
        scanned_at_ns = time.time_ns()
        walk = source.walk()
        entries = list(walk)
        report = walk.report()
        known = known_entries(context.ledger, source_no)
        wanted, reused = _decide(entries, known)
        outcomes, bytes_read = _read(context, source, wanted, Heartbeat(context.ledger, lease))
        scan = _frame(entries, reused, outcomes, scanned_at_ns)
        kept = known.filter(_below(unlisted_prefixes(source.name, report.unlisted)))
        with fenced(context.ledger, lease) as connection:
            snapshot = store_scan(
                connection,
                context.ledger,
                source_no,
                scan,
                complete=report.complete,
                kept=kept.select("document_id"),
            )
    return ScanReport(source.name, snapshot, len(wanted), bytes_read, report.complete)


def _decide(
    entries: list[SourceEntry], known: pl.DataFrame
) -> tuple[list[SourceEntry], dict[str, KnownFile]]:
    """Which entries must be read, and what is known of the others."""
    files = {
        row["document_id"]: KnownFile(
            size=row["size"],
            mtime_ns=row["mtime_ns"],
            inode=(int(row["device"]), int(row["inode"])),
            checksum=row["checksum"],
            scanned_at_ns=row["scanned_at_ns"],
        )
        for row in known.filter(pl.col("checksum").is_not_null()).iter_rows(named=True)
    }
    wanted, reused = [], {}
    for entry in entries:
        file = files.get(entry.document_id)
        if needs_checksum(entry, file):
            wanted.append(entry)
        elif entry.excluded is None and file is not None:
            reused[entry.document_id] = file
    return wanted, reused


def _read(
    context: Context, source: Source, wanted: list[SourceEntry], heart: Heartbeat
) -> tuple[dict[str, tuple[SourceEntry, ChecksumOutcome]], int]:
    """Outcomes by document, each with the entry as it was when its bytes were read."""
    outcomes: dict[str, tuple[SourceEntry, ChecksumOutcome]] = {}
    count = 0

    def add(size: int) -> None:
        nonlocal count
        count += size

    context.progress.start("checksums", len(wanted))
    for entry, outcome in checksums(source, wanted, on_bytes=add):
        outcomes[entry.document_id] = (entry, outcome)
        context.progress.advance()
        heart.beat()
    context.progress.finish()
    return outcomes, count


def _frame(
    entries: list[SourceEntry],
    reused: dict[str, KnownFile],
    outcomes: dict[str, tuple[SourceEntry, ChecksumOutcome]],
    scanned_at_ns: int,
) -> pl.DataFrame:
    rows = []
    for listed in entries:
        entry, outcome = outcomes.get(listed.document_id, (listed, None))
        file = reused.get(entry.document_id)
        if outcome is not None:
            checksum, excluded, detail = outcome.checksum, outcome.excluded, outcome.detail
        elif file is not None:
            checksum, excluded, detail = file.checksum, None, ""
        else:
            checksum, excluded, detail = None, entry.excluded, entry.detail
        # A reused checksum keeps the time of the scan that read the bytes.
        at = scanned_at_ns if file is None else file.scanned_at_ns
        rows.append(
            (
                entry.document_id,
                checksum,
                entry.size,
                # A time beyond the column's never equals the file's, so the file is read again.
                min(max(entry.mtime_ns, -LATEST_NS), LATEST_NS),
                str(entry.inode[0]),
                str(entry.inode[1]),
                at,
                excluded,
                detail,
            )
        )
    return pl.DataFrame(rows, schema=SCAN_SCHEMA, orient="row")


def _below(prefixes: tuple[str, ...]) -> pl.Expr:
    if not prefixes:
        return pl.lit(value=False)
    return pl.any_horizontal(pl.col("document_id").str.starts_with(prefix) for prefix in prefixes)
