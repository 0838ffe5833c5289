"""A batch as its rules see it: documents of one or two pages, and answers about them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl
import yaml

from pipeline_assets.workloads.equipment_manuals.workload import load
from pipeline_assets.workloads.workload import BatchView

LIMITS: dict[str, Any] = yaml.safe_load(load().acceptances["2"].thresholds)
_THINGS = ("mixer", "lathe", "pump", "oven", "loom", "kiln", "press", "scale", "drill", "crane")
_PLACES = ("bakery", "garage", "harbour", "dairy", "mill", "quarry", "studio", "stable", "mine")


@dataclass(frozen=True)
class Entry:
    """A document and the answer given about it.

    Attributes:
        pages: the document's text.
        quotes: of the answer: (page, quote).
        title, description: of the answer.
        checksum: names the document's bytes.
    """

    pages: Sequence[str]
    quotes: Sequence[tuple[int, str]]
    title: str | None = "Title"
    description: str | None = "Description of it"
    checksum: str = field(default="")


def entry(number: int) -> Entry:
    """A document unlike the others, and its right answer."""
    thing, place = _THINGS[number % len(_THINGS)], _PLACES[number // 2 % len(_PLACES)]
    title = f"{thing.title()} model {1000 + number} handbook"
    sentence = f"The {place} uses {thing} number {1000 + number} for work of kind {number * 37}."
    words = " ".join(f"{thing}{number * k} {place}{k + number}" for k in range(30))
    return Entry(
        (f"{title}\n{sentence}\n", words),
        ((1, title), (1, sentence), (1, sentence)),
        title,
        sentence,
    )


def swapped(entries: Sequence[Entry], order: Mapping[int, int]) -> list[Entry]:
    """The same documents, some with the answer of another: place → whose answer it has."""
    return [
        Entry(own.pages, other.quotes, other.title, other.description)
        for at, own in enumerate(entries)
        for other in [entries[order.get(at, at)]]
    ]


def view(entries: Sequence[Entry]) -> BatchView:
    """What the rules of a batch see."""
    texts = pl.DataFrame(
        [(row, no, text) for row, e in enumerate(entries) for no, text in enumerate(e.pages, 1)],
        schema={"row": pl.Int64, "page": pl.Int64, "text": pl.String},
        orient="row",
    )
    astray = [
        (row, "title", 0, page, quote)
        for row, e in enumerate(entries)
        for page, quote in e.quotes
        if page > len(e.pages) or quote not in e.pages[page - 1]
    ]
    lost = [row for row, *_ in astray]
    answers = [
        (row, f"s/{row}", e.checksum or f"sum-{row}", "en", e.title, "", e.description, "",
         len(e.quotes), lost.count(row))
        for row, e in enumerate(entries)
    ]  # fmt: skip

    def document_texts(rows: pl.Series) -> Iterator[pl.DataFrame]:
        yield texts.filter(pl.col("row").is_in(rows.implode()))

    return BatchView(
        answers=pl.DataFrame(answers, schema=_ANSWERS, orient="row"),
        astray=pl.DataFrame(astray, schema=_ASTRAY, orient="row"),
        page_texts=lambda wanted: texts.join(wanted, on=["row", "page"], how="semi"),
        document_texts=document_texts,
    )


_ANSWERS = {
    "row": pl.Int64, "document_id": pl.String, "checksum": pl.String, "language": pl.String,
    "title": pl.String, "identifiers": pl.String, "description": pl.String,
    "values_digest": pl.String, "quotes": pl.Int64, "astray": pl.Int64,
}  # fmt: skip
_ASTRAY = {
    "row": pl.Int64, "field": pl.String, "item": pl.Int64, "page": pl.Int64, "quote": pl.String,
}  # fmt: skip
