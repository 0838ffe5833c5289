"""What the tests of backups share: restoring as the command does, and reading every table."""

from __future__ import annotations

import hashlib
import random
from pathlib import Path

import polars as pl
from sqlalchemy import text

from pipeline_assets.backup.restore import Restored, restore
from resources.clock import Clock
from resources.context import SilentProgress
from resources.ledger.dump import dump_table, tables_of
from resources.ledger.engine import Ledger
from resources.settings import Settings


def restore_into(
    settings: Settings, folder: Path, clock: Clock, *, go_on: bool = False
) -> Restored:
    """Restore without anybody watching."""
    return restore(
        settings,
        folder,
        clock=clock,
        rng=random.Random(3),
        progress=SilentProgress(),
        go_on=go_on,
    )


def every_row(ledger: Ledger, folder: Path) -> dict[str, pl.DataFrame]:
    """Every table's rows, read through a dump of their own."""
    folder.mkdir()
    found = {}
    with ledger.read() as connection:
        for table in tables_of(connection):
            place = folder / f"{table.name}.parquet"
            dump_table(connection, ledger.dialect, table, place)
            found[str(table.name)] = pl.read_parquet(place)
    return found


def files_below(folder: Path) -> dict[str, str]:
    """Every file below a folder, with its digest."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def info(ledger: Ledger) -> dict[str, str]:
    """What the ledger says of itself."""
    with ledger.read() as connection:
        return {
            row.name: row.value
            for row in connection.execute(text("SELECT name, value FROM ledger_info"))
        }
