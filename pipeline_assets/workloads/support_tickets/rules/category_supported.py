"""Rule `category_supported`: the ticket's words speak of its category, and of no other as much.

A category without a word of its own in the ticket may be right; it then needs a quote that says
something. A ticket about two things goes to a person, who decides which of them comes first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from pipeline_assets.workloads.workload import Rule, Shard

from ..keywords import category_cues, has_cue
from .words import Found, findings, messages, quotes_of

_FIELD = "category"
_NONE = "the ticket has no category"
_OTHER = "the words of the ticket speak of another category"
_SEVERAL = "the words of the ticket speak of several categories"
_NO_SUPPORT = "neither a word of the ticket nor a telling quote supports it"


def make_rule(thresholds: Mapping[str, Any]) -> Rule:
    """The rule for the workload's thresholds.

    Args:
        thresholds: `category_supported`: `least_weight`, `other_weight`, `clear`, `least_letters`.
    """
    limits = thresholds["category_supported"]

    def check(shard: Shard) -> pl.DataFrame:
        read, quotes = messages(shard), quotes_of(shard, _FIELD)
        found: list[Found] = []
        for row, category, status in shard.values.select(
            "row", "category", "category_status"
        ).iter_rows():
            if status == "absent":
                found.append((row, _FIELD, _NONE))
            elif status == "found" and category is not None:
                sentences = [one for part in read.get(row, []) for one in part.sentences]
                note = _note(category, sentences, quotes.get(row, []), limits)
                if note is not None:
                    found.append((row, _FIELD, note))
        return findings(found)

    return Rule(id="category_supported", version=1, severity="review", check=check, family="values")


def _note(
    category: str, sentences: Sequence[str], quotes: Sequence[str], limits: Mapping[str, Any]
) -> str | None:
    weights = {
        name: sum(cue.weight for cue in cues) for name, cues in category_cues(sentences).items()
    }
    own = weights.pop(category, 0)
    most = max(weights.values(), default=0)
    if category == "question":
        # Most questions are about something; only clear words for a matter make it another.
        own = limits["least_weight"] if any(has_cue("question", one) for one in sentences) else 0
    if not own and most >= (
        limits["least_weight"] if category == "other" else limits["other_weight"]
    ):
        return _OTHER
    if most >= limits["least_weight"] and own < limits["clear"] * most:
        return _SEVERAL
    telling = any(sum(map(str.isalpha, quote)) >= limits["least_letters"] for quote in quotes)
    return None if own or telling else _NO_SUPPORT
