"""Answers as columns: what the rules, the archive and the search read.

Belongs here: decoding a shard of answers, and the columns' names, types and limits. Does not
belong here: judging them (`rules/`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from pipeline_assets.workloads.answer_format import STATUSES, AnswerFormat, part
from pipeline_assets.workloads.column_registry import ColumnRule
from pipeline_assets.workloads.workload import Decoded

from .answer import CATEGORIES, PRIORITIES, Answer

FORMAT = AnswerFormat(Answer)
FIELDS = tuple(FORMAT.fields)
"""What is published of an answer, in this order."""
_NO_ITEMS = {"row": pl.Int64, "item": pl.Int64, "value": pl.String, "status": pl.String}


def value_columns(thresholds: Mapping[str, Any] | None = None) -> tuple[ColumnRule, ...]:
    """The columns of the decoded values, in order.

    Args:
        thresholds: adds the limits of an acceptance; without them only types and meanings.
    """
    limits = thresholds or {}

    def text(field: str, meaning: str) -> ColumnRule:
        bounds = limits.get(field)
        return ColumnRule(
            field,
            pl.String,
            meaning,
            nullable=True,
            length=None if bounds is None else (bounds["min_length"], bounds["max_length"]),
            needs_word=thresholds is not None,
        )

    def listed(field: str, meaning: str, allowed: tuple[str, ...]) -> ColumnRule:
        return ColumnRule(field, pl.String, meaning, nullable=True, allowed=allowed)

    def status(field: str) -> ColumnRule:
        return ColumnRule(
            f"{field}_status", pl.String, f"how certain the {field} is", allowed=STATUSES
        )

    code = limits.get("language")
    return (
        ColumnRule("row", pl.Int64, "the answer's place in its slice"),
        ColumnRule("document", pl.String, "the reference that the answer echoes"),
        listed("category", "what the ticket asks the service to deal with", CATEGORIES),
        status("category"),
        listed("priority", "how soon, as far as the ticket itself says", PRIORITIES),
        status("priority"),
        text("product", "the product as the ticket names it"),
        status("product"),
        ColumnRule(
            "language",
            pl.String,
            "ISO 639-1 code of the writer's own words",
            nullable=True,
            pattern=None if code is None else (code["pattern"], "language_code"),
        ),
        status("language"),
        text("summary", "the ticket in one sentence"),
        status("summary"),
    )


def decode(answers: Sequence[str]) -> Decoded:
    """Answers in their normal form, as columns; row n is the n-th answer."""
    frame = FORMAT.frame(answers)
    return Decoded(
        values=FORMAT.values(frame),
        items=pl.DataFrame(schema=_NO_ITEMS),
        evidence=FORMAT.evidence(frame),
        content=FORMAT.content(frame),
        search=frame.select(
            "row",
            title=part("summary", "value"),
            identifiers=part("product", "value"),
            description=part("category", "value"),
            language=part("language", "value"),
        ),
        uncertain=FORMAT.uncertain(frame),
    )
