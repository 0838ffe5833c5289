"""Backups in the ledger: that one was finished, and when the last one was.

Belongs here: the rows of `backups`, and the rows of `ledger_info` that say which backup a ledger
was restored from. Does not belong here: making and restoring them (`pipeline_assets/backup`).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

from sqlalchemy import Connection, delete, insert, select

from resources.ledger.schema import backups, ledger_info

RESTORED_FROM = "restored_from"
"""Name of the row in `ledger_info` with the id of the backup that a ledger was restored from."""
RESTORED_AT = "restored_at"
"""Name of the row in `ledger_info` with the time at which it was."""


@dataclass(frozen=True)
class BackupRow:
    """A backup that was finished.

    Attributes:
        backup_id: its name.
        digest: SHA-256 of its list of contents.
        ledger_rows: rows of all tables.
        artifacts: files that the ledger names.
        bytes: of dump and artifacts.
        actor: who made it.
        made_at: the moment that it is of, UTC.
    """

    backup_id: str
    digest: str
    ledger_rows: int
    artifacts: int
    bytes: int
    actor: str
    made_at: str


def record_backup(connection: Connection, row: BackupRow) -> None:
    """Write that a backup was finished."""
    connection.execute(insert(backups).values(**asdict(row)))


def list_backups(connection: Connection) -> list[BackupRow]:
    """Every backup that was finished, the newest first."""
    rows = connection.execute(
        select(*(backups.c[name] for name in BackupRow.__dataclass_fields__)).order_by(
            backups.c.backup_no.desc()
        )
    )
    return [BackupRow(*row) for row in rows]


def mark_restored(connection: Connection, backup_id: str, at: str) -> None:
    """Write which backup the ledger was restored from; an earlier restore is forgotten."""
    values = {RESTORED_FROM: backup_id, RESTORED_AT: at}
    connection.execute(delete(ledger_info).where(ledger_info.c.name.in_(list(values))))
    rows = [{"name": name, "value": value} for name, value in values.items()]
    connection.execute(insert(ledger_info), rows)
