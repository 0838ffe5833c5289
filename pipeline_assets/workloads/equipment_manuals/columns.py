"""Answers as columns: what the rules, the archive and the search read.

Belongs here: decoding a shard of answers, and the columns' names and types. Does not belong
here: judging them (`rules/`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import polars as pl

from pipeline_assets.workloads.column_registry import ColumnRule
from pipeline_assets.workloads.equipment_manuals.answer import Answer
from pipeline_assets.workloads.workload import AnswerInvalid, AnswerMalformed, Decoded
from resources.ledger.frames import PolarsType

_TEXTS = pl.List(pl.String)
STATUSES = ("found", "absent", "uncertain")


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


_EVIDENCE = pl.List(pl.Struct({"page": pl.Int64, "quote": pl.String}))
_FIELD = pl.Struct({"value": pl.String, "status": pl.String, "evidence": _EVIDENCE})
_ANSWER = pl.Struct(
    {
        "document": pl.String,
        "title": _FIELD,
        "product_identifiers": pl.List(_FIELD),
        "language": _FIELD,
        "description": _FIELD,
    }
)
_SINGLE_FIELDS = ("title", "language", "description")
_DECODER = msgspec.json.Decoder(Answer)
_ENCODER = msgspec.json.Encoder()
_ECHO = r'^\{"document":"([^"\\]*)"'
_NAMES = "document|title|product_identifiers|language|description|value|status|evidence|page|quote"
_SPACED_COLON = re.compile(r'"\s+:')
_PLACE = re.compile(rf" - at `(\$(?:\.(?:{_NAMES})|\[(?:\d+|\.\.\.)\])*)`\Z")
_HARMLESS = re.compile(
    rf"Object missing required field `(?:{_NAMES})`"
    r"|Expected `[a-z| ]+`(?:, got `[a-z| ]+`| [<>]= \d+)"
)
"""Messages of the decoder that hold our own names and its types alone."""


def check_answer(text: str) -> str:
    """The answer in its normal form: known members in a fixed order, each once.

    Raises:
        AnswerMalformed: not JSON.
        AnswerInvalid: JSON of another shape, or with a member twice; the message names the place,
            not the content.
    """
    try:
        normal = _ENCODER.encode(_DECODER.decode(text)).decode()
    except msgspec.ValidationError as error:
        # Not chained: the decoder's own message quotes the answer.
        raise AnswerInvalid(_told(str(error))) from None
    except msgspec.DecodeError as error:
        raise AnswerMalformed("the answer is not JSON") from error
    if _may_repeat_a_member(text, normal):
        _require_each_member_once(text)
    return normal


def _may_repeat_a_member(text: str, normal: str) -> bool:
    """Could the text have a member more than its normal form? Never wrong with a no.

    Each member ends its name in `":`. Blanks before the colon, or an escape that the normal form
    writes out, could hide a member from the count.
    """
    return (
        text.count('":') != normal.count('":')
        or "\\u" in text
        or _SPACED_COLON.search(text) is not None
    )


def _require_each_member_once(text: str) -> None:
    def once(members: list[tuple[str, object]]) -> None:
        if len({name for name, _ in members}) < len(members):
            # The decoder would take the last in silence; neither is trusted.
            raise AnswerInvalid("a member is there twice")

    json.loads(text, object_pairs_hook=once)


def echoed(answer: pl.Expr) -> pl.Expr:
    """The references that answers in the normal form of `check_answer` call their documents by.

    Its first member, read without decoding the rest. Null for one with an escaped character: no
    request ever calls a document so.
    """
    return answer.str.extract(_ECHO)


def _told(message: str) -> str:
    """The decoder's message without what it quotes of the answer: names and values in it."""
    place = _PLACE.search(message)
    where = f" at {place[1]}" if place else ""
    head = message[: place.start()] if place else message
    if head.startswith("Object contains unknown field"):
        return f"a member that the schema does not have{where}"
    if head.startswith("Invalid enum value"):
        return f"a value outside the closed list{where}"
    return f"{head if _HARMLESS.fullmatch(head) else 'not of the output schema'}{where}"


def decode(answers: Sequence[str]) -> Decoded:
    """Answers in the normal form of `check_answer`, as columns; row n is the n-th answer.

    Only the normal form is safe here: one value of another type fails the whole column.
    """
    answer = (
        pl.DataFrame({"answer": answers}, schema={"answer": pl.String})
        .with_row_index("row")
        .select(
            pl.col("row").cast(pl.Int64),
            answer=pl.col("answer").str.json_decode(_ANSWER),
        )
        .unnest("answer")
    )
    items = _items(answer)
    return Decoded(
        values=_values(answer),
        items=items.select("row", "item", "value", "status"),
        evidence=_evidence(answer, items),
        content=answer.select("row", content=pl.struct(FIELDS).struct.json_encode()),
        search=answer.select(
            "row",
            title=_part("title", "value"),
            identifiers=_parts("value").list.drop_nulls().list.join(" "),
            description=_part("description", "value"),
            language=_part("language", "value"),
        ),
        uncertain=_uncertain(answer, items),
    )


def _part(field: str, part: str) -> pl.Expr:
    return pl.col(field).struct.field(part)


def _parts(part: str) -> pl.Expr:
    return pl.col("product_identifiers").list.eval(pl.element().struct.field(part))


def _values(answer: pl.DataFrame) -> pl.DataFrame:
    return answer.select(
        "row",
        "document",
        *(
            _part(field, part).alias(field if part == "value" else f"{field}_status")
            for field in _SINGLE_FIELDS
            for part in ("value", "status")
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
            evidence=_part(field, "evidence"),
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
        answer.filter(_part(field, "status") == "uncertain").select("row", field=pl.lit(field))
        for field in _SINGLE_FIELDS
    ]
    listed = items.filter(pl.col("status") == "uncertain").select(
        "row", field=pl.lit("product_identifiers")
    )
    return pl.concat([*singles, listed])
