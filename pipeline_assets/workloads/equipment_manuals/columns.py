"""Answers as columns: what the rules, the archive and the search read.

Belongs here: decoding a shard of answers, and the columns' names and types. Does not belong
here: judging them (`rules/`).
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import polars as pl

from pipeline_assets.workloads.equipment_manuals.answer import Answer, Field
from pipeline_assets.workloads.workload import AnswerInvalid, AnswerMalformed, Decoded
from resources.garbage import without_garbage_collector
from resources.ledger.frames import PolarsType, frame_of

_SINGLE_SCHEMA = {
    "row": pl.Int64,
    "document": pl.String,
    "title": pl.String,
    "title_status": pl.String,
    "language": pl.String,
    "language_status": pl.String,
    "description": pl.String,
    "description_status": pl.String,
}
VALUE_SCHEMA: dict[str, PolarsType] = {
    **_SINGLE_SCHEMA,
    "identifiers": pl.List(pl.String),
    "identifier_statuses": pl.List(pl.String),
}
EVIDENCE_SCHEMA = {
    "row": pl.Int64,
    "field": pl.String,
    "item": pl.Int64,
    "page": pl.Int64,
    "quote": pl.String,
}
ITEM_SCHEMA = {"row": pl.Int64, "item": pl.Int64, "value": pl.String, "status": pl.String}
"""The identifiers, one row each; `item` counts within a record from 0."""
SEARCH_SCHEMA = {
    "row": pl.Int64,
    "title": pl.String,
    "identifiers": pl.String,
    "description": pl.String,
    "language": pl.String,
}
FIELDS = ("title", "product_identifiers", "language", "description")


class Content(msgspec.Struct, frozen=True):
    """What is published of an answer, in this order."""

    title: Field
    product_identifiers: list[Field]
    language: Field
    description: Field


_DECODER = msgspec.json.Decoder(Answer)
_ENCODER = msgspec.json.Encoder()


def check_answer(text: str) -> None:
    """Is the text an answer of the output schema?

    Raises:
        AnswerMalformed: not JSON.
        AnswerInvalid: JSON of another shape; the message names the place, not the content.
    """
    try:
        _DECODER.decode(text)
    except msgspec.ValidationError as error:
        raise AnswerInvalid(str(error)) from error
    except msgspec.DecodeError as error:
        raise AnswerMalformed("the answer is not JSON") from error


def decode(answers: Sequence[str]) -> Decoded:
    """Answers that passed `check_answer`, as columns; row n is the n-th answer."""
    values, items, evidence, content, search, uncertain = [], [], [], [], [], []
    with without_garbage_collector():
        for row, text in enumerate(answers):
            answer = _DECODER.decode(text)
            title, language, description = answer.title, answer.language, answer.description
            identifiers = answer.product_identifiers
            values.append(
                (
                    row,
                    answer.document,
                    title.value,
                    title.status,
                    language.value,
                    language.status,
                    description.value,
                    description.status,
                )
            )
            items.extend((row, item, i.value, i.status) for item, i in enumerate(identifiers))
            for name, item, field in (
                ("title", 0, title),
                ("language", 0, language),
                ("description", 0, description),
                *(("product_identifiers", item, field) for item, field in enumerate(identifiers)),
            ):
                evidence.extend((row, name, item, e.page, e.quote) for e in field.evidence)
                if field.status == "uncertain":
                    uncertain.append((row, name))
            published = Content(title, identifiers, language, description)
            content.append((row, _ENCODER.encode(published).decode()))
            search.append(
                (
                    row,
                    title.value,
                    " ".join(item.value for item in identifiers if item.value),
                    description.value,
                    language.value,
                )
            )
    item_frame = frame_of(items, ITEM_SCHEMA)
    return Decoded(
        values=_with_lists(frame_of(values, _SINGLE_SCHEMA), item_frame),
        items=item_frame,
        evidence=frame_of(evidence, EVIDENCE_SCHEMA),
        content=frame_of(content, {"row": pl.Int64, "content": pl.String}),
        search=frame_of(search, SEARCH_SCHEMA),
        uncertain=frame_of(uncertain, {"row": pl.Int64, "field": pl.String}),
    )


def _with_lists(values: pl.DataFrame, items: pl.DataFrame) -> pl.DataFrame:
    """The values with the identifiers as lists, empty where there are none."""
    lists = items.group_by("row", maintain_order=True).agg(
        identifiers="value", identifier_statuses="status"
    )
    empty = pl.lit([], dtype=pl.List(pl.String))
    return values.join(lists, on="row", how="left", maintain_order="left").with_columns(
        pl.col("identifiers", "identifier_statuses").fill_null(empty)
    )
