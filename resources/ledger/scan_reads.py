"""What a scan has read and not yet stored as a snapshot.

Belongs here: keeping it in steps, and finding what an interrupted scan had kept. Does not belong
here: making a snapshot of it (`scan_storage.py`).

The rows of the pass that goes on carry the time at which it began; what an interrupted pass left
counts for nothing until the listing names it again and its stat still holds.
"""

from __future__ import annotations

import polars as pl
from sqlalchemy import Connection, func, select, text

from resources.ledger.engine import Ledger
from resources.ledger.frames import json_of_texts
from resources.ledger.schema import scan_reads

SCAN_SCHEMA = {
    "document_id": pl.String,
    "size": pl.Int64,
    "mtime_ns": pl.Int64,
    "device": pl.String,
    "inode": pl.String,
    "mark": pl.String,
    "checksum": pl.String,
    "scanned_at_ns": pl.Int64,
    "excluded": pl.String,
    "detail": pl.String,
}
"""A document as a scan found it; `checksum` is null exactly where `excluded` is not."""

_TOLD = [name for name in SCAN_SCHEMA if name != "document_id"]


def has_reads(ledger: Ledger, source_no: int) -> bool:
    """Did an interrupted scan of the source leave anything?"""
    with ledger.read() as connection:
        one = select(scan_reads.c.source_no).where(scan_reads.c.source_no == source_no).limit(1)
        return connection.execute(one).first() is not None


def reads_of(ledger: Ledger, source_no: int, document_ids: pl.Series) -> pl.DataFrame:
    """What was kept of these documents (`SCAN_SCHEMA`)."""
    names = ", ".join(f"r.{name}" for name in SCAN_SCHEMA)
    with ledger.read() as connection:
        return ledger.dialect.fetch(
            connection,
            f"SELECT {names} FROM ({ledger.dialect.texts_of_json}) s "  # noqa: S608 - own names
            "JOIN scan_reads r ON r.source_no = ? AND r.document_id = s.value",
            SCAN_SCHEMA,
            (json_of_texts(document_ids), source_no),
        )


def keep_reads(connection: Connection, ledger: Ledger, source_no: int, rows: pl.DataFrame) -> None:
    """Keep what a scan found (`SCAN_SCHEMA`); of a document that occurs twice, the last."""
    rows = rows.select(list(SCAN_SCHEMA)).unique("document_id", keep="last", maintain_order=True)
    ledger.dialect.stage(connection, "stage_reads", rows)
    names = ", ".join(SCAN_SCHEMA)
    newer = ", ".join(f"{name} = excluded.{name}" for name in _TOLD)
    connection.execute(
        text(
            f"INSERT INTO scan_reads (source_no, {names}) "  # noqa: S608 - own names
            f"SELECT :source_no, {names} FROM stage_reads WHERE true "
            f"ON CONFLICT (source_no, document_id) DO UPDATE SET {newer}"
        ),
        {"source_no": source_no},
    )


def confirm_reads(
    connection: Connection,
    ledger: Ledger,
    source_no: int,
    document_ids: pl.Series,
    scanned_at_ns: int,
) -> None:
    """Take what an earlier pass kept of these documents as kept by the one that goes on."""
    ledger.dialect.stage(connection, "stage_confirmed", pl.DataFrame({"id": document_ids}))
    connection.execute(
        text(
            "UPDATE scan_reads SET scanned_at_ns = :at WHERE source_no = :source_no "
            "AND document_id IN (SELECT id FROM stage_confirmed)"
        ),
        {"at": scanned_at_ns, "source_no": source_no},
    )


def drop_other_reads(connection: Connection, source_no: int, scanned_at_ns: int) -> int:
    """Drop what is not of the pass that began then; how many rows are of it."""
    of_source = scan_reads.c.source_no == source_no
    connection.execute(
        scan_reads.delete().where(of_source, scan_reads.c.scanned_at_ns != scanned_at_ns)
    )
    count = select(func.count()).select_from(scan_reads).where(of_source)
    return connection.execute(count).scalar_one()


def drop_reads(connection: Connection, source_no: int) -> None:
    """The snapshot is stored: nothing is left to go on from."""
    connection.execute(scan_reads.delete().where(scan_reads.c.source_no == source_no))
