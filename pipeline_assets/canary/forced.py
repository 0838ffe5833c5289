"""Failures that are forced on purpose, between a commit and the step that follows it.

Belongs here: a ledger that fails once at a chosen place. Does not belong here: which step is made
to fail (`live.py`) and whether it was mended (`prove.py`).

What is simulated is a process that ends: what it had committed stays, what it had not is undone,
and it goes no further. The step is then done again by the code that does it every day.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TypeVar

from sqlalchemy import Connection, Table, func, select

from resources.context import Context
from resources.ledger.engine import Ledger

T = TypeVar("T")


@dataclass(frozen=True)
class Failure:
    """A failure to force.

    Attributes:
        name: what is simulated.
        table: the first transaction that adds rows to it is the one.
        committed: does the transaction still commit? Else it is undone.
    """

    name: str
    table: Table
    committed: bool


class ForcedFailure(BaseException):
    """The step was made to end here; no step catches it, as none catches the end of its process."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.name)
        self.failure = failure


@dataclass(frozen=True)
class _FailingLedger(Ledger):
    """A ledger in which the first chosen transaction is the last thing that happens."""

    failures: tuple[Failure, ...]

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """As the ledger's own, until a chosen transaction."""
        failed: Failure | None = None
        with super().write() as connection:
            before = [_rows(connection, failure.table) for failure in self.failures]
            yield connection
            for failure, rows in zip(self.failures, before, strict=True):
                if _rows(connection, failure.table) > rows:
                    failed = failure
                    break
            if failed is not None and not failed.committed:
                raise ForcedFailure(failed)
        if failed is not None:
            raise ForcedFailure(failed)


def forced(
    context: Context,
    failures: Sequence[Failure],
    step: Callable[[Context], T],
    note: Callable[[str], None],
) -> T:
    """Do a step; at each chosen transaction that it comes to, it fails and is begun again.

    Args:
        context: the open resources.
        failures: to force, each once.
        step: what is done.
        note: is told the name of each failure that came about, before the step is begun again.

    Returns:
        What the step that came to its end said.
    """
    left = list(failures)
    while left:
        try:
            return step(replace(context, ledger=_failing(context.ledger, left)))
        except ForcedFailure as end:
            left.remove(end.failure)
            note(end.failure.name)
    return step(context)


def _failing(ledger: Ledger, failures: Sequence[Failure]) -> Ledger:
    return _FailingLedger(
        engine=ledger.engine,
        dialect=ledger.dialect,
        clock=ledger.clock,
        place=ledger.place,
        ledger_id=ledger.ledger_id,
        failures=tuple(failures),
    )


def _rows(connection: Connection, table: Table) -> int:
    return connection.execute(select(func.count()).select_from(table)).scalar_one()
