"""What became of each field between two versions: pure decisions over whole frames.

Belongs here: taking values out of content, and the outcome of a pair. Does not belong here: which
values are compared (`compare.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from pipeline_assets.workloads.fields import value_columns
from pipeline_assets.workloads.text_folding import fold
from pipeline_assets.workloads.workload import PublishedField

OUTCOMES = ("same", "form", "changed", "gained", "lost", "absent")
"""same: equal character by character (a list: the same set); form: the same words, written
otherwise (letter case, dashes, white space, Unicode forms: `text_folding.fold`); gained, lost: only
the second or only the first has a value; absent: neither has one."""
DIFFERENT = ("changed", "gained", "lost")
"""Outcomes that make a document a changed one."""
BETWEEN = "\x1f"
"""Between the values of a set in one text: a control character that nothing prints."""


def texts_of(content: pl.Series, fields: Sequence[PublishedField]) -> pl.DataFrame:
    """The values of published content (JSON), one column of text a field; null where there is none.

    The values of a list are a set: their order and repetitions do not count.
    """
    return value_columns(content, fields).select(
        _as_set(field.name) if field.many else pl.col(field.name) for field in fields
    )


def _as_set(name: str) -> pl.Expr:
    values = pl.col(name).list.unique().list.sort().list.join(BETWEEN)
    return pl.when(values != "").then(values).alias(name)


def outcomes_of(first: pl.DataFrame, second: pl.DataFrame) -> pl.DataFrame:
    """The outcome of every field, row by row.

    Args:
        first: `texts_of` the first version.
        second: the same documents in the second, in the same order.
    """
    return pl.DataFrame({name: _outcomes(first[name], second[name]) for name in first.columns})


def is_changed(outcomes: pl.DataFrame) -> pl.Series:
    """Which rows have a field whose value is another one."""
    return outcomes.select(changed=pl.any_horizontal(pl.all().is_in(DIFFERENT)))["changed"]


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
