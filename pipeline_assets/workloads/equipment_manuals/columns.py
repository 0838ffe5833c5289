"""Answers as columns: what the rules, the archive and the search read.

Belongs here: decoding a shard of answers, and the columns' names and types. Does not belong
here: judging them (`rules/`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from pipeline_assets.workloads import answer_format
from pipeline_assets.workloads.answer_format import STATUSES, AnswerFormat, part
from pipeline_assets.workloads.column_registry import ColumnRule
from pipeline_assets.workloads.equipment_manuals.answer import Answer
from pipeline_assets.workloads.workload import Decoded
from resources.ledger.frames import PolarsType

_TEXTS = pl.List(pl.String)


def value_columns(thresholds: Mapping[str, Any] | None = None) -> tuple[ColumnRule, ...]:
    """The columns of the decoded values, in order: the one place that knows them.

    Args:
        thresholds: adds the limits of an acceptance; without them only types and meanings.
    """
    limits = thresholds or {}

    def length(field: str) -> tuple[int, int] | None:
        part = limits.get(field)
        return None if part is None else (part["min_length"], part["max_length"])

    def text(field: str, meaning: str) -> ColumnRule:
        return ColumnRule(
            field,
            pl.String,
            meaning,
            nullable=True,
            length=length(field),
            needs_word=thresholds is not None,
        )

    def status(field: str) -> ColumnRule:
        return ColumnRule(
            f"{field}_status", pl.String, f"how certain the {field} is", allowed=STATUSES
        )

    code = limits.get("language")
    return (
        ColumnRule("row", pl.Int64, "the answer's place in its slice"),
        ColumnRule("document", pl.String, "the reference that the answer echoes"),
        text("title", "the title as printed, on one line"),
        status("title"),
        ColumnRule(
            "language",
            pl.String,
            "ISO 639-1 code of the body",
            nullable=True,
            pattern=None if code is None else (code["pattern"], "language_code"),
        ),
        status("language"),
        text("description", "what the product or the document is"),
        status("description"),
        ColumnRule("identifiers", _TEXTS, "models and part numbers as printed"),
        ColumnRule("identifier_statuses", _TEXTS, "how certain each identifier is"),
    )


VALUE_SCHEMA: dict[str, PolarsType] = {column.name: column.dtype for column in value_columns()}
FIELDS = ("title", "product_identifiers", "language", "description")
"""What is published of an answer, in this order."""


_SINGLE_FIELDS = ("title", "language", "description")
_FORMAT = AnswerFormat(Answer)
check_answer = _FORMAT.check
echoed = answer_format.echoed


def decode(answers: Sequence[str]) -> Decoded:
    """Answers in the normal form of `check_answer`, as columns; row n is the n-th answer.

    Only the normal form is safe here: one value of another type fails the whole column.
    """
    answer = _FORMAT.frame(answers)
    items = _items(answer)
    return Decoded(
        values=_values(answer),
        items=items.select("row", "item", "value", "status"),
        evidence=_evidence(answer, items),
        content=answer.select("row", content=pl.struct(FIELDS).struct.json_encode()),
        search=answer.select(
            "row",
            title=part("title", "value"),
            identifiers=_parts("value").list.drop_nulls().list.join(" "),
            description=part("description", "value"),
            language=part("language", "value"),
        ),
        uncertain=_uncertain(answer, items),
    )


def _parts(name: str) -> pl.Expr:
    return pl.col("product_identifiers").list.eval(pl.element().struct.field(name))


def _values(answer: pl.DataFrame) -> pl.DataFrame:
    return answer.select(
        "row",
        "document",
        *(
            part(field, name).alias(field if name == "value" else f"{field}_status")
            for field in _SINGLE_FIELDS
            for name in ("value", "status")
        ),
        identifiers=_parts("value"),
        identifier_statuses=_parts("status"),
    )


def _items(answer: pl.DataFrame) -> pl.DataFrame:
    """The identifiers, one row each, with their evidence."""
    members = answer.filter(pl.col("product_identifiers").list.len() > 0).select(
        "row",
        item=pl.int_ranges(0, pl.col("product_identifiers").list.len(), dtype=pl.Int64),
        field="product_identifiers",
    )
    return members.explode("item", "field", empty_as_null=False).unnest("field")


def _evidence(answer: pl.DataFrame, items: pl.DataFrame) -> pl.DataFrame:
    parts = [
        answer.select(
            "row",
            field=pl.lit(field),
            item=pl.lit(0, dtype=pl.Int64),
            evidence=part(field, "evidence"),
        )
        for field in _SINGLE_FIELDS
    ]
    parts.append(
        items.select("row", pl.lit("product_identifiers").alias("field"), "item", "evidence")
    )
    return (
        pl.concat(parts)
        .filter(pl.col("evidence").list.len() > 0)
        .explode("evidence", empty_as_null=False)
        .unnest("evidence")
        .sort("row", maintain_order=True)
    )


def _uncertain(answer: pl.DataFrame, items: pl.DataFrame) -> pl.DataFrame:
    singles = [
        answer.filter(part(field, "status") == "uncertain").select("row", field=pl.lit(field))
        for field in _SINGLE_FIELDS
    ]
    listed = items.filter(pl.col("status") == "uncertain").select(
        "row", field=pl.lit("product_identifiers")
    )
    return pl.concat([*singles, listed])
