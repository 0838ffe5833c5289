"""Every figure of one answer from one transaction: numbers that belong together, read together.

Belongs here: only that. Does not belong here: what is read (whoever needs it).

Functions that read open a transaction of their own, which is right for each of them alone. Asked
one after another they would see a ledger that moves on in between, and their numbers would not
add up.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from typing import Any

from sqlalchemy import Connection

from resources.context import Context
from resources.ledger.engine import Ledger


@dataclass(frozen=True)
class _LedgerOfOneMoment(Ledger):
    """A ledger whose every read goes through one open transaction.

    Attributes:
        moment: that transaction's connection.
    """

    moment: Connection

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """The open transaction, whoever asks and however deep."""
        yield self.moment


@contextmanager
def at_one_moment(context: Context) -> Iterator[Context]:
    """The context with a ledger that stands still for the length of the block.

    Only for reading, and only in the thread that opened it: a write goes through a transaction of
    its own, and nothing of it is seen inside the block.

    Raises:
        LedgerUnreachable: the database does not answer.
    """
    with context.ledger.read() as connection:
        known: dict[str, Any] = {
            field.name: getattr(context.ledger, field.name) for field in fields(Ledger)
        }
        yield replace(context, ledger=_LedgerOfOneMoment(**known, moment=connection))
