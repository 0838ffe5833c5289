"""Rule `catalogue_agrees`: a known identifier stands in a document about that product.

A catalogue never knows every product, so one that it does not know is only noted. One that it
knows has a maker and a name: a document that has no word of either is about something else. The
answer's quotes are looked at first, then the pages they stand on, then the whole document.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from pipeline_assets.workloads.text_folding import fold
from pipeline_assets.workloads.workload import Rule, Shard
from resources.identifiers import fold_identifier

_FIELD = "product_identifiers"
_SCHEMA = {"row": pl.Int64, "field": pl.String, "note": pl.String, "severity": pl.String}
_UNKNOWN = "the catalogue does not know every identifier"
_FOREIGN = "the catalogue knows the identifier, of a maker and a name that the document has not"
_MAKERS = "the catalogue knows the identifiers as products of different makers"
_WORD = re.compile(r"[^\W\d_]+")
_SIGNS = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


def make_rule(thresholds: Mapping[str, Any]) -> Rule:
    """The rule for the workload's thresholds."""
    limits = thresholds["catalogue"]
    generic = frozenset(limits["generic_words"])
    least = limits["least_letters"]

    def check(shard: Shard) -> pl.DataFrame:
        if shard.catalogue.is_empty():
            return pl.DataFrame(schema=_SCHEMA)
        items = _folded(shard.items)
        known = items.join(shard.catalogue, on="identifier", how="left", maintain_order="left")
        unknown = known.filter(pl.col("maker").is_null())["row"].unique(maintain_order=True)
        products = known.filter(pl.col("maker").is_not_null())
        makers = (
            products.group_by("row", maintain_order=True)
            .agg(pl.col("maker").str.to_lowercase().n_unique())
            .filter(pl.col("maker") > 1)["row"]
        )
        foreign = _foreign(shard, products, generic, least)
        return pl.concat(
            [
                _told(unknown, _UNKNOWN, "note"),
                _told(makers, _MAKERS, "review"),
                _told(pl.Series(foreign, dtype=pl.Int64), _FOREIGN, "review"),
            ]
        )

    return Rule(
        id="catalogue_agrees", version=1, severity="review", check=check, family="identifiers"
    )


def distinctive_stems(maker: str, name: str, generic: frozenset[str], least: int) -> list[str]:
    """What a document about a product has one of: beginnings of the words of its maker and name.

    Endings are left off, since many languages change them.
    """
    words = [*_WORD.findall(fold(maker)), *_WORD.findall(fold(name))]
    stems = [
        word if _SIGNS.search(word) else word[: max(least, len(word) - 2)]
        for word in words
        if word not in generic and len(word) >= (2 if _SIGNS.search(word) else least)
    ]
    return stems or [fold(maker), fold(name)]


def _folded(items: pl.DataFrame) -> pl.DataFrame:
    """row, identifier of the members that have a value."""
    given = items.filter(pl.col("value").is_not_null()).select("row", "value")
    values = given["value"].unique()
    folded = pl.DataFrame(
        {"value": values, "identifier": [fold_identifier(value) for value in values]},
        schema={"value": pl.String, "identifier": pl.String},
    )
    return given.join(folded, on="value", maintain_order="left").select("row", "identifier")


def _foreign(
    shard: Shard, products: pl.DataFrame, generic: frozenset[str], least: int
) -> list[int]:
    """Rows with a product of whose maker and name their documents have no word."""
    pairs = products.select("maker", "name").unique()
    stems = pl.DataFrame(
        [
            (maker, name, distinctive_stems(maker, name, generic, least))
            for maker, name in pairs.rows()
        ],
        schema={"maker": pl.String, "name": pl.String, "stems": pl.List(pl.String)},
        orient="row",
    )
    open_products = products.join(stems, on=["maker", "name"]).select("row", "identifier", "stems")
    for look in (_quotes, _pages, _documents):
        if open_products.height:
            for texts in look(shard, open_products["row"].unique()):
                seen = _with_stem(open_products, texts)
                open_products = open_products.join(seen, on=["row", "identifier"], how="anti")
    return sorted(set(open_products["row"]))


def _quotes(shard: Shard, rows: pl.Series) -> Iterator[pl.DataFrame]:
    yield _standing(shard, rows).select("row", text="quote")


def _pages(shard: Shard, rows: pl.Series) -> Iterator[pl.DataFrame]:
    yield shard.page_texts(_standing(shard, rows).select("row", "page").unique())


def _documents(shard: Shard, rows: pl.Series) -> Iterator[pl.DataFrame]:
    return shard.document_texts(rows)


def _standing(shard: Shard, rows: pl.Series) -> pl.DataFrame:
    return shard.places.filter(pl.col("start").is_not_null() & pl.col("row").is_in(rows.implode()))


def _with_stem(products: pl.DataFrame, texts: pl.DataFrame) -> pl.DataFrame:
    """The products one of whose stems their row's texts have."""
    text = (
        texts.with_columns(pl.col("text").str.normalize("NFKC").str.to_lowercase())
        .group_by("row")
        .agg(pl.col("text").str.join("\n"))
    )
    return (
        products.join(text, on="row")
        .explode("stems", empty_as_null=False)
        .filter(pl.col("text").str.contains(pl.col("stems"), literal=True))
        .select("row", "identifier")
        .unique()
    )


def _told(rows: pl.Series, note: str, severity: str) -> pl.DataFrame:
    return pl.DataFrame({"row": rows.cast(pl.Int64)}).select(
        "row", field=pl.lit(_FIELD), note=pl.lit(note), severity=pl.lit(severity)
    )
