"""Conditions over many numbers."""

from __future__ import annotations

import sqlite3

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.ledger.numbers import is_one_of


@pytest.mark.parametrize(
    ("numbers", "condition"),
    [
        ([], "1 = 0"),
        ([5], "n BETWEEN 5 AND 5"),
        ([3, 1, 2, 2], "n BETWEEN 1 AND 3"),
        ([1, 4], "n BETWEEN 1 AND 4 AND n IN (1,4)"),
    ],
)
def test_the_shortest_condition(numbers: list[int], condition: str) -> None:
    assert is_one_of("n", pl.Series(numbers, dtype=pl.Int64)) == condition


@given(st.sets(st.integers(-20, 20)), st.sets(st.integers(-20, 20)))
def test_it_selects_exactly_these(present: set[int], wanted: set[int]) -> None:
    condition = is_one_of("n", pl.Series(sorted(wanted), dtype=pl.Int64))
    connection = sqlite3.connect(":memory:")
    try:
        connection.execute("CREATE TABLE t (n INTEGER)")
        connection.executemany("INSERT INTO t VALUES (?)", [(n,) for n in present])
        found = connection.execute(f"SELECT n FROM t WHERE {condition}").fetchall()
    finally:
        connection.close()
    assert {n for (n,) in found} == present & wanted
