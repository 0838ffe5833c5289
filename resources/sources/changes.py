"""What changed in a source between two scans: new, changed, removed, unchanged or unknown.

Here: set arithmetic over two frames of checksums. Not here: how they were scanned, and what follows
from a change.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass

import polars as pl

from resources.sources.document_id import check_source_name, escape_path, escape_path_exactly

#: The columns that both frames must have; further columns are ignored.
CHECKSUM_COLUMNS = {"document_id": pl.String, "checksum": pl.String}


class ChecksumFrameError(ValueError):
    """A frame does not hold one checksum for each document id."""


@dataclass(frozen=True, slots=True)
class Changes:
    """Document ids by what happened to them, each a sorted, unique series; no id is in two.

    Attributes:
        new: now has a checksum, had none before (also: was excluded before).
        changed: has another checksum than before.
        removed: had a checksum, and the walk saw that the document is no longer there.
        unchanged: has the same checksum as before.
        excluded_now: had a checksum, is still there, but is now excluded.
        unknown: had a checksum, but lies in a folder that was not listed: neither removed nor kept.
    """

    new: pl.Series
    changed: pl.Series
    removed: pl.Series
    unchanged: pl.Series
    excluded_now: pl.Series
    unknown: pl.Series


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


def partition_changes(
    previous: pl.DataFrame, current: pl.DataFrame, *, unlisted: Iterable[str] = ()
) -> Changes:
    """Compare two scans of a source.

    Args:
        previous: one row a document, columns `document_id` and `checksum` (null: excluded).
        current: the same for the scan now; must hold every document that was seen, the excluded
            ones too, or those count as removed.
        unlisted: prefixes of the ids that the scan now could not see (`unlisted_prefixes`).

    Raises:
        ChecksumFrameError: a column is missing or of another type, or a document id is missing or
            occurs twice.
    """
    before = _checked("previous", previous).rename({"checksum": "before"})
    now = _checked("current", current).rename({"checksum": "now"}).with_columns(seen=True)
    both = before.join(now, on="document_id", how="full", coalesce=True).sort("document_id")
    had, has = pl.col("before").is_not_null(), pl.col("now").is_not_null()
    seen = pl.col("seen").is_not_null()

    def ids(condition: pl.Expr) -> pl.Series:
        return both.filter(condition)["document_id"]

    gone = ids(had & ~seen)
    hidden = _starts_with_any(gone, unlisted)
    return Changes(
        new=ids(~had & has),
        changed=ids(had & has & (pl.col("before") != pl.col("now"))),
        removed=gone.filter(~hidden),
        unchanged=ids(had & has & (pl.col("before") == pl.col("now"))),
        excluded_now=ids(had & ~has & seen),
        unknown=gone.filter(hidden),
    )


def _starts_with_any(ids: pl.Series, prefixes: Iterable[str]) -> pl.Series:
    outermost = _without_nested(sorted(prefixes))
    return pl.Series([_has_prefix(text, outermost) for text in ids], dtype=pl.Boolean)


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


def _checked(what: str, frame: pl.DataFrame) -> pl.DataFrame:
    found = {name: frame.schema.get(name) for name in CHECKSUM_COLUMNS}
    if found != CHECKSUM_COLUMNS:
        raise ChecksumFrameError(
            f"the {what} frame has {found}; expected text columns document_id and checksum: "
            "select and cast them before comparing"
        )
    ids = frame["document_id"]
    if ids.null_count() or ids.n_unique() != len(ids):
        raise ChecksumFrameError(
            f"the {what} frame has {len(ids)} rows, {ids.n_unique()} distinct document ids and "
            f"{ids.null_count()} rows without one; expected one row for each document: remove the "
            "repeated rows before comparing"
        )
    return frame.select(list(CHECKSUM_COLUMNS))
