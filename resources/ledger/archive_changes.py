"""Changes of the archive: every change of what people see, with who wanted it and why.

Belongs here: the rows of `archive_changes`. Does not belong here: the entries that a change shows
or ends (`archive.py`), which name it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal

from sqlalchemy import Connection, func, insert, select, update

from resources.ledger.moves import Cause
from resources.ledger.schema import archive_changes

ChangeKind = Literal[
    "publish", "correction", "restore", "promote", "rollback", "removal", "erasure"
]
PUTS_BACK: tuple[ChangeKind, ...] = ("rollback", "removal")
"""Changes that undo: what they show stands for an earlier entry, and what they end was unwanted."""


def is_accepted_value(delivery: str, change: str) -> str:
    """The condition that an entry shows what was accepted then, and not what it was put back to.

    Values that were delivered before and are accepted again have a later promotion number.

    Args:
        delivery: alias of the entry's row of `deliveries`.
        change: alias of the row of `archive_changes` that showed it, which may be missing.
    """
    return f"({delivery}.promotion = 1 OR {change}.kind IN ('publish', 'correction', 'promote'))"


class OpenChange:
    """A change in the making: its row is written when its first entry needs the number.

    A change without any effect leaves no row. Ask for its time and number under the archive's lock
    only.

    Args:
        connection: the write transaction that the change is made in.
        begun_at: when its maker began, in the ledger's text form.
        write: writes its row with the time of the change, and returns its number.
    """

    def __init__(self, connection: Connection, begun_at: str, write: Callable[[str], int]) -> None:
        self._connection = connection
        self._begun_at = begun_at
        self._write = write
        self._at: str | None = None
        self._number: int | None = None
        self.shown = 0
        self.hidden = 0

    @property
    def at(self) -> str:
        """When it happens: never before another change.

        Whoever waited for the archive's lock, or has a clock that is behind, would otherwise end
        an entry before it began, and a document would have shown two at once.
        """
        if self._at is None:
            newest = self._connection.execute(select(func.max(archive_changes.c.changed_at)))
            self._at = max(self._begun_at, newest.scalar() or "")
        return self._at

    @property
    def number(self) -> int:
        """Its number, for the entries that name it."""
        if self._number is None:
            self._number = self._write(self.at)
        return self._number

    def count(self, shown: int, hidden: int) -> None:
        """So many more entries became visible, and so many ended."""
        self.shown += shown
        self.hidden += hidden

    def close(self) -> None:
        """Write what was counted."""
        if self._number is not None:
            count_change(self._connection, self._number, self.shown, self.hidden)


@contextmanager
def open_change(
    connection: Connection, kind: ChangeKind, version_no: int | None, cause: Cause
) -> Iterator[OpenChange]:
    """A change for the length of a block; what it counted is written at the end."""
    change = OpenChange(
        connection,
        cause.at,
        lambda at: record_change(connection, kind, version_no, cause.reason, cause.actor, at, 0, 0),
    )
    yield change
    change.close()


@contextmanager
def known_change(connection: Connection, change_no: int) -> Iterator[OpenChange]:
    """The same for a change whose row was written before."""

    def known(at: str) -> int:
        connection.execute(
            update(archive_changes)
            .where(archive_changes.c.change_no == change_no)
            .values(changed_at=at)
        )
        return change_no

    change = OpenChange(connection, time_of_change(connection, change_no), known)
    yield change
    change.close()


def record_change(
    connection: Connection,
    kind: ChangeKind,
    version_no: int | None,
    reason: str,
    actor: str,
    at: str,
    shown: int,
    hidden: int,
) -> int:
    """Write the row of a change; returns its number.

    Args:
        connection: the write transaction that the change is made in.
        kind: what it is.
        version_no: whose processing version; None where it is of several.
        reason: why, for people.
        actor: who wanted it.
        at: when, in the ledger's text form.
        shown: how many entries become visible.
        hidden: how many entries end, those that are replaced included.
    """
    key = connection.execute(
        insert(archive_changes).values(
            kind=kind,
            version_no=version_no,
            reason=reason,
            actor=actor,
            changed_at=at,
            shown=shown,
            hidden=hidden,
        )
    ).inserted_primary_key
    assert key is not None  # noqa: S101 - both databases return the key of a single insert
    return int(key[0])


def count_change(connection: Connection, change_no: int, shown: int, hidden: int) -> None:
    """Write how much a change showed and ended, once that is known."""
    connection.execute(
        update(archive_changes)
        .where(archive_changes.c.change_no == change_no)
        .values(shown=shown, hidden=hidden)
    )


def time_of_change(connection: Connection, change_no: int) -> str:
    """When a change was made, in the ledger's text form."""
    return str(
        connection.execute(
            select(archive_changes.c.changed_at).where(archive_changes.c.change_no == change_no)
        ).scalar_one()
    )
