"""How much of a disk the ledger takes."""

from __future__ import annotations

import polars as pl
import pytest

from resources.ledger import sqlite
from resources.ledger.engine import Ledger, open_ledger
from resources.ledger.schema import ledger_info


def used(ledger: Ledger) -> int:
    with ledger.read() as connection:
        return ledger.dialect.bytes_used(connection)


def test_it_grows_with_the_rows(ledger: Ledger) -> None:
    before = used(ledger)
    rows = pl.DataFrame({"name": [f"row {n}" for n in range(2_000)], "value": "v" * 1_000})
    with ledger.write() as connection:
        ledger.dialect.load(connection, ledger_info, rows)
    after = used(ledger)
    assert before > 100_000, "empty tables and indexes take pages too"
    # Long equal values are stored compressed by PostgreSQL.
    least = 1_500_000 if ledger.dialect.name == "sqlite" else 50_000
    assert before + least < after < before + 20_000_000


def test_a_ledger_in_memory_has_pages() -> None:
    engine = sqlite.DIALECT.make_engine("sqlite://")
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE t (n INTEGER)")
        found = sqlite.DIALECT.bytes_used(connection)
    engine.dispose()
    assert found > 0
    assert found % 512 == 0


@pytest.mark.postgres
def test_what_others_keep_in_the_same_database_does_not_count(postgres_url: str) -> None:
    ledger = open_ledger(postgres_url)
    before = used(ledger)
    with ledger.write() as connection:
        connection.exec_driver_sql("CREATE TABLE of_others AS SELECT generate_series(1, 50000) n")
    assert used(ledger) == before
    ledger.close()
