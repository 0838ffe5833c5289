"""Rule `priority_justified`: a priority other than normal rests on words that say so.

Only what the writer says counts: how bad a matter is in truth, nobody knows from a ticket. A normal
or low one in which the writer speaks of urgency goes to a person.
"""

from __future__ import annotations

import polars as pl

from pipeline_assets.workloads.workload import Rule, Shard

from ..keywords import is_hedged, level_in
from .words import Found, findings, messages, quotes_of

_FIELD = "priority"
_NONE = "the ticket has no priority"
_NO_CUE = "no quoted words speak of this priority"
_HIGHER = "the words of the ticket speak of a higher priority"
_HEDGED = "the ticket is urgent under a condition"
_HIGHER_THAN = {"low": ("high", "urgent"), "normal": ("high", "urgent"), "high": ("urgent",)}


def check(shard: Shard) -> pl.DataFrame:
    """A finding for every priority that the words of its ticket do not bear."""
    read, quotes = messages(shard), quotes_of(shard, _FIELD)
    found: list[Found] = []
    for row, priority, status in shard.values.select(
        "row", "priority", "priority_status"
    ).iter_rows():
        if status == "absent":
            found.append((row, _FIELD, _NONE))
        elif status == "found" and priority is not None:
            sentences = [one for part in read.get(row, []) for one in part.sentences]
            found += [
                (row, _FIELD, note) for note in _notes(priority, quotes.get(row, []), sentences)
            ]
    return findings(found)


def _notes(priority: str, quotes: list[str], sentences: list[str]) -> list[str]:
    notes = []
    if priority != "normal" and not any(level_in(quote) == priority for quote in quotes):
        notes.append(_NO_CUE)
    loud = [one for one in sentences if level_in(one) in _HIGHER_THAN.get(priority, ())]
    if loud:
        notes.append(_HEDGED if all(map(is_hedged, loud)) else _HIGHER)
    return notes


RULE = Rule(id="priority_justified", version=1, severity="review", check=check, family="values")
