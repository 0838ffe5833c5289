"""Going back by command: a version's values, or a document's, give way to what was shown before.

Belongs here: what a rollback shows or removes. Does not belong here: walking back through a
document's entries (`resources/ledger/archive_history.py`), and promoting again (`promote.py`).

The archive is append-only: going back publishes the earlier values again, as a new entry. Where
a document showed nothing before, it leaves the archive; nothing is deleted.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl
from sqlalchemy import Connection

from pipeline_assets.publish.publish_accepted import is_manual
from pipeline_assets.publish.trial import transaction
from pipeline_assets.workloads.fields import searched_of
from resources.context import Context
from resources.garbage import without_garbage_collector
from resources.ledger.archive import lock_archive
from resources.ledger.archive_changes import OpenChange, open_change
from resources.ledger.archive_content import SearchedOf
from resources.ledger.archive_history import Entry
from resources.ledger.archive_visibility import (
    histories,
    reverse,
    show_again,
    visible_of_document,
    visible_of_version,
)
from resources.ledger.engine import Ledger
from resources.ledger.versions import journal_operating


class NoSuchArchiveVersion(LookupError):
    """The document never had this archive version."""

    def __init__(self, document_id: str, wanted: int, newest: int) -> None:
        known = f"1 to {newest}" if newest else "none: it was never published"
        super().__init__(
            f"{document_id} has no archive version {wanted}; it has {known}. `tallybook explain "
            f"{document_id!r}` shows them. Nothing was changed."
        )


class NotShowable(Exception):
    """The record of an archive version is no longer published."""

    def __init__(self, document_id: str, wanted: int) -> None:
        super().__init__(
            f"archive version {wanted} of {document_id} cannot be shown again: its record was "
            "rejected, withdrawn, or is being processed again. Nothing was changed."
        )


@dataclass(frozen=True)
class RollbackReport:
    """What a rollback changed.

    Attributes:
        put_back: documents that show earlier values again.
        removed: documents that showed nothing before, and left the archive.
        made_manual: the version publishes by command only, from now on.
    """

    put_back: int
    removed: int
    made_manual: bool = False

    @property
    def changed(self) -> int:
        """Documents that show something else now, or nothing; 0 where there was nothing to do."""
        return self.put_back + self.removed


def rollback_version(
    context: Context, version_no: int, reason: str, *, trial: bool = False
) -> RollbackReport:
    """Take back every visible entry of a version, in one transaction.

    The version's promote policy becomes `manual` in the same transaction, so that the next run
    does not publish it again.

    Args:
        context: the open resources.
        version_no: the version.
        reason: why, for the record.
        trial: tell what would happen, and change nothing.
    """
    ledger = context.ledger
    cause = context.cause(reason, "rollback")

    def unwanted(earlier: Entry, _present: Entry) -> bool:
        return earlier.version_no == version_no

    with (
        transaction(ledger, trial=trial) as connection,
        open_change(connection, "rollback", version_no, cause) as back,
        open_change(connection, "removal", version_no, cause) as removal,
        without_garbage_collector(),
    ):
        lock_archive(connection, ledger)
        visible = visible_of_version(connection, ledger, version_no)
        reverse(connection, ledger, visible, unwanted, back, removal, searched_of(context.settings))
        made_manual = not visible.is_empty() and not is_manual(connection, version_no)
        if made_manual:
            journal_operating(connection, version_no, "promote", "manual", cause)
        return RollbackReport(back.shown, removal.hidden, made_manual)


def rollback_document(
    context: Context,
    document_no: int,
    document_id: str,
    reason: str,
    to: int | None = None,
    *,
    trial: bool = False,
) -> RollbackReport:
    """Let one document show what it showed before, or a certain archive version.

    Args:
        context: the open resources.
        document_no: the document.
        document_id: the same for messages.
        reason: why, for the record.
        to: the archive version to show again; the values before the visible ones by default.
        trial: tell what would happen, and change nothing.

    Raises:
        NoSuchArchiveVersion: the document never had it.
        NotShowable: the record of that archive version is no longer published.
    """
    ledger, searched = context.ledger, searched_of(context.settings)
    cause = context.cause(reason, "rollback")
    with (
        transaction(ledger, trial=trial) as connection,
        open_change(connection, "rollback", None, cause) as back,
        open_change(connection, "removal", None, cause) as removal,
    ):
        lock_archive(connection, ledger)
        visible = visible_of_document(connection, ledger, document_no)
        if to is not None:
            wanted = _wanted(connection, ledger, document_no, document_id, to)
            _show(connection, ledger, wanted, visible, back, searched)
        else:
            reverse(connection, ledger, visible, Entry.repeats, back, removal, searched)
        return RollbackReport(back.shown, removal.hidden)


def _wanted(
    connection: Connection, ledger: Ledger, document_no: int, document_id: str, to: int
) -> tuple[Entry, list[Entry]]:
    """The entry of an archive version, with the document's history."""
    history = next(
        (entries for _, entries in histories(connection, ledger, pl.Series([document_no]))),
        [],
    )
    found = next((entry for entry in history if entry.archive_version == to), None)
    if found is None:
        raise NoSuchArchiveVersion(document_id, to, history[-1].archive_version if history else 0)
    if not found.publishable:
        raise NotShowable(document_id, to)
    return found, history


def _show(
    connection: Connection,
    ledger: Ledger,
    wanted: tuple[Entry, list[Entry]],
    visible: pl.DataFrame,
    back: OpenChange,
    searched: SearchedOf,
) -> None:
    """Show an entry again, unless its values are the visible ones."""
    entry, history = wanted
    shown = next(
        (other for other in history if other.entry_no in visible["entry_no"].to_list()), None
    )
    if shown is None or not entry.repeats(shown):
        show_again(connection, ledger, pl.Series([entry.entry_no]), back, searched)
