"""Tables out into Parquet files and in again, the same for both databases.

Belongs here: which tables there are, their rows as files of explicit types, and loading such files.
Does not belong here: which files belong together and their digests (`pipeline_assets/backup`), and
the full-text objects, which each database has its own of and which are made again.

The tables are asked of the database, not of `schema.py`: a dump of an earlier release's ledger has
that release's columns, and goes into a ledger of the same release before that is upgraded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from sqlalchemy import Connection, Integer, MetaData, Table, func, select

from resources.ledger.dialect import Dialect
from resources.ledger.frames import PolarsType
from resources.ledger.schema import metadata

ROWS_AT_ONCE = 25_000
"""Rows of a file that are Python objects at a time while they go into SQLite."""


class DumpUnusable(Exception):
    """A file of a dump does not have the columns that its table has."""

    def __init__(self, table: str, found: list[str], expected: list[str]) -> None:
        odd = sorted({*found} ^ {*expected})
        super().__init__(
            f"the dump of table {table} does not fit its table: they differ in {', '.join(odd)}. "
            "The backup is of another release or was changed: use another backup."
        )


def tables_of(connection: Connection) -> list[Table]:
    """The ledger's tables as the database has them, those that others refer to first."""
    found = MetaData()
    found.reflect(connection, only=lambda name, _: name in metadata.tables)
    return found.sorted_tables


def dump_table(
    connection: Connection,
    dialect: Dialect,
    table: Table,
    place: Path,
    on_rows: Callable[[], None] = lambda: None,
) -> int:
    """Write every row of a table, in the order of its key, to a new Parquet file.

    Args:
        connection: in a read transaction, which all tables of a dump are read in.
        dialect: the database's.
        table: one of `tables_of`.
        place: the new file.
        on_rows: called after every chunk of rows.

    Returns:
        How many rows were written.
    """
    types = _types(table)
    empty = pl.DataFrame(schema=types)
    rows = 0
    with pq.ParquetWriter(place, empty.to_arrow().schema, compression="zstd") as writer:
        for frame in dialect.stream(connection, _everything(dialect, table), types):
            writer.write_table(frame.to_arrow())
            rows += frame.height
            on_rows()
    return rows


def load_table(connection: Connection, dialect: Dialect, table: Table, place: Path) -> int:
    """Append every row of a dump's file to its table.

    Returns:
        How many rows were read.

    Raises:
        DumpUnusable: the file has other columns than the table.
    """
    rows = 0
    for frame in _frames(place):
        if frame.columns != list(_types(table)):
            raise DumpUnusable(table.name, frame.columns, list(_types(table)))
        if frame.height:
            dialect.load(connection, table, frame)
        rows += frame.height
    return rows


def count_rows(connection: Connection, table: Table) -> int:
    """How many rows a table has."""
    return int(connection.execute(select(func.count()).select_from(table)).scalar_one())


def _types(table: Table) -> dict[str, PolarsType]:
    return {
        column.name: pl.Int64 if isinstance(column.type, Integer) else pl.String
        for column in table.c
    }


def _everything(dialect: Dialect, table: Table) -> str:
    columns = ", ".join(column.name for column in table.c)
    order = ", ".join(
        column.name if isinstance(column.type, Integer) else dialect.in_byte_order(column.name)
        for column in table.primary_key.columns
    )
    return f"SELECT {columns} FROM {table.name} ORDER BY {order}"  # noqa: S608 - our own names


def _frames(place: Path) -> Iterator[pl.DataFrame]:
    """The file's rows in parts; one part without rows where it has none."""
    with pq.ParquetFile(place) as file:
        yield pl.DataFrame(pl.from_arrow(file.schema_arrow.empty_table()))
        for batch in file.iter_batches(ROWS_AT_ONCE):
            yield pl.DataFrame(pl.from_arrow(pa.Table.from_batches([batch])))
