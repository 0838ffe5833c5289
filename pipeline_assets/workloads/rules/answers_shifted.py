"""Rule `answers_shifted`: answers of a batch that speak of other documents of the same batch.

An answer whose quotes do not stand in its own document is looked up in the others. One alone was
misrouted and is asked again; a batch with many of them went wrong as a whole, and a person decides
about all of it, since asking thousands again would pay twice for one fault.

The work is bounded: nothing is read where no quote is astray, and of a batch that went wrong no
more than a sample is looked up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from pipeline_assets.workloads.workload import BatchFindings, BatchRule, BatchView

MOST_LOOKED_UP = 3_000
"""Answers looked up in a batch, spread evenly over those that are astray."""
MOST_PAGES = 75_000
"""Pages read for it: three of each document of the largest batch."""
QUOTES = 4
"""Quotes of an answer that are looked up, the longest first."""
ROWS_AT_ONCE = 2_500
LEAST_SIGNS = 12
"""Letters and digits of a quote that can tell documents apart."""
COMMON = 5
"""Documents that may share a quote before it tells nothing."""
_MOST = 0.5  # of an answer's quotes, for a document to be the one that it speaks of

_FOUND_SCHEMA = {
    "row": pl.Int64,
    "field": pl.String,
    "note": pl.String,
    "severity": pl.String,
}
_FITS_SCHEMA = {"row": pl.Int64, "target": pl.Int64}
_ALONE = "the quotes stand in another document of the batch"
_WHOLE = "answers of this batch stand under other documents"


def make_rule(thresholds: Mapping[str, Any]) -> BatchRule:
    """The rule for the workload's thresholds.

    Args:
        thresholds: `answers_shifted`: `share` of a batch, and `least` answers of it, from which on
            the batch as a whole is taken to have gone wrong; `astray`, the share of its quotes
            that makes an answer suspect.
    """
    limits = thresholds["answers_shifted"]

    def check(batch: BatchView) -> BatchFindings:
        suspects = _suspects(batch, limits["astray"])
        if suspects.is_empty():
            return BatchFindings(_findings([]))
        quotes = _quotes(batch.astray, suspects["row"])
        asked = _spread(quotes["row"].unique().sort())
        fits = _fits(batch, quotes.filter(pl.col("row").is_in(asked.implode())))
        fits = _not_at_home(batch, fits, quotes)
        located = fits["row"].n_unique()
        # What the sample shows is taken to hold for the suspects that were not looked up.
        wrong = round(located / max(1, asked.len()) * quotes["row"].n_unique())
        total = batch.answers.height
        if wrong < max(limits["least"], limits["share"] * total):
            return BatchFindings(_findings([(row, _ALONE, "recover") for row in _rows(fits)]))
        return BatchFindings(
            _findings([(row, _WHOLE, "review") for row in batch.answers["row"]]),
            _pattern(fits, wrong, total),
        )

    return BatchRule(id="answers_shifted", version=1, severity="review", check=check)


def _suspects(batch: BatchView, share: float) -> pl.DataFrame:
    astray = pl.col("astray")
    return batch.answers.filter((astray > 0) & (astray >= share * pl.col("quotes")))


def _quotes(astray: pl.DataFrame, rows: pl.Series) -> pl.DataFrame:
    """row, page, quote: the longest quotes of each suspect, in the form they are looked for in."""
    return (
        astray.filter(pl.col("row").is_in(rows.implode()))
        .select("row", "page", quote=_flat(pl.col("quote")))
        .with_columns(signs=pl.col("quote").str.replace_all(r"[^\p{L}\p{N}]", "").str.len_chars())
        .filter(pl.col("signs") >= LEAST_SIGNS)
        .unique(["row", "page", "quote"], maintain_order=True)
        .sort("row", pl.col("signs"), descending=[False, True], maintain_order=True)
        .group_by("row", maintain_order=True)
        .head(QUOTES)
        .select("row", "page", "quote")
    )


def _flat(text: pl.Expr) -> pl.Expr:
    return text.str.to_lowercase().str.replace_all(r"\s+", " ").str.strip_chars()


def _spread(rows: pl.Series) -> pl.Series:
    if rows.len() <= MOST_LOOKED_UP:
        return rows
    step = rows.len() / MOST_LOOKED_UP
    return rows.gather([int(at * step) for at in range(MOST_LOOKED_UP)])


def _fits(batch: BatchView, quotes: pl.DataFrame) -> pl.DataFrame:
    """row, target: documents that hold at least half of what was looked up of an answer."""
    pages = _pages(quotes, batch.answers.height)
    quotes = quotes.filter(pl.col("page").is_in(pages))
    if quotes.is_empty():
        return pl.DataFrame(schema=_FITS_SCHEMA)
    wanted = quotes["quote"].unique()
    hits = [
        _hits(batch.page_texts(part.join(pl.DataFrame({"page": pages}), how="cross")), wanted)
        for part in batch.answers.select("row").iter_slices(ROWS_AT_ONCE)
    ]
    holders = pl.concat(hits)
    telling = holders.filter(pl.col("target").n_unique().over("page", "quote") <= COMMON)
    asked = quotes.group_by("row").agg(asked=pl.len())
    return (
        quotes.join(telling, on=["page", "quote"])
        .filter(pl.col("row") != pl.col("target"))
        .group_by("row", "target")
        .agg(held=pl.len())
        .join(asked, on="row")
        .filter(pl.col("held") >= _MOST * pl.col("asked"))
        .select("row", "target")
        .sort("row", "target")
    )


def _pages(quotes: pl.DataFrame, documents: int) -> list[int]:
    """The pages that most quotes name, as many as may be read of every document."""
    most = max(1, MOST_PAGES // max(1, documents))
    named = quotes.filter(pl.col("page") > 0).group_by("page").len()
    return named.sort("len", "page", descending=[True, False])["page"].head(most).to_list()


def _hits(texts: pl.DataFrame, wanted: pl.Series) -> pl.DataFrame:
    """target, page, quote: which page holds which quotes."""
    return (
        texts.select(
            target="row",
            page="page",
            quote=_flat(pl.col("text")).str.extract_many(wanted.implode(), overlapping=True),
        )
        .filter(pl.col("quote").list.len() > 0)
        .explode("quote", empty_as_null=False)
        .unique()
    )


def _not_at_home(batch: BatchView, fits: pl.DataFrame, quotes: pl.DataFrame) -> pl.DataFrame:
    """Without the answers whose quotes stand in their own document, on another page."""
    rows = fits["row"].unique().sort()
    own = quotes.filter(pl.col("row").is_in(rows.implode())).select("row", "quote").unique()
    held = [
        _hits(texts, own["quote"].unique()).select("quote", row="target")
        for part in _parts(rows)
        for texts in batch.document_texts(part)
    ]
    none = pl.DataFrame(schema={"quote": pl.String, "row": pl.Int64})
    at_home = (
        own.join(pl.concat([none, *held]).unique(), on=["row", "quote"], how="left", coalesce=False)
        .group_by("row")
        .agg(held=pl.col("row_right").is_not_null().mean())
        .filter(pl.col("held") >= _MOST)
    )
    return fits.join(at_home, on="row", how="anti", maintain_order="left")


def _parts(rows: pl.Series) -> list[pl.Series]:
    return [rows.slice(at, ROWS_AT_ONCE) for at in range(0, rows.len(), ROWS_AT_ONCE)]


def _rows(fits: pl.DataFrame) -> list[int]:
    return fits["row"].unique().sort().to_list()


def _findings(rows: list[tuple[int, str, str]]) -> pl.DataFrame:
    return pl.DataFrame(
        [(row, "document", note, severity) for row, note, severity in rows],
        schema=_FOUND_SCHEMA,
        orient="row",
    )


@dataclass(frozen=True)
class _Order:
    """An order that answers may have been put under the documents in."""

    rows: int
    told: str


def _pattern(fits: pl.DataFrame, wrong: int, total: int) -> str:
    """One sentence for an operator: how many answers are astray, and in which order they stand."""
    head = f"{wrong:,} of {total:,} answers"
    located = fits["row"].n_unique()
    best = max(_orders(fits, total), key=lambda order: order.rows)
    if 10 * best.rows >= 9 * located:
        return f"{head} fit {best.told}"
    return f"{head} fit other documents of the batch, in no simple order: they are mixed up"


def _orders(fits: pl.DataFrame, total: int) -> list[_Order]:
    pairs = list(fits.iter_rows())
    offset = Counter(target - row for row, target in pairs).most_common(1)[0]
    swapped = sum(target == row ^ 1 or target == row - 1 + 2 * (row % 2) for row, target in pairs)
    mirrored = sum(target == total - 1 - row for row, target in pairs)
    return [
        _Order(offset[1], _shift_told(offset[0])),
        _Order(swapped, "their neighbour's document: answers are swapped in pairs"),
        _Order(mirrored, "the document as far from the other end: the batch is in reverse order"),
    ]


def _shift_told(offset: int) -> str:
    places = "one place" if abs(offset) == 1 else f"{abs(offset):,} places"
    by = "one" if abs(offset) == 1 else f"{abs(offset):,}"
    side = "later" if offset > 0 else "earlier"
    return f"the document {places} {side}: the whole batch is shifted by {by}"
