"""A look at a source: would a scan find anything to do? Nothing is written.

Belongs here: counting what a listing tells. Does not belong here: what automation makes of it
(`pipeline_assets/automation`), and scanning (`scan.py`).
"""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass, field

import msgspec
import polars as pl

from pipeline_assets.ingest.scan import NANOSECONDS, fingerprint_of, is_settling, removed_entries
from resources.context import Context
from resources.ledger.scan_reads import SCAN_SCHEMA
from resources.ledger.source_snapshots import KnownSource, known_entries, known_source
from resources.sources.changes import KNOWN_SCHEMA, decide, refused_before, same_outcome
from resources.sources.declared import DeclaredSource
from resources.sources.listing import ListedSource

_TELLING = ("document_id", "size", "mtime_ns", "device", "inode", "mark", "checksum", "excluded")


@dataclass(frozen=True)
class Look:
    """What a listing tells without reading anything.

    Attributes:
        new: documents that the ledger does not know.
        changed: known documents whose stat or mark is another; their bytes may be the same.
        removed: known documents that are no longer there; 0 where the look did not finish.
        unsettled: documents that changed so recently that they are left alone.
        mark: names what would change; the same while it stays the same, empty if nothing would.
        finished: the listing was taken to its end.
    """

    new: int = 0
    changed: int = 0
    removed: int = 0
    unsettled: int = 0
    mark: str = ""
    finished: bool = True

    @property
    def anything(self) -> bool:
        """Would a scan now store something, as far as can be told?"""
        return bool(self.new or self.changed or self.removed)


@dataclass
class _Tally:
    new: int = 0
    changed: int = 0
    unsettled: int = 0
    seen: list[pl.Series] = field(default_factory=list)
    digest: hashlib._Hash = field(default_factory=hashlib.sha256)

    def add(self, rows: pl.DataFrame) -> None:
        for row in rows.iter_rows():
            self.digest.update(msgspec.json.encode(row))


def look_at_source(
    context: Context,
    source: ListedSource,
    declared: DeclaredSource,
    *,
    now_ns: int,
    settle_seconds: int,
    seconds: float,
) -> Look:
    """Look at a source for at most so many seconds, and a frame of its listing beyond that.

    Args:
        context: the open resources.
        source: the source.
        declared: how it is declared.
        now_ns: the time that documents are young against, nanoseconds since 1970.
        settle_seconds: younger documents are left alone.
        seconds: how long to look; a look that does not finish says what it saw so far.

    Raises:
        SourceError: the source cannot be listed.
    """
    if is_settling(declared, now_ns, settle_seconds):
        return Look(unsettled=1)
    known = known_source(context.ledger, source.name)
    if known is not None and known.newest is not None:
        fingerprint = fingerprint_of(source, declared)
        if fingerprint is not None and fingerprint == known.fingerprint:
            return Look()
    tally, due = _Tally(), time.monotonic() + seconds
    listing = source.listing()
    for frame in listing:
        _count(context, known, frame, tally, now_ns, settle_seconds * NANOSECONDS)
        if time.monotonic() >= due:
            return _look(tally, removed=0, finished=False)
    removed = 0
    if known is not None:
        seen = pl.concat([pl.Series(dtype=pl.Int64), *tally.seen])
        gone = removed_entries(context.ledger, source.name, known.source_no, seen, listing.report())
        removed = gone.len()
        tally.add(gone.to_frame())
    return _look(tally, removed=removed, finished=True)


def _count(
    context: Context,
    known: KnownSource | None,
    frame: pl.DataFrame,
    tally: _Tally,
    now_ns: int,
    settle_ns: int,
) -> None:
    nothing = pl.DataFrame(schema=KNOWN_SCHEMA)
    decided = decide(
        frame,
        nothing
        if known is None
        else known_entries(context.ledger, known.source_no, frame["document_id"]),
        pl.DataFrame(schema=SCAN_SCHEMA),
        started_ns=now_ns,
        settle_ns=settle_ns,
    )
    told = pl.col("what") == "told"
    moves = decided.filter(
        (told & ~same_outcome()) | ((pl.col("what") == "read") & ~refused_before())
    )
    new = moves.filter(pl.col("known_entry_no").is_null()).height
    tally.new += new
    tally.changed += moves.height - new
    tally.unsettled += decided.filter(pl.col("what") == "unsettled").height
    tally.seen.append(decided["known_entry_no"].drop_nulls())
    tally.add(moves.select(_TELLING))


def _look(tally: _Tally, *, removed: int, finished: bool) -> Look:
    anything = tally.new or tally.changed or removed
    return Look(
        new=tally.new,
        changed=tally.changed,
        removed=removed,
        unsettled=tally.unsettled,
        mark=tally.digest.hexdigest() if anything else "",
        finished=finished,
    )
