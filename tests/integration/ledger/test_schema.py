"""The migrations make what the models say, and every table takes rows in bulk."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Integer, Table, inspect, text

from resources.ledger.engine import Ledger
from resources.ledger.schema import ledger_info, metadata

# Made by the migration alone, since the full-text objects differ between the databases.
FULL_TEXT = "archive_search"
TABLES = [pytest.param(table, id=table.name) for table in metadata.sorted_tables]


def is_ours(name: str | None, kind: str, _parents: object) -> bool:
    """Leave the full-text objects, and SQLite's shadow tables of them, out of the comparison."""
    return not (kind in ("table", "index") and name is not None and FULL_TEXT in name)


def test_models_and_migrations_say_the_same(ledger: Ledger) -> None:
    with ledger.engine.connect() as connection:
        context = MigrationContext.configure(
            connection,
            opts={
                "compare_type": True,
                "compare_server_default": True,
                "include_name": is_ours,
            },
        )
        assert compare_metadata(context, metadata) == []


def test_the_comparison_would_see_a_difference(ledger: Ledger) -> None:
    with ledger.engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"include_name": is_ours})
        smaller = metadata.__class__()
        for table in metadata.sorted_tables[:-1]:
            table.to_metadata(smaller)
        assert {change[0] for change in compare_metadata(context, smaller)} >= {"remove_table"}


def test_keys_are_made_as_the_models_say(ledger: Ledger) -> None:
    """Alembic does not compare primary keys."""
    with ledger.engine.connect() as connection:
        found = {
            table.name: inspect(connection).get_pk_constraint(table.name)["constrained_columns"]
            for table in metadata.sorted_tables
        }
    assert found == {
        table.name: [column.name for column in table.primary_key]
        for table in metadata.sorted_tables
    }


def test_rows_that_move_have_room_on_their_page(ledger: Ledger) -> None:
    if ledger.dialect.name != "postgresql":
        pytest.skip("only PostgreSQL has a fill factor")
    with ledger.read() as connection:
        options = {
            name: connection.execute(
                text("SELECT reloptions FROM pg_class WHERE relname = :name"), {"name": name}
            ).scalar_one()
            for name in ("record_state", "archive_heads", "leases")
        }
    assert set(map(tuple, options.values())) == {("fillfactor=50",)}


@pytest.mark.parametrize("table", TABLES)
def test_every_table_takes_rows_in_bulk(ledger: Ledger, table: Table) -> None:
    row = {column.name: value_for(column, table) for column in table.c}
    frame = pl.DataFrame([row], schema={c.name: polars_type(c) for c in table.c})
    with ledger.write() as connection:
        fill_parents(connection, ledger, table)
        ledger.dialect.load(connection, table, frame)
        found = ledger.dialect.fetch(
            connection,
            f"SELECT {','.join(frame.columns)} FROM {table.name} "
            + ("WHERE name = 'x'" if table is ledger_info else ""),
            frame.schema,
        )
    assert found.rows() == frame.rows()


def polars_type(column: Any) -> pl.DataType:
    return pl.Int64() if isinstance(column.type, Integer) else pl.String()


def value_for(column: Any, table: Table) -> int | str | None:
    if column.nullable and not column.foreign_keys:
        return None
    if any(key.column.table is table for key in column.foreign_keys):
        return None
    return 1 if isinstance(column.type, Integer) else "x"


def fill_parents(connection: Any, ledger: Ledger, table: Table) -> None:
    """One row in every table that `table` refers to, over any number of steps."""
    wanted: set[Table] = set()
    waiting = [table]
    while waiting:
        for key in waiting.pop().foreign_keys:
            parent = key.column.table
            if parent not in wanted and parent is not table:
                wanted.add(parent)
                waiting.append(parent)
    for parent in metadata.sorted_tables:
        if parent in wanted:
            row = {column.name: value_for(column, parent) for column in parent.c}
            frame = pl.DataFrame([row], schema={c.name: polars_type(c) for c in parent.c})
            ledger.dialect.load(connection, parent, frame)
