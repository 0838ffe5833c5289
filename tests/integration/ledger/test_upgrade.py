"""A ledger of an earlier release is opened, upgraded, and says what it said before."""

from __future__ import annotations

from typing import Any

import pytest
from alembic import command
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Connection, Engine, MetaData, Table, create_engine, inspect, text

from resources.ledger.engine import alembic_config, normalise_url, open_ledger
from resources.ledger.schema import metadata

FIRST = "0001"
ROWS_EACH = 3
AT = "2030-01-02T03:04:05.000000Z"


def make_first_release(engine: Engine) -> MetaData:
    """Make the schema of the first release; its tables are returned as the database tells them."""
    config = alembic_config()
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, FIRST)
        found = MetaData()
        found.reflect(connection, only=lambda name, _: name in metadata.tables)
    return found


def fill(connection: Connection, tables: MetaData) -> None:
    """Some rows in every table, parents first, each column with a value that tells its place."""
    connection.execute(
        tables.tables["ledger_info"].insert(),
        [
            {"name": "ledger_id", "value": "0123456789abcdef"},
            {"name": "profile", "value": "dev"},
            {"name": "made_at", "value": AT},
        ],
    )
    for table in tables.sorted_tables:
        if table.name != "ledger_info":
            rows = [row_of(table, number) for number in range(1, ROWS_EACH + 1)]
            connection.execute(table.insert(), rows)


def row_of(table: Table, number: int) -> dict[str, Any]:
    row: dict[str, Any] = {}
    for column in table.c:
        if column.type.python_type is int:
            row[column.name] = number
        else:
            length = getattr(column.type, "length", None) or 64
            row[column.name] = f"{number}{column.name}é"[:length]
    return row


def rows_of(connection: Connection, table: Table) -> list[dict[str, Any]]:
    found = connection.execute(table.select().order_by(*table.primary_key.columns))
    return [dict(row._mapping) for row in found]


@pytest.fixture
def old(ledger_url: str) -> tuple[str, MetaData, dict[str, list[dict[str, Any]]]]:
    """Return a ledger of the first release, its tables, and all of its rows."""
    engine = create_engine(normalise_url(ledger_url))
    tables = make_first_release(engine)
    with engine.begin() as connection:
        fill(connection, tables)
    with engine.connect() as connection:
        rows = {table.name: rows_of(connection, table) for table in tables.sorted_tables}
    engine.dispose()
    return ledger_url, tables, rows


Old = tuple[str, MetaData, dict[str, list[dict[str, Any]]]]


def test_the_first_release_lacks_what_the_upgrade_brings(old: Old) -> None:
    """Else the tests below would show nothing."""
    _, tables, rows = old
    assert {"canaries", "intents", "alerts"} & set(tables.tables) == set()
    assert "input_ref" not in tables.tables["batches"].c
    assert "cached_tokens" not in tables.tables["dispositions"].c
    assert {"batches", "dispositions", "attempts", "manifests", "moves"} <= set(rows)
    assert {name: len(found) for name, found in rows.items()} == dict.fromkeys(rows, ROWS_EACH)


def test_rows_are_as_they_were_and_what_is_new_is_empty(old: Old) -> None:
    url, tables, before = old
    ledger = open_ledger(url)
    assert ledger.ledger_id == "0123456789abcdef"
    with ledger.read() as connection:
        for table in metadata.sorted_tables:
            found = rows_of(connection, table)
            if table.name not in tables.tables:
                assert found == [], f"{table.name} is new"
                continue
            known = set(tables.tables[table.name].c.keys())
            new = set(table.c.keys()) - known
            kept = [{name: row[name] for name in row if name in known} for row in found]
            assert kept == before[table.name], table.name
            assert all(row[name] is None for row in found for name in new), table.name
    ledger.close()


def test_the_upgraded_schema_is_that_of_a_new_ledger(old: Old) -> None:
    ledger = open_ledger(old[0])
    with ledger.engine.connect() as connection:
        heads = MigrationContext.configure(connection).get_current_heads()
        found = {
            table.name: {column["name"] for column in inspect(connection).get_columns(table.name)}
            for table in metadata.sorted_tables
        }
    ledger.close()
    assert heads != (FIRST,)
    assert found == {table.name: set(table.c.keys()) for table in metadata.sorted_tables}


def test_a_failed_upgrade_leaves_the_ledger_as_it_was(
    old: Old, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The upgrade is one transaction: what it began is not there when its end fails."""
    url, tables, before = old

    class Broken(Exception):
        pass

    real = command.upgrade

    def upgrade(*given: Any) -> None:
        real(*given)
        raise Broken

    with monkeypatch.context() as patch:
        patch.setattr(command, "upgrade", upgrade)
        with pytest.raises(Broken):
            open_ledger(url)
    engine = create_engine(normalise_url(url))
    with engine.connect() as connection:
        assert MigrationContext.configure(connection).get_current_heads() == (FIRST,)
        assert set(inspect(connection).get_table_names()) >= set(tables.tables)
        assert "canaries" not in inspect(connection).get_table_names()
        assert {t.name: rows_of(connection, t) for t in tables.sorted_tables} == before
    engine.dispose()
    open_ledger(url).close()


def test_an_upgraded_ledger_takes_new_rows(old: Old) -> None:
    ledger = open_ledger(old[0])
    with ledger.write() as connection:
        connection.execute(text("UPDATE batches SET endpoint = 'e', submissions = 1"))
        connection.execute(text("UPDATE dispositions SET cached_tokens = 7"))
    with ledger.read() as connection:
        assert set(connection.execute(text("SELECT cached_tokens FROM dispositions"))) == {(7,)}
    ledger.close()
