"""Rows go out of one database and into another as they are, to the byte."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from sqlalchemy import text

from resources.ledger.dump import DumpUnusable, dump_table, load_table, tables_of
from resources.ledger.engine import Database, connect, upgrade_within

TEXTS = (
    "",
    " ",
    "plain",
    "two\nlines",
    "carriage\r\nreturn",
    "a\ttab",
    'a "quoted" word',
    "it's",
    "comma, semicolon;",
    "back\\slash \\N \\.",
    "\\N",
    "NULL",
    "Überschwemmungsjäger",
    "日本語 👩🏽‍🔧",
    "e\u0301 is not \u00e9",
    "\u2028\u2029\u0085",
    "\x01\x1f\x7f",
    "x" * 100_000,
)
NUMBERS = (0, 1, -1, 2**31, 2**62, -(2**63), None)


def open_at(url: str, revision: str = "head") -> Database:
    database = connect(url)
    with database.write() as connection:
        upgrade_within(connection, revision)
    return database


def fill(database: Database) -> None:
    """Texts in a column that may be anything, and in a key; numbers beside a NULL."""
    rows = [{"name": f"{index}{word[:20]}", "value": word} for index, word in enumerate(TEXTS)]
    with database.write() as connection:
        connection.execute(text("INSERT INTO ledger_info VALUES (:name, :value)"), rows)
        connection.execute(
            text(
                "INSERT INTO dispositions (attempt_no, disposition, diagnostics, input_tokens) "
                "VALUES (:key, 'succeeded', '', :number)"
            ),
            [{"key": key, "number": number} for key, number in enumerate(NUMBERS, start=1)],
        )


@pytest.mark.postgres
def test_rows_are_the_same_after_a_journey_over_both_databases(
    tmp_path: Path, postgres_url: str
) -> None:
    urls = [f"sqlite:///{tmp_path / 'one'}", postgres_url, f"sqlite:///{tmp_path / 'two'}"]
    first = open_at(urls[0])
    fill(first)
    seen = []
    for step, url in enumerate(urls):
        database = first if step == 0 else open_at(url)
        with database.read() as connection:
            tables = tables_of(connection)
        if step:
            with database.write() as connection:
                for table in tables:
                    place = tmp_path / f"{step - 1}-{table.name}.parquet"
                    load_table(connection, database.dialect, table, place)
                database.dialect.after_load(connection, tables)
        with database.read() as connection:
            for table in tables:
                place = tmp_path / f"{step}-{table.name}.parquet"
                dump_table(connection, database.dialect, table, place)
        seen.append(
            {t.name: pl.read_parquet(tmp_path / f"{step}-{t.name}.parquet") for t in tables}
        )
        database.engine.dispose()
    assert sorted(seen[0]["ledger_info"]["value"]) == sorted(TEXTS)
    assert seen[0]["dispositions"]["input_tokens"].to_list() == list(NUMBERS)
    for name in sorted(seen[0]):
        assert seen[1][name].equals(seen[0][name]), name
        assert seen[2][name].equals(seen[0][name]), name


def test_a_dump_of_another_schema_is_refused(tmp_path: Path) -> None:
    old = open_at(f"sqlite:///{tmp_path / 'old'}", "0001")
    new = open_at(f"sqlite:///{tmp_path / 'new'}")
    place = tmp_path / "batches.parquet"
    with old.read() as connection:
        (table,) = [table for table in tables_of(connection) if table.name == "batches"]
        assert dump_table(connection, old.dialect, table, place) == 0
    with new.write() as connection:
        (table,) = [table for table in tables_of(connection) if table.name == "batches"]
        with pytest.raises(DumpUnusable, match=r"table batches .* endpoint"):
            load_table(connection, new.dialect, table, place)
    old.engine.dispose()
    new.engine.dispose()
