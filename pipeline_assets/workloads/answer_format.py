"""The answer's format that every workload shares: fields with their certainty and evidence.

Belongs here: the typed members, an answer's normal form, and answers as columns. Does not belong
here: which fields there are (a workload's `answer.py`), and judging them (the rules).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Literal, get_args, get_origin, get_type_hints

import msgspec
import polars as pl

from pipeline_assets.workloads.workload import AnswerInvalid, AnswerMalformed

Status = Literal["found", "absent", "uncertain"]
STATUSES: tuple[str, ...] = get_args(Status)


class Evidence(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where a value stands in the document.

    Attributes:
        page: 1-based page number.
        quote: the words as printed; white space and Unicode forms are folded when compared.
    """

    page: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)]
    quote: str


class Field(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One value with its certainty.

    Attributes:
        value: the value, or None. Always None when `status` is "absent"; an "uncertain" field
            may carry its best candidate for the reviewer.
        status: "found": printed and unambiguous; "absent": looked for and not there;
            "uncertain": a person has to look.
        evidence: the quotes that carry the value; empty when `status` is "absent".
    """

    value: str | None
    status: Status
    evidence: list[Evidence]


ABSENT = Field(value=None, status="absent", evidence=[])

EVIDENCE_TYPE = pl.List(pl.Struct({"page": pl.Int64, "quote": pl.String}))
FIELD_TYPE = pl.Struct({"value": pl.String, "status": pl.String, "evidence": EVIDENCE_TYPE})

_PARTS = ("value", "status", "evidence", "page", "quote")
_ECHO = r'^\{"document":"([^"\\]*)"'
_SPACED_COLON = re.compile(r'"\s+:')


def echoed(answer: pl.Expr) -> pl.Expr:
    """The references that answers in their normal form call their documents by.

    Their first member, read without decoding the rest. Null for one with an escaped character: no
    request ever calls a document so.
    """
    return answer.str.extract(_ECHO)


class AnswerFormat:
    """One workload's answers: a struct whose first member is `document`, the echoed reference.

    Args:
        answer: the struct; every other member is a `Field`, a struct of the same members, or a
            list of them.
    """

    def __init__(self, answer: type[msgspec.Struct]) -> None:
        hints = get_type_hints(answer)
        self.fields: Mapping[str, bool] = {
            name: get_origin(hints[name]) is list
            for name in answer.__struct_fields__
            if name != "document"
        }
        """Name → is it a list?"""
        self._decoder = msgspec.json.Decoder(answer)
        self._encoder = msgspec.json.Encoder()
        names = "|".join(("document", *self.fields, *_PARTS))
        self._place = re.compile(rf" - at `(\$(?:\.(?:{names})|\[(?:\d+|\.\.\.)\])*)`\Z")
        # Messages of the decoder that hold our own names and its types alone.
        self._harmless = re.compile(
            rf"Object missing required field `(?:{names})`"
            r"|Expected `[a-z| ]+`(?:, got `[a-z| ]+`| [<>]= \d+)"
        )
        self._type = pl.Struct(
            {"document": pl.String}
            | {name: pl.List(FIELD_TYPE) if many else FIELD_TYPE for name, many in self._of()}
        )

    def _of(self) -> list[tuple[str, bool]]:
        return list(self.fields.items())

    @property
    def single(self) -> tuple[str, ...]:
        """The fields that are no list."""
        return tuple(name for name, many in self._of() if not many)

    def check(self, text: str) -> str:
        """The answer in its normal form: known members in a fixed order, each once.

        Raises:
            AnswerMalformed: not JSON.
            AnswerInvalid: JSON of another shape, or with a member twice; the message names the
                place, not the content.
        """
        try:
            normal = self._encoder.encode(self._decoder.decode(text)).decode()
        except msgspec.ValidationError as error:
            # Not chained: the decoder's own message quotes the answer.
            raise AnswerInvalid(self._told(str(error))) from None
        except msgspec.DecodeError as error:
            raise AnswerMalformed("the answer is not JSON") from error
        if _may_repeat_a_member(text, normal):
            _require_each_member_once(text)
        return normal

    def _told(self, message: str) -> str:
        """The decoder's message without what it quotes of the answer: names and values in it."""
        place = self._place.search(message)
        where = f" at {place[1]}" if place else ""
        head = message[: place.start()] if place else message
        if head.startswith("Object contains unknown field"):
            return f"a member that the schema does not have{where}"
        if head.startswith("Invalid enum value"):
            return f"a value outside the closed list{where}"
        return f"{head if self._harmless.fullmatch(head) else 'not of the output schema'}{where}"

    def frame(self, answers: Sequence[str]) -> pl.DataFrame:
        """Answers in their normal form as columns: row, document, and a struct for each field.

        Only the normal form is safe here: one value of another type fails the whole column.
        """
        return (
            pl.DataFrame({"answer": answers}, schema={"answer": pl.String})
            .with_row_index("row")
            .select(
                pl.col("row").cast(pl.Int64), answer=pl.col("answer").str.json_decode(self._type)
            )
            .unnest("answer")
        )

    def values(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Row, document, and for each field that is no list its value and `<field>_status`."""
        return frame.select(
            "row",
            "document",
            *(
                part(name, which).alias(name if which == "value" else f"{name}_status")
                for name in self.single
                for which in ("value", "status")
            ),
        )

    def items(self, frame: pl.DataFrame, name: str) -> pl.DataFrame:
        """The members of a list field, one row each: row, item, field, value, status, evidence."""
        members = frame.filter(pl.col(name).list.len() > 0).select(
            "row",
            pl.lit(name).alias("field"),
            pl.int_ranges(0, pl.col(name).list.len(), dtype=pl.Int64).alias("item"),
            pl.col(name).alias("member"),
        )
        return (
            members.explode("item", "member", empty_as_null=False)
            .unnest("member")
            .select("row", "item", "field", "value", "status", "evidence")
        )

    def evidence(self, frame: pl.DataFrame) -> pl.DataFrame:
        """One row a quote: row, field, item, page, quote; by row, in the order of the fields."""
        parts = [
            self.items(frame, name).select("row", "field", "item", "evidence")
            if many
            else frame.select(
                "row",
                field=pl.lit(name),
                item=pl.lit(0, dtype=pl.Int64),
                evidence=part(name, "evidence"),
            )
            for name, many in self._of()
        ]
        return (
            pl.concat(parts)
            .filter(pl.col("evidence").list.len() > 0)
            .explode("evidence", empty_as_null=False)
            .unnest("evidence")
            .sort("row", maintain_order=True)
        )

    def uncertain(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Row, field: what an answer itself calls uncertain."""
        return pl.concat(
            self.items(frame, name).filter(pl.col("status") == "uncertain").select("row", "field")
            if many
            else frame.filter(part(name, "status") == "uncertain").select("row", field=pl.lit(name))
            for name, many in self._of()
        )

    def content(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Row, content: the canonical JSON that is published, without the request's reference."""
        return frame.select("row", content=pl.struct(*self.fields).struct.json_encode())


def part(field: str, name: str) -> pl.Expr:
    """A part (value, status, evidence) of a field that is no list."""
    return pl.col(field).struct.field(name)


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
