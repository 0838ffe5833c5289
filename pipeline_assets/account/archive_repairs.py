"""Mending what a published document lacks besides its search entry: its head, its thumbnail.

Belongs here: finding both and putting back what can be told from the ledger and the store. Does
not belong here: search entries (`representations.py`), and what is gone for good.
"""

from __future__ import annotations

import polars as pl
from sqlalchemy import Connection, text

from pipeline_assets.workloads.fields import searched_of
from resources.context import Context
from resources.ledger.archive import lock_archive
from resources.ledger.archive_changes import open_change
from resources.ledger.archive_visibility import show_again
from resources.ledger.engine import Ledger

HEAD_SCHEMA = {"document_id": pl.String, "document_no": pl.Int64, "entry_no": pl.Int64}
THUMBNAIL_SCHEMA = {
    "document_id": pl.String,
    "entry_no": pl.Int64,
    "checksum": pl.String,
    "thumbnail": pl.String,
}

# The open entry is what was published last: a head is only a pointer to it.
_HEADS = (
    "SELECT d.document_id, e.document_no, MAX(e.entry_no) FROM archive_entries e "
    "JOIN documents d ON d.document_no = e.document_no "
    "LEFT JOIN archive_heads h ON h.document_no = e.document_no "
    "WHERE e.valid_to IS NULL GROUP BY d.document_id, e.document_no "
    "HAVING COUNT(*) = 1 AND (MAX(h.entry_no) IS NULL OR MAX(h.entry_no) <> MAX(e.entry_no))"
)
_VISIBLE = (
    "SELECT d.document_id, e.entry_no, r.checksum, e.thumbnail FROM archive_heads h "
    "JOIN archive_entries e ON e.entry_no = h.entry_no "
    "JOIN records r ON r.record_no = e.record_no "
    "JOIN documents d ON d.document_no = e.document_no"
)
_PARSED = (
    "SELECT e.entry_no, p.thumbnail FROM archive_heads h "
    "JOIN archive_entries e ON e.entry_no = h.entry_no "
    "JOIN records r ON r.record_no = e.record_no "
    "JOIN parses p ON p.checksum = r.checksum AND p.thumbnail IS NOT NULL "
    "ORDER BY e.entry_no, p.parsed_at DESC"
)


def wrong_heads(connection: Connection, ledger: Ledger) -> pl.DataFrame:
    """Documents (`HEAD_SCHEMA`, the entry that is the right one) whose head does not show it."""
    return ledger.dialect.fetch(connection, _HEADS, HEAD_SCHEMA).sort("document_id")


def mend_heads(ledger: Ledger) -> int:
    """Point heads at the open entry of their document; returns how many."""
    with ledger.write() as connection:
        lock_archive(connection, ledger)
        wrong = wrong_heads(connection, ledger)
        ledger.dialect.stage(connection, "stage_mended", wrong.select("document_no", "entry_no"))
        connection.execute(
            text(
                "DELETE FROM archive_heads WHERE document_no IN "
                "(SELECT document_no FROM stage_mended)"
            )
        )
        connection.execute(
            text(
                "INSERT INTO archive_heads (document_no, entry_no) "
                "SELECT document_no, entry_no FROM stage_mended"
            )
        )
    return wrong.height


def lost_thumbnails(connection: Connection, context: Context) -> pl.DataFrame:
    """Visible entries without a thumbnail that is in the store (`THUMBNAIL_SCHEMA`).

    `thumbnail` is one that reading the same bytes gave and the store has; null if there is none.
    `checksum` names those bytes.
    """
    ledger = context.ledger
    visible = ledger.dialect.fetch(connection, _VISIBLE, THUMBNAIL_SCHEMA)
    lost = visible.filter(~_is_kept(context, visible["thumbnail"])).drop("thumbnail")
    if lost.is_empty():
        return visible.clear()
    parsed = ledger.dialect.fetch(
        connection, _PARSED, {"entry_no": pl.Int64, "thumbnail": pl.String}
    ).join(lost, on="entry_no", how="semi", maintain_order="left")
    kept = parsed.filter(_is_kept(context, parsed["thumbnail"]))
    newest = kept.unique("entry_no", keep="first", maintain_order=True)
    return lost.join(newest, on="entry_no", how="left").sort("document_id")


def mend_thumbnails(context: Context) -> int:
    """Name thumbnails again that the store has; returns how many.

    Entries are never edited: each document shows the same values again as a new entry, which names
    the thumbnail, and the change says why.
    """
    ledger = context.ledger
    cause = context.cause("its thumbnail was lost; this one is of the same bytes", "repair")
    with (
        ledger.write() as connection,
        open_change(connection, "restore", None, cause) as change,
    ):
        lock_archive(connection, ledger)
        found = lost_thumbnails(connection, context).drop_nulls("thumbnail")
        named = found.select("entry_no", "thumbnail")
        return show_again(
            connection, ledger, named["entry_no"], change, searched_of(context.settings), named
        )


def _is_kept(context: Context, digests: pl.Series) -> pl.Series:
    """Is each digest that of a thumbnail in the store? Each is looked for once."""
    kept = [
        digest
        for digest in digests.unique()
        if digest and context.artifacts.has("thumbnail", digest)
    ]
    return digests.is_in(kept)
