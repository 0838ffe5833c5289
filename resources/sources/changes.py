"""What becomes of listed documents: which must be read, and which the ledger knows as they are.

Belongs here: the decision over frames, and the ids below folders that were not listed. Does not
belong here: listing, reading, and what follows from a change.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

import polars as pl

from resources.sources.checksums import RACY_WINDOW_NS
from resources.sources.document_id import check_source_name, escape_path, escape_path_exactly

STAT = ("size", "mtime_ns", "device", "inode", "mark")
"""What tells cheaply that a document is as it was; compared before any checksum."""

KNOWN_SCHEMA = {
    "document_id": pl.String,
    "entry_no": pl.Int64,
    "size": pl.Int64,
    "mtime_ns": pl.Int64,
    "device": pl.String,
    "inode": pl.String,
    "mark": pl.String,
    "checksum": pl.String,
    "scanned_at_ns": pl.Int64,
    "excluded": pl.String,
}
"""What the newest snapshot holds of a document; `scanned_at_ns` is when the scan that read it
began, nanoseconds since 1970 by our clock."""

_TOLD_BY_LISTING = ("empty", "too_large", "id_collision", "name_too_long")
_KNOWN = "known_"
_EARLIER = "earlier_"


def decide(
    listed: pl.DataFrame,
    known: pl.DataFrame,
    earlier: pl.DataFrame,
    *,
    started_ns: int,
    settle_ns: int = 0,
) -> pl.DataFrame:
    """Say of every listed document what is to be done, without touching it.

    A document is taken to be as it was if its mark is the same or, where there is no mark, if size,
    time, device and inode are all unchanged and the time is at least `RACY_WINDOW_NS` before the
    scan that read it. Not seen is a change that keeps size and inode and then sets the old time
    back; a file system whose clock is behind ours by more than the window hides racy changes too.

    Args:
        listed: `LISTED_SCHEMA`, of one frame.
        known: `KNOWN_SCHEMA` of these documents.
        earlier: the same columns (`entry_no` not needed) of what an interrupted scan has read.
        started_ns: when this scan began.
        settle_ns: documents without a mark whose time is this close to the scan's start are left
            as they are; 0 leaves none.

    Returns:
        The listing with the known columns (prefix `known_`) and `what`: `same` (nothing to do),
        `unsettled` (left as it is), `told` (the listing says its new outcome or stat), `resumed`
        (the interrupted scan has read it) or `read`.
    """
    both = listed.join(_prefixed(known, _KNOWN), on="document_id", how="left").join(
        _prefixed(earlier, _EARLIER), on="document_id", how="left"
    )
    told = pl.col("checksum").is_not_null() | pl.col("excluded").is_not_null()
    known_told = same_outcome() & _same_stat(_KNOWN)
    known_read = _was_read(_KNOWN) & _holds(_KNOWN)
    same = pl.when(told).then(known_told).otherwise(known_read)
    what = (
        pl.when(same)
        .then(pl.lit("same"))
        .when(_fresh(started_ns, settle_ns))
        .then(pl.lit("unsettled"))
        .when(told)
        .then(pl.lit("told"))
        .when(
            pl.col(f"{_EARLIER}scanned_at_ns").is_not_null()
            & ~_listed_away(_EARLIER)
            & _holds(_EARLIER)
        )
        .then(pl.lit("resumed"))
        .otherwise(pl.lit("read"))
    )
    return both.select(*listed.columns, pl.selectors.starts_with(_KNOWN), what=what)


def same_outcome() -> pl.Expr:
    """Of what `decide` returned: the document is known with this checksum or this exclusion."""
    return (
        pl.col(f"{_KNOWN}entry_no").is_not_null()
        & pl.col("checksum").eq_missing(pl.col(f"{_KNOWN}checksum"))
        & pl.col("excluded").eq_missing(pl.col(f"{_KNOWN}excluded"))
    )


def refused_before() -> pl.Expr:
    """Of what `decide` returned: reading it failed when it was last tried, and it did not change.

    It is tried again with every scan, but nothing about it calls for a scan.
    """
    return (
        pl.col("excluded").is_null()
        & pl.col("checksum").is_null()
        & pl.col(f"{_KNOWN}excluded").is_not_null()
        & ~_listed_away(_KNOWN)
        & (_same_stat(_KNOWN) | _same_mark(_KNOWN))
    )


def known_as_read() -> pl.Expr:
    """Of documents that were read, joined with what was known: the same exclusion, the same stat.

    One with a checksum is never that: when it was read is worth remembering.
    """
    return pl.col("excluded").is_not_null() & same_outcome() & _same_stat(_KNOWN)


def unlisted_prefixes(source_name: str, unlisted: Iterable[bytes]) -> tuple[str, ...]:
    """The starts of all document ids that may lie below the folders of `WalkReport.unlisted`.

    Raises:
        DocumentIdError: the source name is not usable.
    """
    check_source_name(source_name)
    prefixes: set[str] = set()
    for folder in unlisted:
        if not folder:
            return (f"{source_name}/",)
        # Documents with an ambiguous name have an id of the exact form, which starts differently.
        prefixes.add(f"{source_name}/{escape_path(folder)}/")
        prefixes.add(f"{source_name}/{escape_path_exactly(folder)}/")
    return tuple(sorted(prefixes))


def starts_with_any(ids: pl.Series, prefixes: Iterable[str]) -> pl.Series:
    """Which of the ids start with one of the prefixes; quick for thousands of prefixes too."""
    outermost = _without_nested(sorted(prefixes))
    return pl.Series([_has_prefix(text, outermost) for text in ids], dtype=pl.Boolean)


def _prefixed(frame: pl.DataFrame, prefix: str) -> pl.DataFrame:
    return frame.select("document_id", pl.exclude("document_id").name.prefix(prefix))


def _same_stat(prefix: str) -> pl.Expr:
    return pl.all_horizontal(pl.col(name).eq_missing(pl.col(f"{prefix}{name}")) for name in STAT)


def _same_mark(prefix: str) -> pl.Expr:
    mark = pl.col("mark")
    return mark.is_not_null() & mark.eq_missing(pl.col(f"{prefix}mark"))


def _was_read(prefix: str) -> pl.Expr:
    """Reading gave an answer that only other content can change."""
    excluded = pl.col(f"{prefix}excluded")
    # A row with the same mark is empty or too large still; unreadable bytes may be readable now.
    final = excluded.is_not_null() & (excluded != "unreadable") & _is_unread_row()
    return pl.col(f"{prefix}checksum").is_not_null() | final


def _is_unread_row() -> pl.Expr:
    """A row that is listed by its mark alone: only reading it tells whether it is too large."""
    return pl.col("mark").is_not_null() & (pl.col("size") == 0)


def _listed_away(prefix: str) -> pl.Expr:
    """It was excluded for what a listing tells, and this listing does not tell it any more.

    A limit was raised, or another document with its name is gone: the bytes are the same.
    """
    told = pl.col(f"{prefix}excluded").is_in(_TOLD_BY_LISTING).fill_null(value=False)
    return told & ~_is_unread_row()


def _holds(prefix: str) -> pl.Expr:
    steady = pl.col("mtime_ns") <= pl.col(f"{prefix}scanned_at_ns") - RACY_WINDOW_NS
    # Rows are listed without their size, so a mark must do alone.
    return _same_mark(prefix) | (pl.col("mark").is_null() & _same_stat(prefix) & steady)


def _fresh(started_ns: int, settle_ns: int) -> pl.Expr:
    if settle_ns <= 0:
        return pl.lit(value=False)
    # A time far ahead of ours is of another clock and tells nothing: such a file is not left alone.
    close = pl.col("mtime_ns").is_between(
        started_ns - settle_ns, started_ns + settle_ns, closed="right"
    )
    return pl.col("mark").is_null() & close


def _without_nested(ordered: list[str]) -> list[str]:
    outermost: list[str] = []
    for prefix in ordered:
        if not outermost or not prefix.startswith(outermost[-1]):
            outermost.append(prefix)
    return outermost


def _has_prefix(text: str, outermost: list[str]) -> bool:
    # No prefix starts another, so only the greatest one that is not above the text can be its own.
    place = bisect_right(outermost, text)
    return place > 0 and text.startswith(outermost[place - 1])
