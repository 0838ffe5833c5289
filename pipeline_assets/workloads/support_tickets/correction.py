"""A reviewer's values in the place of the model's, in the shape that is published.

Belongs here: putting them in, and refusing what could not be published: another shape, a value
outside a closed list, or one that breaks the frame. Does not belong here: whether a value is right,
which is the reviewer's to say, and finding its evidence (`pipeline_assets/review`).

What a reviewer gives is `found`, with the evidence that stands in the ticket or with none: a person
vouches for it. The fields that are not corrected stay as the model gave them.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping

import msgspec
import polars as pl
import yaml

from pipeline_assets.workloads.answer_format import ABSENT, Evidence, Field
from pipeline_assets.workloads.frame_checks import VOUCHED_FOR
from pipeline_assets.workloads.workload import (
    AnswerInvalid,
    AnswerMalformed,
    CorrectedValue,
    CorrectionRefused,
    Shard,
)

from .answer import CATEGORIES, PRIORITIES
from .columns import FIELDS, FORMAT, decode
from .rules import frame

_LISTS = {"category": CATEGORIES, "priority": PRIORITIES}
_LENGTH = re.compile(r"length_(\d+)_to_(\d+)")
_TOLD = {"language_code": "expected a language code of two small letters, such as en"}


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
        answer = FORMAT.check(msgspec.json.encode({"document": "", **fields}).decode())
    except (AnswerInvalid, AnswerMalformed) as error:
        raise CorrectionRefused(", ".join(changes), str(error)) from None
    _require_shape(answer, set(changes), thresholds)
    return decode([answer]).content["content"][0]


def _field(name: str, values: tuple[CorrectedValue, ...]) -> Field:
    if name not in FIELDS:
        raise CorrectionRefused(name, f"there is no such field; there are {', '.join(FIELDS)}")
    if len(values) > 1:
        raise CorrectionRefused(name, f"found {len(values)} values, expected one")
    if not values:
        return ABSENT
    value = unicodedata.normalize("NFC", values[0].value.strip())
    if any(unicodedata.category(character) in ("Cc", "Cs", "Co", "Cn") for character in value):
        raise CorrectionRefused(name, "it has control characters, or characters of no meaning")
    allowed = _LISTS.get(name)
    if allowed is not None and value not in allowed:
        raise CorrectionRefused(name, f"expected one of {', '.join(allowed)}")
    evidence = [Evidence(page, quote) for page, quote in values[0].evidence]
    return Field(value=value, status="found", evidence=evidence)


def _require_shape(answer: str, changed: set[str], thresholds: bytes) -> None:
    """Only what was corrected is asked for: the reviewer has seen the rest and lets it stand."""
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
    found = frame.make_rule(yaml.safe_load(thresholds)).check(shard)
    found = found.filter(pl.col("field").is_in(sorted(changed)) & (pl.col("note") != VOUCHED_FOR))
    if not found.is_empty():
        field, note = found.sort("field", "note").select("field", "note").row(0)
        raise CorrectionRefused(field, _told(note))


def _told(note: str) -> str:
    """What a check calls itself, for people."""
    length = _LENGTH.fullmatch(note)
    if length is not None:
        return f"expected {length[1]} to {length[2]} characters"
    return _TOLD.get(note, note)
