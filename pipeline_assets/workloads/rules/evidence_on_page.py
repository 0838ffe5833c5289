"""Rule `evidence_on_page`: every quote stands on the page that it names.

The exact text is looked for first, all quotes of a shard at once; only what that does not find
is compared with white space, hyphenation and Unicode forms folded.
"""

from __future__ import annotations

import polars as pl

from pipeline_assets.workloads.text_folding import has_quote
from pipeline_assets.workloads.workload import Rule, Shard


def check(shard: Shard) -> pl.DataFrame:
    """A finding for every field that has a quote which is not on its page."""
    if shard.evidence.is_empty():
        return _none()
    texts = shard.page_texts(shard.evidence.select("row", "page").unique())
    joined = shard.evidence.join(texts, on=["row", "page"], how="left")
    # A quote of blanks and marks stands everywhere and proves nothing.
    stands = pl.col("text").str.contains(pl.col("quote"), literal=True) & pl.col(
        "quote"
    ).str.contains(r"[\p{L}\p{N}]")
    missing = joined.filter(~stands.fill_null(value=False))
    notes = [
        (row, field, _note(page, quote, text))
        for row, field, page, quote, text in missing.select(
            "row", "field", "page", "quote", "text"
        ).iter_rows()
    ]
    found = pl.DataFrame(notes, schema=_SCHEMA, orient="row")
    return found.filter(pl.col("note") != "").unique(maintain_order=True)


_SCHEMA = {"row": pl.Int64, "field": pl.String, "note": pl.String}


def _note(page: int, quote: str, text: str | None) -> str:
    if text is None:
        return f"the document has no page {page}"
    if not any(character.isalnum() for character in quote):
        return "the quote has no letter or digit"
    if not has_quote(text, quote):
        return f"the quote does not stand on page {page}"
    return ""


def _none() -> pl.DataFrame:
    return pl.DataFrame(schema=_SCHEMA)


RULE = Rule(id="evidence_on_page", version=1, severity="review", check=check)
