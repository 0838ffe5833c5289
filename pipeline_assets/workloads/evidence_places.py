"""Where quotes stand in the parsed text.

The exact text is looked for first, all quotes at once; what that does not find is looked for
without regard to white space and case, and only what is left with everything folded, which costs
a thousand times more.

Belongs here: places alone. Does not belong here: what a missing place means (the rules).
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import starmap
from operator import contains

import polars as pl

from pipeline_assets.workloads.text_folding import find_quote, fold, hyphens_matter
from pipeline_assets.workloads.workload import PLACE_SCHEMA

_SPACES = re.compile(r"\s+")
Folds = tuple[str, str, str]
"""White space and case folded; all folded; all folded but for hyphens at line ends."""


def find_places(evidence: pl.DataFrame, page_texts: pl.DataFrame) -> pl.DataFrame:
    """The place of each quote, in the order of the evidence.

    A quote without a letter or digit stands everywhere and proves nothing: it is never found.

    Args:
        evidence: row, field, item, page, quote.
        page_texts: row, page, text of the pages that exist, each once.

    Returns:
        `PLACE_SCHEMA`; offsets count code points of the page's text.
    """
    joined = (
        evidence.join(page_texts, on=["row", "page"], how="left", maintain_order="left")
        .with_columns(
            quote_no=pl.int_range(pl.len(), dtype=pl.Int64).over("row", "field", "item"),
            has_page=pl.col("text").is_not_null(),
            wanted=pl.col("quote").str.strip_chars(),
        )
        .with_columns(
            worded=pl.col("wanted").str.contains(r"[\p{L}\p{N}]"),
        )
        .with_columns(start=_exact_start())
        .with_row_index("place")
    )
    missing = joined.filter(pl.col("start").is_null() & pl.col("worded") & pl.col("has_page"))
    folded = _folded(missing)
    return (
        joined.with_columns(end=pl.col("start") + pl.col("wanted").str.len_chars())
        .join(folded, on="place", how="left", maintain_order="left")
        .with_columns(
            start=pl.coalesce("start", "folded_start"), end=pl.coalesce("end", "folded_end")
        )
        .select(pl.col(name).cast(kind) for name, kind in PLACE_SCHEMA.items())
    )


def place_in(text: str, quote: str) -> tuple[int, int] | None:
    """The code points (start, end) of a quote in one page's text, or None.

    As `find_quote`, and faster where only white space and case differ.
    """
    wanted = _SPACES.sub(" ", quote.strip()).lower()
    if not any(character.isalnum() for character in wanted):
        return None
    flat = _SPACES.sub(" ", text)
    lower = flat.lower()
    at = lower.find(wanted)
    # Few letters are longer in lower case, and would shift what follows them.
    if at < 0 or len(lower) != len(flat):
        return find_quote(text, quote)
    return _unflattened(text, at, at + len(wanted) - 1)


def folds(text: str) -> Folds:
    """A text in the forms that `place_in` compares, for many quotes against one page."""
    folded = fold(text)
    kept = fold(text, keep_line_end_hyphens=True) if hyphens_matter(text) else folded
    return " ".join(text.split()).lower(), folded, kept


def may_stand(page: Folds, quote: Folds) -> bool:
    """May a page with a quote's words have a place for it? Never false where `place_in` has one."""
    return any(starmap(contains, zip(page, quote, strict=True)))


def _exact_start() -> pl.Expr:
    """Where the quote begins as it stands, in code points; null where it does not."""
    byte = pl.col("text").str.find(pl.col("wanted"), literal=True)
    before = pl.col("text").cast(pl.Binary).bin.slice(0, byte).cast(pl.String).str.len_chars()
    # The slice up to a byte that is null is the whole text.
    return pl.when(byte.is_not_null() & pl.col("worded")).then(before).cast(pl.Int64)


def _folded(missing: pl.DataFrame) -> pl.DataFrame:
    # The quotes of a page follow one another, and folding it is what costs.
    folded = lru_cache(maxsize=16)(folds)
    found = [
        (place, *spot)
        for place, text, quote in missing.select("place", "text", "wanted").iter_rows()
        if may_stand(folded(text), folds(quote)) and (spot := place_in(text, quote)) is not None
    ]
    return pl.DataFrame(
        found,
        schema={"place": pl.UInt32, "folded_start": pl.Int64, "folded_end": pl.Int64},
        orient="row",
    )


def _unflattened(text: str, first: int, last: int) -> tuple[int, int]:
    """Offsets in a text for those of its first and last character with white space collapsed."""
    shift, start = 0, None
    for run in _SPACES.finditer(text):
        at = run.start() - shift
        if start is None and first <= at:
            start = first + shift
        if last <= at:
            break
        shift += len(run.group()) - 1
    return (first + shift if start is None else start), last + shift + 1
