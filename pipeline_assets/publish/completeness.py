"""Invariant 8 read back: a published document has metadata, search entry and thumbnail.

Belongs here: finding what is missing. Does not belong here: repairing it
(`pipeline_assets/account`) and publishing.
"""

from __future__ import annotations

import polars as pl

from resources.context import Context

INCOMPLETE_SCHEMA = {
    "document_id": pl.String,
    "entry_no": pl.Int64,
    "missing": pl.String,
}
"""`missing`: metadata (a published record, a head or a search entry without its visible entry),
head (an entry that no head points at), search, or thumbnail (its file)."""

_VISIBLE_SCHEMA = {
    "document_id": pl.String,
    "entry_no": pl.Int64,
    "thumbnail": pl.String,
    "head": pl.Int64,
}


def incomplete_entries(context: Context) -> pl.DataFrame:
    """Every published document that lacks one of its representations.

    Returns:
        `INCOMPLETE_SCHEMA`, one row a missing thing, sorted; document_id is null for a search
        entry that belongs to nothing.
    """
    ledger = context.ledger
    with ledger.read() as connection:
        visible = ledger.dialect.fetch(
            connection,
            "SELECT d.document_id, e.entry_no, e.thumbnail, h.entry_no FROM archive_entries e "
            "JOIN documents d ON d.document_no = e.document_no "
            "LEFT JOIN archive_heads h ON h.document_no = e.document_no "
            "WHERE e.valid_to IS NULL",
            _VISIBLE_SCHEMA,
        )
        unbacked = ledger.dialect.fetch(
            connection,
            "SELECT d.document_id, h.entry_no FROM archive_heads h "
            "JOIN documents d ON d.document_no = h.document_no "
            "LEFT JOIN archive_entries e ON e.entry_no = h.entry_no AND e.valid_to IS NULL "
            "WHERE e.entry_no IS NULL "
            "UNION ALL "
            "SELECT d.document_id, NULL FROM records r "
            "JOIN record_state s ON s.record_no = r.record_no "
            "JOIN documents d ON d.document_no = r.document_no "
            "WHERE s.state = 'published' AND r.record_no NOT IN "
            "(SELECT record_no FROM archive_entries)",
            {"document_id": pl.String, "entry_no": pl.Int64},
        )
        searchable = ledger.dialect.search_entries(connection)
    stray = searchable.join(visible, on="entry_no", how="anti").select(
        pl.lit(None, dtype=pl.String).alias("document_id"), "entry_no"
    )
    parts = [
        _missing(unbacked, "metadata"),
        _missing(stray, "metadata"),
        _missing(visible.filter(pl.col("head").ne_missing(pl.col("entry_no"))), "head"),
        _missing(visible.join(searchable, on="entry_no", how="anti"), "search"),
        _missing(_without_thumbnail(context, visible), "thumbnail"),
    ]
    return pl.concat(parts).unique().sort("document_id", "entry_no", "missing")


def _without_thumbnail(context: Context, visible: pl.DataFrame) -> pl.DataFrame:
    digests = visible["thumbnail"].unique()
    gone = [digest for digest in digests if not context.artifacts.has("thumbnail", digest)]
    return visible.filter(pl.col("thumbnail").is_in(gone))


def _missing(rows: pl.DataFrame, what: str) -> pl.DataFrame:
    return rows.select("document_id", "entry_no", missing=pl.lit(what))
