"""What became of each field between two versions: pure decisions over whole frames.

Belongs here: taking values out of content, and the outcome of a pair. Does not belong here: which
values are compared (`compare.py`).
"""

from __future__ import annotations

import polars as pl

from pipeline_assets.workloads.text_folding import fold

FIELDS = ("title", "product_identifiers", "language", "description")
OUTCOMES = ("same", "form", "changed", "gained", "lost", "absent")
"""same: equal character by character (identifiers: the same set); form: the same words, written
otherwise (letter case, dashes, white space, Unicode forms: `text_folding.fold`); gained, lost: only
the second or only the first has a value; absent: neither has one."""
DIFFERENT = ("changed", "gained", "lost")
"""Outcomes that make a document a changed one."""
BETWEEN = "\x1f"
"""Between the identifiers of a set in one text: a control character that nothing prints."""

_VALUE = pl.Struct({"value": pl.String})
_CONTENT = pl.Struct(
    {
        "title": _VALUE,
        "product_identifiers": pl.List(_VALUE),
        "language": _VALUE,
        "description": _VALUE,
    }
)


def values_of(content: pl.Series) -> pl.DataFrame:
    """The values of published content (JSON), one column a field; null where there is none.

    Identifiers are a set: their order and repetitions do not count.
    """
    decoded = pl.DataFrame({"content": content}).select(pl.col("content").str.json_decode(_CONTENT))
    identifiers = (
        pl.col("product_identifiers")
        .list.eval(pl.element().struct.field("value"))
        .list.drop_nulls()
        .list.unique()
        .list.sort()
        .list.join(BETWEEN)
    )
    return decoded.unnest("content").select(
        pl.col("title").struct.field("value").alias("title"),
        pl.when(identifiers != "").then(identifiers).alias("product_identifiers"),
        pl.col("language").struct.field("value").alias("language"),
        pl.col("description").struct.field("value").alias("description"),
    )


def outcomes_of(first: pl.DataFrame, second: pl.DataFrame) -> pl.DataFrame:
    """The outcome of every field, row by row.

    Args:
        first: `values_of` the first version.
        second: the same documents in the second, in the same order.
    """
    return pl.DataFrame({field: _outcomes(first[field], second[field]) for field in FIELDS})


def is_changed(outcomes: pl.DataFrame) -> pl.Series:
    """Which rows have a field whose value is another one."""
    return outcomes.select(
        changed=pl.any_horizontal(pl.col(field).is_in(DIFFERENT) for field in FIELDS)
    )["changed"]


def _outcomes(first: pl.Series, second: pl.Series) -> pl.Series:
    pairs = pl.DataFrame({"a": first, "b": second})
    differ = pairs.filter(pl.col("a") != pl.col("b"))
    # Only of texts that differ: most of an archive is the same, and folding is Python.
    texts = pl.concat([differ["a"], differ["b"]]).unique()
    folded = pl.DataFrame(
        {"text": texts, "folded": pl.Series(map(_folded, texts), dtype=pl.String)},
        schema={"text": pl.String, "folded": pl.String},
    )
    joined = pairs.join(
        folded.rename({"text": "a", "folded": "fa"}), on="a", how="left", maintain_order="left"
    ).join(folded.rename({"text": "b", "folded": "fb"}), on="b", how="left", maintain_order="left")
    a, b = pl.col("a"), pl.col("b")
    return joined.select(
        outcome=pl.when(a.is_null() & b.is_null())
        .then(pl.lit("absent"))
        .when(a.is_null())
        .then(pl.lit("gained"))
        .when(b.is_null())
        .then(pl.lit("lost"))
        .when(a == b)
        .then(pl.lit("same"))
        .when(pl.col("fa") == pl.col("fb"))
        .then(pl.lit("form"))
        .otherwise(pl.lit("changed"))
    )["outcome"]


def _folded(text: str) -> str:
    return BETWEEN.join(sorted({fold(part) for part in text.split(BETWEEN)}))
