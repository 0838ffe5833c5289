"""Rule `summary_supported`: the summary is one sentence and says what the ticket says.

Its numbers and product names must all stand in the ticket, and half of its words; a summary that
is a sentence of the ticket is supported as it is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import polars as pl

from pipeline_assets.workloads.foreign_matter import foreign_matter
from pipeline_assets.workloads.text_folding import fold
from pipeline_assets.workloads.text_support import (
    missing_numbers,
    read_statement,
    share_of_stems,
)
from pipeline_assets.workloads.workload import Rule, Shard

from ..products import product_names
from .words import Found, findings, messages

_FIELD = "summary"
_NONE = "the ticket has no summary"
_SENTENCES = re.compile(r"[.!?…]\s+(?=[^\W\d_a-zà-ÿ])")
_SEVERAL = "more than one sentence"
_NUMBER = "has a number that the ticket does not have"
_PRODUCT = "names a product that the ticket does not name"
_WORDS = "has too few words of the ticket"


def make_rule(thresholds: Mapping[str, Any]) -> Rule:
    """The rule for the workload's thresholds.

    Args:
        thresholds: `summary_supported`: `least_words` to look up, and `in_ticket`, the share of
            them that stands in the ticket.
    """
    limits = thresholds["summary_supported"]

    def check(shard: Shard) -> pl.DataFrame:
        read = messages(shard)
        given = shard.values.select("row", "summary", "summary_status")
        found: list[Found] = [
            (row, _FIELD, _NONE)
            for (row,) in given.filter(pl.col("summary_status") == "absent").select("row").rows()
        ]
        told = given.filter(
            (pl.col("summary_status") == "found") & pl.col("summary").is_not_null()
        ).select("row", text="summary")
        found += [(row, _FIELD, note) for row, note in foreign_matter(told).iter_rows()]
        for row, summary in told.iter_rows():
            text = "\n".join(part.text for part in read.get(row, []))
            found += [(row, _FIELD, note) for note in _notes(summary, text, limits)]
        return findings(found)

    return Rule(
        id="summary_supported", version=1, severity="review", check=check, family="description"
    )


def _notes(summary: str, text: str, limits: Mapping[str, Any]) -> list[str]:
    notes = [_SEVERAL] if _SENTENCES.search(summary) else []
    folded = fold(text)
    if fold(summary) in folded:
        return notes
    statement = read_statement(summary)
    if missing_numbers(statement, folded):
        notes.append(_NUMBER)
    if any(fold(name) not in folded for name in product_names(summary)):
        notes.append(_PRODUCT)
    enough = len(statement.stems) >= limits["least_words"]
    if not enough or share_of_stems(statement.stems, folded) < limits["in_ticket"]:
        notes.append(_WORDS)
    return notes
