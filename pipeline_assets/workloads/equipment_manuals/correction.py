"""A reviewer's values in the place of the model's, in the shape that is published.

Belongs here: putting them in, and refusing what could not be published: another shape, or a value
that breaks the frame or the shape of an identifier. Does not belong here: whether a value is right,
which is the reviewer's to say, and finding its evidence (`pipeline_assets/review`).

What a reviewer gives is `found`, with the evidence that stands in the document or with none: a
person vouches for it. The fields that are not corrected stay as the model gave them.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping

import msgspec
import polars as pl
import yaml

from pipeline_assets.workloads.equipment_manuals.answer import ABSENT, Evidence, Field
from pipeline_assets.workloads.equipment_manuals.columns import FIELDS, check_answer, decode
from pipeline_assets.workloads.equipment_manuals.rules import frame, identifier_shape
from pipeline_assets.workloads.workload import (
    AnswerInvalid,
    AnswerMalformed,
    CorrectedValue,
    CorrectionRefused,
    Shard,
)

_LIST = "product_identifiers"
_LENGTH = re.compile(r"length_(\d+)_to_(\d+)")
_TOLD = {"language_code": "expected a language code of two small letters, such as en"}
_VOUCHED_FOR = "found without evidence"
"""What the frame says of a value without a quote; a reviewer's needs none."""


def correct(
    content: str, changes: Mapping[str, tuple[CorrectedValue, ...]], thresholds: bytes
) -> str:
    """The content with corrected fields; see `Workload.correct`.

    Raises:
        CorrectionRefused: a field or value that could not be published.
    """
    fields = msgspec.json.decode(content)
    for name, values in changes.items():
        fields[name] = _field(name, values)
    try:
        # The reference of the request is no part of what is published.
        answer = check_answer(msgspec.json.encode({"document": "", **fields}).decode())
    except (AnswerInvalid, AnswerMalformed) as error:
        raise CorrectionRefused(", ".join(changes), str(error)) from None
    _require_shape(answer, set(changes), thresholds)
    return decode([answer]).content["content"][0]


def _field(name: str, values: tuple[CorrectedValue, ...]) -> Field | list[Field]:
    if name not in FIELDS:
        raise CorrectionRefused(name, f"there is no such field; there are {', '.join(FIELDS)}")
    found = [_found(name, value) for value in values]
    if name == _LIST:
        return found
    if len(found) > 1:
        raise CorrectionRefused(name, f"found {len(found)} values, expected one")
    return found[0] if found else ABSENT


def _found(name: str, given: CorrectedValue) -> Field:
    value = unicodedata.normalize("NFC", given.value.strip())
    if any(unicodedata.category(character) in ("Cc", "Cs", "Co", "Cn") for character in value):
        raise CorrectionRefused(name, "it has control characters, or characters of no meaning")
    evidence = [Evidence(page, quote) for page, quote in given.evidence]
    return Field(value=value, status="found", evidence=evidence)


def _require_shape(answer: str, changed: set[str], thresholds: bytes) -> None:
    """Only what was corrected is asked for: the reviewer has seen the rest and lets it stand."""
    limits = yaml.safe_load(thresholds)
    decoded = decode([answer])
    shard = Shard(
        records=pl.DataFrame({"row": [0]}, schema={"row": pl.Int64}),
        values=decoded.values,
        items=decoded.items,
        evidence=decoded.evidence,
        uncertain=decoded.uncertain,
        page_texts=lambda _: pl.DataFrame(
            schema={"row": pl.Int64, "page": pl.Int64, "text": pl.String}
        ),
    )
    found = pl.concat(
        rule.check(shard).select("field", "note")
        for rule in (frame.make_rule(limits), identifier_shape.make_rule(limits))
    ).filter(pl.col("field").is_in(sorted(changed)) & (pl.col("note") != _VOUCHED_FOR))
    if not found.is_empty():
        field, note = found.sort("field", "note").row(0)
        raise CorrectionRefused(field, _told(note))


def _told(note: str) -> str:
    """What a check calls itself, for people."""
    length = _LENGTH.fullmatch(note)
    if length is not None:
        return f"expected {length[1]} to {length[2]} characters"
    return _TOLD.get(note, note)
