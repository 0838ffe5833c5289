"""Answers and the shard that the rules see of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import polars as pl
import yaml

from pipeline_assets.workloads.equipment_manuals.columns import check_answer, decode
from pipeline_assets.workloads.equipment_manuals.workload import load
from pipeline_assets.workloads.workload import Rule, Shard

LIMITS: dict[str, Any] = yaml.safe_load(load().acceptances["1"].thresholds)
PAGE = "Dust Extractor DX-20\nUser Manual\n\nThe DX-20 is a dust extractor for small workshops."
SENTENCE = "The DX-20 is a dust extractor for small workshops."
TITLE = "Dust Extractor DX-20"


def field(
    value: str | None, *quotes: str | tuple[int, str], status: str = "found"
) -> dict[str, Any]:
    """A field with its evidence; a bare quote stands on page 1."""
    pairs = [(1, quote) if isinstance(quote, str) else quote for quote in quotes]
    return {
        "value": value,
        "status": status,
        "evidence": [{"page": page, "quote": quote} for page, quote in pairs],
    }


ABSENT = field(None, status="absent")


def answer(**changes: Any) -> dict[str, Any]:
    """An answer without fault, with some members changed."""
    return {
        "document": "doc-0",
        "title": field(TITLE, TITLE),
        "product_identifiers": [field("DX-20", TITLE)],
        "language": field("en", SENTENCE),
        "description": field(SENTENCE, SENTENCE),
    } | changes


def shard(
    *answers: dict[str, Any],
    pages: Sequence[str] = (PAGE,),
    language: str | None = "en",
    languages: str = "",
) -> Shard:
    """What the rules see of answers about documents that all have the same pages."""
    decoded = decode([check_answer(json.dumps(entry)) for entry in answers])
    count = len(answers)
    records = pl.DataFrame(
        {
            "row": range(count),
            "record_no": range(100, 100 + count),
            "reference": ["doc-0"] * count,
            "language": [language] * count,
            "languages": [languages] * count,
        },
        schema={
            "row": pl.Int64,
            "record_no": pl.Int64,
            "reference": pl.String,
            "language": pl.String,
            "languages": pl.String,
        },
    )
    texts = pl.DataFrame(
        {"page": range(1, len(pages) + 1), "text": pages},
        schema={"page": pl.Int64, "text": pl.String},
    )

    def page_texts(wanted: pl.DataFrame) -> pl.DataFrame:
        assert wanted.is_unique().all(), "a page is asked for once"
        return wanted.join(texts, on="page").select("row", "page", "text")

    return Shard(
        records=records,
        values=decoded.values,
        items=decoded.items,
        evidence=decoded.evidence,
        uncertain=decoded.uncertain,
        page_texts=page_texts,
    )


def found(rule: Rule, seen: Shard) -> list[tuple[int, str, str]]:
    """The rule's findings, sorted."""
    frame = rule.check(seen)
    assert frame.schema == {"row": pl.Int64, "field": pl.String, "note": pl.String}
    return sorted(frame.select("row", "field", "note").rows())
