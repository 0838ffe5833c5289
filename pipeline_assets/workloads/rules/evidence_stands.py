"""Rule `evidence_stands`: every quote stands on the page that it names.

The places were looked for already. Of a quote that has none, the document's other pages say
whether the page is wrong or the words are; for a batch that is wrong as a whole that is not asked
of every record.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from pipeline_assets.workloads.evidence_places import folds, may_stand, place_in
from pipeline_assets.workloads.workload import Rule, Shard

LOOKED_THROUGH = 500
"""Records of a shard whose other pages are read: some tens of milliseconds each."""
_NAMED_PAGES = 3
_WORDED = r"[\p{L}\p{N}]"
_SCHEMA = {"row": pl.Int64, "field": pl.String, "note": pl.String}


def check(shard: Shard) -> pl.DataFrame:
    """A finding for every field that has a quote which is not on its page."""
    astray = shard.places.filter(pl.col("start").is_null()).select("row", "field", "page", "quote")
    if astray.is_empty():
        return pl.DataFrame(schema=_SCHEMA)
    known = shard.places.select("row", "page", "has_page").unique()
    astray = astray.join(known, on=["row", "page"], how="left", maintain_order="left")
    worded = astray.filter(pl.col("quote").str.contains(_WORDED))
    elsewhere = _elsewhere(shard, worded)
    notes = [
        (row, field, _note(page, has_page, quote, elsewhere.get((row, quote))))
        for row, field, page, quote, has_page in astray.iter_rows()
    ]
    return pl.DataFrame(notes, schema=_SCHEMA, orient="row").unique(maintain_order=True)


def _elsewhere(shard: Shard, worded: pl.DataFrame) -> Mapping[tuple[int, str], str]:
    """Where else in the document astray quotes stand, as a part of a sentence."""
    rows = worded["row"].unique(maintain_order=True).head(LOOKED_THROUGH)
    quotes = dict(
        worded.filter(pl.col("row").is_in(rows.implode()))
        .group_by("row")
        .agg(pl.col("quote").unique())
        .iter_rows()
    )
    found: dict[tuple[int, str], str] = {}
    for texts in shard.document_texts(rows):
        for (row,), pages in texts.sort("page").group_by("row", maintain_order=True):
            where = _where(pages["page"].to_list(), pages["text"].to_list(), quotes[row])
            found |= {(int(str(row)), quote): told for quote, told in where.items()}
    return found


def _where(numbers: Sequence[int], bodies: Sequence[str], quotes: Sequence[str]) -> dict[str, str]:
    """Of a document's pages and quotes: quote → where it stands, if it does."""
    pages = [folds(body) for body in bodies]
    found: dict[str, str] = {}
    for quote in quotes:
        wanted = folds(quote.strip())
        on = [
            number for number, page in zip(numbers, pages, strict=True) if may_stand(page, wanted)
        ]
        where = _listed(on) if on else _across(numbers, bodies, quote)
        if where is not None:
            found[quote] = where
    return found


def _listed(pages: Sequence[int]) -> str:
    named = ", ".join(map(str, pages[:_NAMED_PAGES]))
    more = " and more" if len(pages) > _NAMED_PAGES else ""
    return f"on page{'s' if len(pages) > 1 else ''} {named}{more}"


def _across(numbers: Sequence[int], bodies: Sequence[str], quote: str) -> str | None:
    """Does a quote begin on a page and end on the next?"""
    near = 2 * len(quote) + 20
    for at in range(len(bodies) - 1):
        if place_in(f"{bodies[at][-near:]}\n{bodies[at + 1][:near]}", quote) is not None:
            return f"across pages {numbers[at]} and {numbers[at + 1]}"
    return None


def _note(page: int, has_page: bool, quote: str, elsewhere: str | None) -> str:
    if not any(character.isalnum() for character in quote):
        return "the quote has no letter or digit"
    missing = (
        f"the quote does not stand on page {page}"
        if has_page
        else f"the document has no page {page}"
    )
    return missing if elsewhere is None else f"{missing}, but {elsewhere}"


RULE = Rule(id="evidence_stands", version=1, severity="review", check=check, family="evidence")
