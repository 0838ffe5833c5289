"""Scanning the sources into the ledger: a snapshot each, every document accounted for.

Belongs here: which sources are scanned, one pass over a source, and what was removed. Does not
belong here: listing and reading (`resources/sources`), the decision about a document
(`resources/sources/changes.py`), storing (`resources/ledger`), parsing, and versions.

Memory is bounded by a frame of the listing: what is new is kept in the ledger as it is read, and
of what is known only its number is remembered. A scan that is interrupted is started again and
reads nothing twice.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec
import polars as pl

from resources.context import Context
from resources.ledger.engine import Ledger
from resources.ledger.leases import Heartbeat, Lease, LeaseHeld, fenced, held
from resources.ledger.scan_reads import (
    SCAN_SCHEMA,
    confirm_reads,
    has_reads,
    keep_reads,
    reads_of,
)
from resources.ledger.scan_storage import FinishedPass, KeptTwice, store_scan
from resources.ledger.source_snapshots import (
    KnownSource,
    Snapshot,
    SourceMoved,
    SourceOfOtherWorkload,
    documents_of_entries,
    has_source,
    known_entries,
    known_source,
    open_entries,
    register_source,
)
from resources.sources.changes import (
    decide,
    known_as_read,
    starts_with_any,
    unlisted_prefixes,
)
from resources.sources.declared import (
    DeclaredSource,
    TableSource,
    UnknownSource,
    declared_sources,
)
from resources.sources.listing import LISTED_ROWS, LISTED_SCHEMA, ListedSource
from resources.sources.opening import open_source
from resources.sources.port import SourceError, SourceRepeats, WalkReport

KEPT_ROWS = 5_000
KEPT_SECONDS = 3.0
"""What was read is committed at the first of these, so that a kill costs seconds of reading."""
NANOSECONDS = 1_000_000_000


class NoSource(Exception):
    """A workload has no source, now or ever."""

    def __init__(self, workload: str, declared: list[DeclaredSource]) -> None:
        known = ", ".join(f"{source.name} ({source.workload})" for source in declared)
        super().__init__(
            f"no source of workload {workload!r} is declared, and none was ever scanned; declared "
            f"are: {known or 'none'}. Declare one with `workload: {workload}` in the sources file, "
            "or name a folder with --source."
        )


class SomeSourcesFailed(SourceError):
    """Some sources could not be scanned, while others were."""

    def __init__(self, failed: dict[str, Exception], scanned: list[str]) -> None:
        first, *others = failed
        told = f" Not scanned either: {', '.join(others)}." if others else ""
        super().__init__(
            f"{failed[first]}{told} Scanned nevertheless: {', '.join(scanned) or 'none'}; run "
            "again when the cause is mended."
        )


@dataclass(frozen=True)
class ScanReport:
    """What a scan found.

    Attributes:
        source: the source's name.
        snapshot: counts against the scan before.
        read: documents that were read for a checksum.
        bytes_read: how many bytes that was.
        complete: every folder was listed; if not, unseen documents were kept as they were.
        unsettled: documents left as they were because they changed only just now; a table that
            is left alone as a whole counts once.
    """

    source: str
    snapshot: Snapshot
    read: int
    bytes_read: int
    complete: bool
    unsettled: int = 0


def scan_declared(
    context: Context,
    *,
    workload: str | None = None,
    only: str | None = None,
    moved: bool = False,
    settle_seconds: int = 0,
) -> list[ScanReport]:
    """Scan the declared sources, by name; one that fails does not keep the others from it.

    Args:
        context: the open resources.
        workload: only sources of this workload.
        only: only the source of this name.
        moved: take another place than before for the same source.
        settle_seconds: leave documents alone that changed so recently.

    Raises:
        InvalidSources, UnknownSource: the declarations cannot be used; nothing was scanned.
        NoSource: there is nothing that could be scanned.
        SourceError, SourceMoved, SourceOfOtherWorkload, LeaseHeld: of the only source.
        SomeSourcesFailed: of several sources, the first error, and what was scanned.
    """
    sources = sources_to_scan(context, workload=workload, only=only)
    reports: list[ScanReport] = []
    failed: dict[str, Exception] = {}
    for declared in sources:
        try:
            source = open_source(declared, context.ledger)
            reports.append(
                scan_source(context, source, declared, moved=moved, settle_seconds=settle_seconds)
            )
        except (SourceError, SourceMoved, SourceOfOtherWorkload, LeaseHeld) as error:
            failed[declared.name] = error
    if failed:
        first = next(iter(failed.values()))
        if len(sources) == 1:
            raise first
        raise SomeSourcesFailed(failed, [report.source for report in reports]) from first
    return reports


def sources_to_scan(
    context: Context, *, workload: str | None = None, only: str | None = None
) -> list[DeclaredSource]:
    """The declared sources that a scan is asked for.

    Raises:
        InvalidSources, UnknownSource, NoSource: as `scan_declared`.
        SourceOfOtherWorkload: the source of that name is of another workload.
    """
    declared = declared_sources(context.settings)
    named = [source for source in declared if only in (None, source.name)]
    if only is not None and not named:
        raise UnknownSource(only, [source.name for source in declared])
    chosen = [source for source in named if workload in (None, source.workload)]
    if only is not None and workload is not None and not chosen:
        raise SourceOfOtherWorkload(only, named[0].workload, workload)
    if not chosen and workload is not None and not has_source(context.ledger, workload):
        raise NoSource(workload, declared)
    return chosen


def scan_source(
    context: Context,
    source: ListedSource,
    declared: DeclaredSource,
    *,
    moved: bool = False,
    settle_seconds: int = 0,
) -> ScanReport:
    """Scan one source into a snapshot.

    Raises:
        SourceError: the source cannot be listed; nothing was stored.
        SourceMoved: its name belongs to another place.
        SourceOfOtherWorkload: its name belongs to another workload.
        LeaseHeld: another worker is scanning it.
    """
    ledger = context.ledger
    if is_settling(declared, time.time_ns(), settle_seconds):
        return _left_alone(ledger, source.name)
    _look_first(ledger, source)
    source_no = register_source(
        ledger, source.name, source.kind, source.location, workload=declared.workload, moved=moved
    )
    with held(ledger, f"source:{source.name}", context.worker) as lease:
        # Under the lease, so that a slow pass cannot overwrite what a later one saw.
        fingerprint = fingerprint_of(source, declared)
        still = _unchanged(known_source(ledger, source.name), fingerprint)
        if still is not None:
            return ScanReport(source.name, still, 0, 0, complete=True)
        one = _Pass(context, source, source_no, lease, settle_seconds)
        report = one.run()
        seen = one.seen()
        whole = report.complete and not report.partial and not one.unsettled
        finished = FinishedPass(
            scanned_at_ns=one.started_ns,
            listed=seen.len(),
            kept=one.kept,
            removed=removed_entries(ledger, source.name, source_no, seen, report),
            complete=report.complete,
            fingerprint=fingerprint if whole else None,
        )
        try:
            with fenced(ledger, lease) as connection:
                snapshot = store_scan(connection, ledger, source_no, finished)
                source.settle(connection, ledger)
        except KeptTwice as error:
            raise SourceRepeats(source.name) from error
    return ScanReport(
        source.name, snapshot, one.read, one.bytes_read, report.complete, one.unsettled
    )


def is_settling(declared: DeclaredSource, now_ns: int, settle_seconds: int) -> bool:
    """Was a source that is one file changed so recently that it may still be written?

    A table that is half written looks like one whose other rows were removed.
    """
    if not isinstance(declared, TableSource) or settle_seconds <= 0:
        return False
    try:
        changed_ns = declared.path.stat().st_mtime_ns
    except OSError:
        # Listing the source says what is wrong with it.
        return False
    return abs(now_ns - changed_ns) < settle_seconds * NANOSECONDS


def fingerprint_of(source: ListedSource, declared: DeclaredSource) -> str | None:
    """The place's fingerprint together with how it is declared: both decide what is listed.

    Raises:
        SourceError: the place cannot be looked at.
    """
    place = source.fingerprint()
    if place is None:
        return None
    both = msgspec.json.encode((place, declared.model_dump_json()))
    return hashlib.sha256(both).hexdigest()


def removed_entries(
    ledger: Ledger, name: str, source_no: int, seen: pl.Series, report: WalkReport
) -> pl.Series:
    """The numbers of open entries whose documents a finished pass found to be gone."""
    if report.partial:
        gone = pl.Series(report.gone, dtype=pl.String)
        parts = [
            known_entries(ledger, source_no, gone.slice(start, LISTED_ROWS))["entry_no"]
            for start in range(0, gone.len(), LISTED_ROWS)
        ]
        numbers = pl.concat(parts) if parts else pl.Series(dtype=pl.Int64)
        return numbers.filter(~numbers.is_in(seen.implode())).unique().sort()
    open_now = open_entries(ledger, source_no)
    unseen = open_now.filter(~open_now.is_in(seen.implode()))
    prefixes = unlisted_prefixes(name, report.unlisted)
    if not prefixes:
        return unseen
    parts = [pl.Series(dtype=pl.Int64)]
    for start in range(0, unseen.len(), LISTED_ROWS):
        told = documents_of_entries(ledger, unseen.slice(start, LISTED_ROWS))
        parts.append(told.filter(~starts_with_any(told["document_id"], prefixes))["entry_no"])
    return pl.concat(parts)


def _left_alone(ledger: Ledger, name: str) -> ScanReport:
    known = known_source(ledger, name)
    newest = None if known is None else known.newest
    snapshot = Snapshot(0, "", 0, 0, 0, 0, 0, 0, written=False)
    if newest is not None:
        snapshot = newest.again(newest.documents)
    return ScanReport(name, snapshot, 0, 0, complete=True, unsettled=1)


def _unchanged(known: KnownSource | None, fingerprint: str | None) -> Snapshot | None:
    """The newest snapshot, if the place as a whole is as it was when that was complete."""
    if known is None or known.newest is None or fingerprint is None:
        return None
    if fingerprint != known.fingerprint:
        return None
    return known.newest.again(known.newest.documents)


def _look_first(ledger: Ledger, source: ListedSource) -> None:
    """Take a first look: a place that cannot be listed leaves no trace, not even its name."""
    known = known_source(ledger, source.name)
    # A queue takes its events under the name that it is registered by.
    if known is None or (known.location != source.location and source.kind != "queue"):
        next(source.listing(), None)


@dataclass
class _Pass:
    """One pass over a source, from the first frame to the last row that is kept.

    Attributes:
        started_ns: when it began, by the clock of the machine, which files are compared with.
        read, bytes_read, unsettled: as in `ScanReport`.
        kept: rows kept in `scan_reads`.
    """

    context: Context
    source: ListedSource
    source_no: int
    lease: Lease
    settle_seconds: int
    started_ns: int = field(default_factory=time.time_ns)
    read: int = 0
    bytes_read: int = 0
    unsettled: int = 0
    kept: int = 0
    _seen: list[pl.Series] = field(default_factory=list)
    _rows: list[pl.DataFrame] = field(default_factory=list)
    _waiting: int = 0
    _due: float = 0.0
    _beat: Callable[[], None] = field(init=False)
    _resumes: bool = field(init=False)

    def run(self) -> WalkReport:
        """Take every frame.

        Raises:
            SourceError: the source cannot be listed, or names a document twice.
        """
        self._beat = Heartbeat(self.context.ledger, self.lease).beat
        self._resumes = has_reads(self.context.ledger, self.source_no)
        listing = self.source.listing()
        self.context.progress.start("checksums", None)
        try:
            for frame in listing:
                self._take(frame)
                self._beat()
            self._commit()
        except (SourceError, KeyboardInterrupt):
            # The next scan goes on from what was read before.
            self._commit()
            raise
        finally:
            self.context.progress.finish()
        return listing.report()

    def seen(self) -> pl.Series:
        """The entry numbers of all documents that were listed and known.

        Raises:
            SourceRepeats: a document was listed twice.
        """
        numbers = pl.concat([pl.Series(dtype=pl.Int64), *self._seen])
        if numbers.n_unique() != numbers.len():
            raise SourceRepeats(self.source.name)
        return numbers

    def _take(self, frame: pl.DataFrame) -> None:
        ledger, ids = self.context.ledger, frame["document_id"]
        decided = decide(
            frame,
            known_entries(ledger, self.source_no, ids),
            reads_of(ledger, self.source_no, ids)
            if self._resumes
            else pl.DataFrame(schema=SCAN_SCHEMA),
            started_ns=self.started_ns,
            settle_ns=self.settle_seconds * NANOSECONDS,
        )
        self._seen.append(decided["known_entry_no"].drop_nulls())
        self.unsettled += decided.filter(pl.col("what") == "unsettled").height
        self._confirm(decided.filter(pl.col("what") == "resumed")["document_id"])
        self._keep(decided.filter(pl.col("what") == "told"))
        self._read(decided.filter(pl.col("what") == "read"))

    def _read(self, wanted: pl.DataFrame) -> None:
        if wanted.is_empty():
            return
        self.read += wanted.height
        known = wanted.select("document_id", pl.selectors.starts_with("known_"))
        for part in self.source.read(wanted.select(list(LISTED_SCHEMA))):
            readable = part.filter(pl.col("checksum").is_not_null())
            self.bytes_read += int(readable["size"].sum())
            both = part.join(known, on="document_id", how="left")
            self._keep(both.filter(~known_as_read()))
            self.context.progress.advance(part.height)
            self._beat()

    def _keep(self, rows: pl.DataFrame) -> None:
        if rows.is_empty():
            return
        if not self._rows:
            self._due = time.monotonic() + KEPT_SECONDS
        self._rows.append(rows.with_columns(scanned_at_ns=self.started_ns).select(*SCAN_SCHEMA))
        self._waiting += rows.height
        if self._waiting >= KEPT_ROWS or time.monotonic() >= self._due:
            self._commit()

    def _commit(self) -> None:
        if not self._rows:
            return
        ledger, rows = self.context.ledger, pl.concat(self._rows)
        with fenced(ledger, self.lease) as connection:
            keep_reads(connection, ledger, self.source_no, rows)
        self.kept += rows.height
        self._rows, self._waiting = [], 0

    def _confirm(self, document_ids: pl.Series) -> None:
        if document_ids.is_empty():
            return
        ledger = self.context.ledger
        with fenced(ledger, self.lease) as connection:
            confirm_reads(connection, ledger, self.source_no, document_ids, self.started_ns)
        self.kept += document_ids.len()
