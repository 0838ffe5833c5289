"""What is visible, changed set by set: former entries shown again, and records taken out.

Belongs here: reading the histories of documents and acting on what `archive_history.py` decides.
Does not belong here: new values (`archive.py` writes them, `publish` chooses them).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

import polars as pl
from sqlalchemy import Connection

from resources.ledger.archive import OPERATION, end_entries, lock_archive, show_entries
from resources.ledger.archive_changes import PUTS_BACK, OpenChange, known_change
from resources.ledger.archive_content import SearchedOf, search_entries_by_workload
from resources.ledger.archive_history import Entry, before
from resources.ledger.engine import Ledger

SHARD = 25_000
"""Documents whose entries are held at once; the transaction may span many shards."""

_VISIBLE_SCHEMA = {"document_no": pl.Int64, "entry_no": pl.Int64}
_HISTORY_SCHEMA = {
    "document_no": pl.Int64,
    "entry_no": pl.Int64,
    "archive_version": pl.Int64,
    "version_no": pl.Int64,
    "record_no": pl.Int64,
    "content_digest": pl.String,
    "opened_by": pl.Int64,
    "closed_by": pl.Int64,
    "kind": pl.String,
    "stands": pl.Int64,
}
_FORMER_SCHEMA = {
    "entry_no": pl.Int64,
    "record_no": pl.Int64,
    "document_no": pl.Int64,
    "version_no": pl.Int64,
    "workload": pl.String,
    "request_digest": pl.String,
    "content": pl.String,
    "values_digest": pl.String,
    "thumbnail": pl.String,
    "promotion": pl.Int64,
}


# An attempt that a replay makes takes nothing back of what was published before it, whatever comes
# of it: such a record left `published` for `prepared`, and not by a rejection or a removal.
_STANDS = (
    "CASE WHEN s.state = 'published' THEN 1 WHEN s.state = 'withdrawn' THEN 0 "
    "WHEN 'prepared' = (SELECT m.to_state FROM move_members k "
    "JOIN moves m ON m.move_no = k.move_no WHERE k.record_no = e.record_no "
    "AND m.from_state = 'published' ORDER BY m.move_no DESC LIMIT 1) THEN 1 ELSE 0 END"
)


class Reversal(NamedTuple):
    """What becomes of documents whose visible entry is unwanted.

    Attributes:
        again: entry_no of former entries to show again.
        ended: document_no, entry_no of visible entries that nothing takes the place of.
    """

    again: pl.Series
    ended: pl.DataFrame


def visible_of_version(connection: Connection, ledger: Ledger, version_no: int) -> pl.DataFrame:
    """document_no, entry_no of the visible entries of a processing version, by document."""
    return ledger.dialect.fetch(
        connection,
        "SELECT h.document_no, h.entry_no FROM archive_heads h "
        "JOIN archive_entries e ON e.entry_no = h.entry_no WHERE e.version_no = ?",
        _VISIBLE_SCHEMA,
        (version_no,),
    ).sort("document_no")


def visible_of_document(connection: Connection, ledger: Ledger, document_no: int) -> pl.DataFrame:
    """document_no, entry_no of what a document shows; empty where it is not in the archive."""
    return ledger.dialect.fetch(
        connection,
        "SELECT document_no, entry_no FROM archive_heads WHERE document_no = ?",
        _VISIBLE_SCHEMA,
        (document_no,),
    )


def visible_of_records(connection: Connection, ledger: Ledger, records: pl.Series) -> pl.DataFrame:
    """document_no, entry_no of the visible entries of records, by document."""
    ledger.dialect.stage(
        connection, "stage_unwanted", pl.DataFrame({"record_no": records.cast(pl.Int64)})
    )
    return ledger.dialect.fetch(
        connection,
        "SELECT h.document_no, h.entry_no FROM stage_unwanted u "
        "JOIN records r ON r.record_no = u.record_no "
        "JOIN archive_heads h ON h.document_no = r.document_no "
        "JOIN archive_entries e ON e.entry_no = h.entry_no AND e.record_no = r.record_no",
        _VISIBLE_SCHEMA,
    ).sort("document_no")


def histories(
    connection: Connection, ledger: Ledger, documents: pl.Series
) -> Iterator[tuple[int, list[Entry]]]:
    """Each document with every entry of it by archive version; a shard of documents at most."""
    ledger.dialect.stage(
        connection, "stage_history", pl.DataFrame({"document_no": documents.cast(pl.Int64)})
    )
    rows = ledger.dialect.fetch(
        connection,
        "SELECT e.document_no, e.entry_no, e.archive_version, "  # noqa: S608 - our own words
        "e.version_no, e.record_no, e.content_digest, e.change_no, e.closed_by, c.kind, "
        f"{_STANDS} FROM stage_history h "
        "JOIN archive_entries e ON e.document_no = h.document_no "
        "LEFT JOIN archive_changes c ON c.change_no = e.change_no "
        "LEFT JOIN record_state s ON s.record_no = e.record_no",
        _HISTORY_SCHEMA,
    ).sort("document_no", "archive_version")
    for document_no, group in groupby(rows.iter_rows(named=True), itemgetter("document_no")):
        yield document_no, [_entry(row) for row in group]


def _entry(row: dict[str, Any]) -> Entry:
    return Entry(
        entry_no=row["entry_no"],
        archive_version=row["archive_version"],
        version_no=row["version_no"],
        record_no=row["record_no"],
        content_digest=row["content_digest"],
        opened_by=row["opened_by"],
        closed_by=row["closed_by"],
        put_back=row["kind"] in PUTS_BACK,
        publishable=row["stands"] == 1,
    )


def plan_reversal(
    connection: Connection,
    ledger: Ledger,
    visible: pl.DataFrame,
    unwanted: Callable[[Entry, Entry], bool],
) -> Reversal:
    """What a shard of documents goes back to.

    Args:
        connection: a write transaction that holds the archive's lock.
        ledger: the ledger.
        visible: document_no, entry_no of visible entries that are to go.
        unwanted: is an earlier entry (the first argument) passed over, where the visible entry
            (the second) is to go?
    """
    again, ended = [], []
    shown = dict(visible.iter_rows())
    for document_no, history in histories(connection, ledger, visible["document_no"]):
        at = next(i for i, entry in enumerate(history) if entry.entry_no == shown[document_no])
        present = history[at]

        def passed_over(earlier: Entry, present: Entry = present) -> bool:
            return unwanted(earlier, present)

        found = before(history, at, passed_over)
        if found is None:
            ended.append(document_no)
        else:
            again.append(found.entry_no)
    return Reversal(
        pl.Series(again, dtype=pl.Int64),
        visible.filter(pl.col("document_no").is_in(ended)),
    )


def show_again(
    connection: Connection,
    ledger: Ledger,
    entries: pl.Series,
    change: OpenChange,
    searched_of: SearchedOf,
    thumbnails: pl.DataFrame | None = None,
) -> int:
    """Publish former entries again, each as a new entry and a new delivery of its record.

    Args:
        connection: the write transaction.
        ledger: the ledger.
        entries: entry_no, at most one of a document.
        change: the change that it is part of; it counts what is shown and ended.
        searched_of: what is searched in the content of each workload.
        thumbnails: entry_no, thumbnail of those that get another thumbnail.

    Returns:
        How many entries became visible.
    """
    lock_archive(connection, ledger)
    for part in pl.DataFrame({"entry_no": entries.cast(pl.Int64)}).iter_slices(SHARD):
        former = _former(connection, ledger, part)
        if thumbnails is not None:
            former = former.update(thumbnails, on="entry_no")
        candidates = search_entries_by_workload(former, searched_of)
        replaced = show_entries(connection, ledger, candidates, change.at, change.number)
        change.count(candidates.height, replaced)
    return entries.len()


def _former(connection: Connection, ledger: Ledger, entries: pl.DataFrame) -> pl.DataFrame:
    """Former entries with the number that their record is promoted with next.

    The thumbnail is the one that their record named last: an earlier one may have been lost.
    """
    ledger.dialect.stage(connection, "stage_again", entries)
    return ledger.dialect.fetch(
        connection,
        "SELECT e.entry_no, e.record_no, e.document_no, e.version_no, v.workload, "
        "d.request_digest, e.content, e.content_digest, (SELECT t.thumbnail FROM archive_entries t "
        "WHERE t.entry_no = (SELECT MAX(u.entry_no) FROM archive_entries u "
        "WHERE u.document_no = e.document_no AND u.record_no = e.record_no)), "
        "(SELECT MAX(n.promotion) FROM deliveries n WHERE n.record_no = e.record_no "
        "AND n.operation = d.operation) + 1 FROM stage_again s "
        "JOIN archive_entries e ON e.entry_no = s.entry_no "
        "JOIN processing_versions v ON v.version_no = e.version_no "
        "JOIN deliveries d ON d.record_no = e.record_no AND d.operation = ? "
        "AND d.entry_no = e.entry_no",
        _FORMER_SCHEMA,
        (OPERATION,),
    ).sort("entry_no")


def accepted_again(connection: Connection, ledger: Ledger, delivered: pl.DataFrame) -> pl.Series:
    """Of delivered records, the entries whose values are to be seen again.

    Whoever rejected a record took it out of the archive; it was tried again and accepted with the
    same values. Or another attempt had shown other values meanwhile, and the newest one gave the
    earlier ones again. Without this their used delivery key would keep them out for good. What a
    reviewer corrected, or a rollback put back, stays.

    Args:
        connection: the write transaction.
        ledger: the ledger.
        delivered: record_no and entry_no of their first delivery.
    """
    if delivered.is_empty():
        return pl.Series(dtype=pl.Int64)
    ledger.dialect.stage(connection, "stage_delivered", delivered.select("record_no", "entry_no"))
    return ledger.dialect.fetch(
        connection,
        "SELECT s.entry_no FROM stage_delivered s JOIN records r ON r.record_no = s.record_no "
        "JOIN archive_entries f ON f.entry_no = s.entry_no "
        "LEFT JOIN archive_heads h ON h.document_no = r.document_no "
        "LEFT JOIN archive_entries e ON e.entry_no = h.entry_no AND e.record_no = r.record_no "
        "LEFT JOIN archive_changes c ON c.change_no = e.change_no "
        "WHERE (e.entry_no IS NULL AND EXISTS (SELECT 1 FROM move_members k "
        "JOIN moves m ON m.move_no = k.move_no "
        "WHERE k.record_no = s.record_no AND m.to_state = 'rejected')) "
        "OR (e.content_digest <> f.content_digest AND c.kind IN ('publish', 'promote'))",
        {"entry_no": pl.Int64},
    )["entry_no"]


def reverse(
    connection: Connection,
    ledger: Ledger,
    visible: pl.DataFrame,
    unwanted: Callable[[Entry, Entry], bool],
    back: OpenChange,
    removal: OpenChange,
    searched_of: SearchedOf,
) -> None:
    """Take visible entries away, shard by shard: each document goes back, or leaves the archive.

    Args:
        connection: the write transaction.
        ledger: the ledger.
        visible: document_no, entry_no of the entries that are to go.
        unwanted: see `plan_reversal`.
        back: the change of documents that show earlier values again.
        removal: the change of documents that leave the archive; it may be the same one.
        searched_of: what is searched in the content of each workload.
    """
    lock_archive(connection, ledger)
    for part in visible.iter_slices(SHARD):
        plan = plan_reversal(connection, ledger, part, unwanted)
        show_again(connection, ledger, plan.again, back, searched_of)
        if not plan.ended.is_empty():
            end_entries(connection, ledger, plan.ended, removal.at, removal.number)
            removal.count(0, plan.ended.height)


def hide_records(
    connection: Connection,
    ledger: Ledger,
    records: pl.Series,
    change_no: int,
    searched_of: SearchedOf,
) -> int:
    """End the visible entries of records that may not be seen any more.

    Each document shows again what it showed before, of another record that is still published and
    with other values; where there is no such entry, it leaves the archive. Call it before the
    records are moved: whoever publishes takes the archive's lock before that of a hash chain.

    Args:
        connection: the write transaction that also moves the records.
        ledger: the ledger.
        records: record_no; those that are not visible change nothing.
        change_no: the change, recorded by `record_change`; its counts are set here.
        searched_of: what is searched in the content of each workload.

    Returns:
        How many documents changed.
    """
    lock_archive(connection, ledger)
    hidden = set(records)
    visible = visible_of_records(connection, ledger, records)

    def unwanted(earlier: Entry, present: Entry) -> bool:
        return earlier.record_no in hidden or earlier.content_digest == present.content_digest

    with known_change(connection, change_no) as change:
        reverse(connection, ledger, visible, unwanted, change, change, searched_of)
    return visible.height
