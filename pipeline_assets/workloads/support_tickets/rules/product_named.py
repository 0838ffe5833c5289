"""Rule `product_named`: the product stands in its own quote, and the ticket names no other.

A product that is absent although the ticket names one goes to a person as well.
"""

from __future__ import annotations

import polars as pl

from pipeline_assets.workloads.text_folding import fold
from pipeline_assets.workloads.workload import Rule, Shard

from ..products import product_names
from .words import Found, findings, messages, quotes_of

_FIELD = "product"
_NOT_QUOTED = "its own quote does not name it"
_SEVERAL = "the ticket names several products"
_MISSED = "the ticket names a product"


def check(shard: Shard) -> pl.DataFrame:
    """A finding for every product that is not quoted, not the only one, or left out."""
    read, quotes = messages(shard), quotes_of(shard, _FIELD)
    found: list[Found] = []
    for row, product, status in shard.values.select("row", "product", "product_status").iter_rows():
        text = "\n".join(part.text for part in read.get(row, []))
        if status == "absent" and product_names(text):
            found.append((row, _FIELD, _MISSED))
        elif status == "found" and product is not None:
            found += [(row, _FIELD, note) for note in _notes(product, quotes.get(row, []), text)]
    return findings(found)


def _notes(product: str, quotes: list[str], text: str) -> list[str]:
    name = fold(product)
    notes = []
    if not any(f" {name} " in f" {_spaced(quote)} " for quote in quotes):
        notes.append(_NOT_QUOTED)
    others = [
        other for other in map(fold, product_names(text)) if other not in name and name not in other
    ]
    if others:
        notes.append(_SEVERAL)
    return notes


def _spaced(quote: str) -> str:
    """A quote's words, so that `KT-15` is not found in `KT-150`."""
    marks = ".,;:!?()[]\"'“”„«»"
    return " ".join(word.strip(marks) for word in fold(quote).split())


RULE = Rule(id="product_named", version=1, severity="review", check=check, family="identifiers")
