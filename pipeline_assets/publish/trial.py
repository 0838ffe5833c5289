"""A write transaction that may be for show only.

Belongs here: only that. A trial does everything that the real thing does and is rolled back at
its end, so that what it tells is what would happen.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Connection

from resources.ledger.engine import Ledger


class _Undo(Exception):
    """Ends the transaction of a trial."""


@contextmanager
def transaction(ledger: Ledger, *, trial: bool) -> Iterator[Connection]:
    """A write transaction; nothing of a trial is kept.

    Raises:
        LedgerError: the database refused; nothing was committed.
    """
    try:
        with ledger.write() as connection:
            yield connection
            if trial:
                raise _Undo
    except _Undo:
        return
