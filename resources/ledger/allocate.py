"""Handing out integer keys in blocks, so that a whole shard gets its keys in one statement.

Belongs here: only that. Inside a write transaction; concurrent blocks of one table wait for
each other to the commit.
"""

from __future__ import annotations

from sqlalchemy import Column, Connection, func, select

from resources.ledger.dialect import Dialect


def next_number(connection: Connection, dialect: Dialect, column: Column[int]) -> int:
    """The first free number of `column`; numbers from there on are the caller's to use."""
    dialect.lock_chain(connection, f"allocate:{column.table.name}")
    newest = connection.execute(select(func.max(column))).scalar()
    return int(newest or 0) + 1
