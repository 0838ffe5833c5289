"""Storing a finished scan as a snapshot: closing what ended, opening what is new.

Belongs here: the statements, all of them over sets, so that a million new rows are never in
memory. Does not belong here: deciding what was removed (the scan knows what it could not see) and
keeping what was read (`scan_reads.py`), which these statements start from.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass

import msgspec
import polars as pl
from sqlalchemy import Connection, insert, select, text, update

from resources.ledger.allocate import next_number
from resources.ledger.engine import Ledger
from resources.ledger.scan_reads import drop_other_reads, drop_reads
from resources.ledger.schema import (
    documents,
    snapshots,
    source_entries,
    source_versions,
    sources,
)
from resources.ledger.source_snapshots import Snapshot, newest_snapshot

_READS = (
    "FROM scan_reads r LEFT JOIN documents d ON d.document_id = r.document_id "
    "LEFT JOIN source_entries e ON e.document_no = d.document_no AND e.to_snapshot IS NULL "
    "LEFT JOIN source_versions v ON v.source_version_no = e.source_version_no "
    "WHERE r.source_no = :source_no"
)
_SAME = "v.checksum IS NOT DISTINCT FROM r.checksum AND e.excluded IS NOT DISTINCT FROM r.excluded"
SLICE_ROWS = 200_000
"""Rows that one statement stores at most."""
_LAST = chr(sys.maxunicode)
"""Comes after every document id."""
_STAT = ("size", "mtime_ns", "device", "inode", "mark")


@dataclass(frozen=True)
class FinishedPass:
    """What the ledger needs to know of a pass besides what was kept in `scan_reads`.

    Attributes:
        scanned_at_ns: when it began, as its rows say.
        listed: how many documents the ledger knew of those that were listed.
        kept: how many rows the pass kept in `scan_reads`.
        removed: numbers of the open entries whose documents are gone.
        complete: was every folder listed?
        fingerprint: of the place as a whole; None where it does not tell that nothing changed.
    """

    scanned_at_ns: int
    listed: int
    kept: int
    removed: pl.Series
    complete: bool
    fingerprint: str | None = None


class KeptTwice(Exception):
    """A pass kept other rows than it said: a document was listed twice, or another scan runs."""


@dataclass(frozen=True)
class _Counts:
    added: int
    changed: int


def store_scan(
    connection: Connection, ledger: Ledger, source_no: int, finished: FinishedPass
) -> Snapshot:
    """Store a scan: new and changed entries open, removed and changed ones close.

    Args:
        connection: a write transaction.
        ledger: the ledger.
        source_no: which source.
        finished: the pass.

    Returns:
        The snapshot; none is written when nothing changed.

    Raises:
        KeptTwice: the rows in `scan_reads` are not as many as the pass kept.
    """
    kept = drop_other_reads(connection, source_no, finished.scanned_at_ns)
    if kept != finished.kept:
        raise KeptTwice(f"{finished.kept} rows were kept, {kept} are there")
    counts = _count(connection, source_no) if kept else _Counts(0, 0)
    if kept:
        _refresh_stat(connection, ledger, source_no)
    connection.execute(
        update(sources)
        .where(
            sources.c.source_no == source_no,
            sources.c.fingerprint.is_distinct_from(finished.fingerprint),
        )
        .values(fingerprint=finished.fingerprint)
    )
    previous = newest_snapshot(connection, source_no)
    unchanged = finished.listed - counts.changed
    if previous is not None and not (counts.added or counts.changed or finished.removed.len()):
        drop_reads(connection, source_no)
        return previous.again(unchanged)
    snapshot_no = _begin(connection, ledger, source_no, finished, counts)
    _close(connection, ledger, source_no, finished.removed, snapshot_no)
    if counts.added or counts.changed:
        _open(connection, ledger, source_no, snapshot_no)
    drop_reads(connection, source_no)
    return _finish(connection, ledger, source_no, snapshot_no, unchanged)


def _count(connection: Connection, source_no: int) -> _Counts:
    row = connection.execute(
        text(
            "SELECT COALESCE(SUM(CASE WHEN e.entry_no IS NULL THEN 1 ELSE 0 END), 0) AS added, "
            f"COALESCE(SUM(CASE WHEN e.entry_no IS NOT NULL AND NOT ({_SAME}) "
            f"THEN 1 ELSE 0 END), 0) AS changed {_READS}"
        ),
        {"source_no": source_no},
    ).one()
    return _Counts(int(row.added), int(row.changed))


def _refresh_stat(connection: Connection, ledger: Ledger, source_no: int) -> None:
    """Same content, newer stat: remember it, so that the next scan need not read the document."""
    stat = (*_STAT, "scanned_at_ns")
    newer = ", ".join(f"r.{name} AS new_{name}" for name in stat)
    assignments = ", ".join(f"{name} = s.new_{name}" for name in stat)
    other = " OR ".join(f"e.{name} IS DISTINCT FROM r.{name}" for name in _STAT)
    by_id = ledger.dialect.in_byte_order("r.document_id")
    statement = text(
        f"UPDATE source_entries SET {assignments} FROM (SELECT e.entry_no AS same_no, {newer} "  # noqa: S608 - own names
        f"{_READS} AND {by_id} > :above AND {by_id} <= :upto "
        f"AND e.entry_no IS NOT NULL AND {_SAME} "
        # An excluded entry has no bytes that were read at some time.
        f"AND (r.checksum IS NOT NULL OR {other})) s WHERE source_entries.entry_no = s.same_no"
    )
    for above, upto in _slices(connection, ledger, source_no):
        connection.execute(statement, {"source_no": source_no, "above": above, "upto": upto})


def _begin(
    connection: Connection,
    ledger: Ledger,
    source_no: int,
    finished: FinishedPass,
    counts: _Counts,
) -> int:
    """A snapshot whose entries are still to come, and with them its digest."""
    key = connection.execute(
        insert(snapshots).values(
            source_no=source_no,
            taken_at=ledger.now(),
            digest="",
            complete=int(finished.complete),
            documents=0,
            excluded=0,
            added=counts.added,
            changed=counts.changed,
            removed=finished.removed.len(),
        )
    ).inserted_primary_key
    assert key is not None  # noqa: S101 - a single insert returns its key
    return int(key[0])


def _close(
    connection: Connection, ledger: Ledger, source_no: int, removed: pl.Series, snapshot_no: int
) -> None:
    if removed.len():
        ledger.dialect.stage(connection, "stage_gone", pl.DataFrame({"entry_no": removed}))
        connection.execute(
            text(
                "UPDATE source_entries SET to_snapshot = :snapshot_no "
                "WHERE entry_no IN (SELECT entry_no FROM stage_gone)"
            ),
            {"snapshot_no": snapshot_no},
        )
    connection.execute(
        text(
            "UPDATE source_entries SET to_snapshot = :snapshot_no WHERE entry_no IN "  # noqa: S608
            f"(SELECT e.entry_no {_READS} AND e.entry_no IS NOT NULL AND NOT ({_SAME}))"
        ),
        {"snapshot_no": snapshot_no, "source_no": source_no},
    )


def _open(connection: Connection, ledger: Ledger, source_no: int, snapshot_no: int) -> None:
    """Everything that was kept and has no open entry by now is new or changed."""
    given = {"source_no": source_no, "now": ledger.now(), "snapshot_no": snapshot_no}
    by_id = ledger.dialect.in_byte_order("r.document_id")
    within = f"r.source_no = :source_no AND {by_id} > :above AND {by_id} <= :upto"
    new_documents = (
        "INSERT INTO documents (document_no, document_id, source_no, first_seen_at) "  # noqa: S608 - own names
        f"SELECT :first - 1 + ROW_NUMBER() OVER (ORDER BY {by_id}), r.document_id, "
        f":source_no, :now FROM scan_reads r WHERE {within} "
        "AND NOT EXISTS (SELECT 1 FROM documents d WHERE d.document_id = r.document_id)"
    )
    new_versions = (
        "INSERT INTO source_versions "  # noqa: S608 - own names
        "(source_version_no, document_no, checksum, bytes, first_seen_at) "
        "SELECT :first - 1 + ROW_NUMBER() OVER (ORDER BY d.document_no), d.document_no, "
        "r.checksum, r.size, :now FROM scan_reads r "
        "JOIN documents d ON d.document_id = r.document_id "
        f"WHERE {within} AND r.checksum IS NOT NULL "
        "AND NOT EXISTS (SELECT 1 FROM source_versions v "
        "WHERE v.document_no = d.document_no AND v.checksum = r.checksum)"
    )
    new_entries = (
        "INSERT INTO source_entries (entry_no, document_no, from_snapshot, source_version_no, "  # noqa: S608 - own names
        "size, mtime_ns, device, inode, scanned_at_ns, excluded, detail, mark) "
        f"SELECT :first - 1 + ROW_NUMBER() OVER (ORDER BY {by_id}), d.document_no, "
        ":snapshot_no, v.source_version_no, r.size, r.mtime_ns, r.device, r.inode, "
        "r.scanned_at_ns, r.excluded, r.detail, r.mark FROM scan_reads r "
        "JOIN documents d ON d.document_id = r.document_id "
        "LEFT JOIN source_versions v ON v.document_no = d.document_no "
        f"AND v.checksum = r.checksum WHERE {within} "
        "AND NOT EXISTS (SELECT 1 FROM source_entries e "
        "WHERE e.document_no = d.document_no AND e.to_snapshot IS NULL)"
    )
    for above, upto in _slices(connection, ledger, source_no):
        for column, statement in (
            (documents.c.document_no, new_documents),
            (source_versions.c.source_version_no, new_versions),
            (source_entries.c.entry_no, new_entries),
        ):
            first = next_number(connection, ledger.dialect, column)
            asked = {name: value for name, value in given.items() if f":{name}" in statement}
            connection.execute(
                text(statement), {**asked, "first": first, "above": above, "upto": upto}
            )


def _slices(connection: Connection, ledger: Ledger, source_no: int) -> Iterator[tuple[str, str]]:
    """Bounds of at most `SLICE_ROWS` kept rows each: above the first id, up to the second.

    A statement that reads the table it writes to is first worked out as a whole, on SQLite in
    memory.
    """
    by_id = ledger.dialect.in_byte_order("document_id")
    next_bound = text(
        f"SELECT document_id FROM scan_reads WHERE source_no = :source_no AND {by_id} > :above "  # noqa: S608 - own names
        f"ORDER BY {by_id} LIMIT 1 OFFSET :rows"
    )
    above: str | None = ""
    while above is not None:
        given = {"source_no": source_no, "above": above, "rows": SLICE_ROWS - 1}
        upto = connection.execute(next_bound, given).scalar()
        yield above, _LAST if upto is None else upto
        above = upto


def _finish(
    connection: Connection, ledger: Ledger, source_no: int, snapshot_no: int, unchanged: int
) -> Snapshot:
    """SHA-256 over (document_id, checksum, excluded) of what is held now, as JSON lines.

    What could not be seen is held too: without it the same archive would get another digest.
    """
    digest = hashlib.sha256()
    encoder = msgspec.json.Encoder()
    held = excluded = 0
    for rows in ledger.dialect.stream(
        connection,
        "SELECT d.document_id, v.checksum, e.excluded FROM documents d "  # noqa: S608 - own names
        "JOIN source_entries e ON e.document_no = d.document_no AND e.to_snapshot IS NULL "
        "LEFT JOIN source_versions v ON v.source_version_no = e.source_version_no "
        f"WHERE d.source_no = ? ORDER BY {ledger.dialect.in_byte_order('d.document_id')}",
        {"document_id": pl.String, "checksum": pl.String, "excluded": pl.String},
        (source_no,),
    ):
        held += rows.height
        excluded += rows["excluded"].count()
        for row in rows.iter_rows():
            digest.update(encoder.encode(row))
            digest.update(b"\n")
    connection.execute(
        update(snapshots)
        .where(snapshots.c.snapshot_no == snapshot_no)
        .values(digest=digest.hexdigest(), documents=held, excluded=excluded)
    )
    row = connection.execute(select(snapshots).where(snapshots.c.snapshot_no == snapshot_no)).one()
    return Snapshot(
        snapshot_no,
        row.digest,
        documents=held,
        excluded=excluded,
        added=row.added,
        changed=row.changed,
        removed=row.removed,
        unchanged=unchanged,
        written=True,
    )
