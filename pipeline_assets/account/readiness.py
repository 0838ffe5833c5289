"""Is a version's collection ready: its newest closed report, and what happened since.

Belongs here: only that question. Does not belong here: making and closing reports.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl
from sqlalchemy import Connection

from pipeline_assets.known_version import KnownVersion
from resources.ledger.engine import Ledger
from resources.ledger.moves import version_chain

_CLOSED = """
SELECT r.report_no, c.digest, r.made_at, c.closed_at, c.closed_by,
    (SELECT MAX(m.move_no) FROM moves m WHERE m.machine = 'report' AND m.chain = 'report:' ||
        CAST(r.report_no AS TEXT))
FROM report_closings c JOIN reports r ON r.report_no = c.report_no
WHERE r.version_no = ? AND r.batch_no IS NULL ORDER BY r.report_no DESC LIMIT 1
"""
_CLOSED_SCHEMA = {
    "report_no": pl.Int64,
    "digest": pl.String,
    "made_at": pl.String,
    "closed_at": pl.String,
    "closed_by": pl.String,
    "move_no": pl.Int64,
}
# What was committed after the closing counts whatever its time says: clocks of workers differ.
_MOVED_SINCE = """
SELECT COUNT(*), COALESCE(SUM(CASE WHEN machine = 'record' THEN members ELSE 0 END), 0)
FROM moves WHERE (chain = ? OR chain IN (
    SELECT 'batch:' || CAST(batch_no AS TEXT) FROM batches WHERE version_no = ?
)) AND (moved_at > ? OR move_no > ?)
"""
_SCANNED_SINCE = """
SELECT COUNT(*) FROM snapshots s JOIN sources c ON c.source_no = s.source_no
WHERE c.workload = ? AND s.taken_at > ? AND s.added + s.changed + s.removed > 0
"""
# A rollback moves no record. Entries are many and changes few, so changes are asked for first.
_CHANGED_SINCE = "SELECT COUNT(*) FROM archive_changes WHERE changed_at > ?"
_SHOWN_SINCE = (
    "SELECT COUNT(*) FROM archive_entries WHERE version_no = ? AND (valid_from > ? OR valid_to > ?)"
)


@dataclass(frozen=True)
class Readiness:
    """The newest closed report of a version.

    Attributes:
        report_no: its number.
        digest: of its content.
        made_at: when it was counted, UTC.
        closed_at: when somebody vouched for it, UTC.
        closed_by: who.
        moves_since: journal rows of the version and its batches since it was counted.
        records_since: records that those moved, each as often as it was.
        scanned_since: a later scan of its sources found something new, changed or gone.
        shown_since: the archive shows more of it, or less, or other values of it.
        ready: nothing happened since, so the report still says how the collection is.
    """

    report_no: int
    digest: str
    made_at: str
    closed_at: str
    closed_by: str
    moves_since: int
    records_since: int
    scanned_since: bool
    shown_since: bool
    ready: bool


def readiness(connection: Connection, ledger: Ledger, version: KnownVersion) -> Readiness | None:
    """The newest closed report of a whole version; None where none was closed."""
    dialect, number = ledger.dialect, version.version_no
    found = dialect.fetch(connection, _CLOSED, _CLOSED_SCHEMA, (number,))
    if found.is_empty():
        return None
    report_no, digest, made_at, closed_at, closed_by, move_no = found.row(0)
    moves, records = dialect.fetch(
        connection,
        _MOVED_SINCE,
        {"moves": pl.Int64, "records": pl.Int64},
        (version_chain(number), number, made_at, 2**62 if move_no is None else move_no),
    ).row(0)
    scans = dialect.fetch(
        connection, _SCANNED_SINCE, {"scans": pl.Int64}, (version.workload, made_at)
    ).item()
    shown = _shown_since(connection, ledger, number, made_at)
    return Readiness(
        report_no=report_no,
        digest=digest,
        made_at=made_at,
        closed_at=closed_at,
        closed_by=closed_by,
        moves_since=moves,
        records_since=records,
        scanned_since=bool(scans),
        shown_since=shown,
        ready=not (moves or scans or shown),
    )


def _shown_since(connection: Connection, ledger: Ledger, version_no: int, moment: str) -> bool:
    counted = {"n": pl.Int64}
    changes = ledger.dialect.fetch(connection, _CHANGED_SINCE, counted, (moment,)).item()
    return bool(changes) and bool(
        ledger.dialect.fetch(connection, _SHOWN_SINCE, counted, (version_no, moment, moment)).item()
    )
