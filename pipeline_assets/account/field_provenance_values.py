"""The values of one archive entry, told apart by who gave them and where they were read.

Belongs here: comparing what is published with what was answered, pure functions of both. Does not
belong here: reading either (`field_provenance.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import polars as pl

from pipeline_assets.account.field_provenance_model import (
    Evidence,
    FieldFinding,
    FieldProvenance,
    Origin,
    Reviewed,
    Standing,
)
from pipeline_assets.workloads.fields import ABSENT, parts_of
from pipeline_assets.workloads.text_folding import find_quote
from pipeline_assets.workloads.workload import PublishedField

Place = tuple[Standing, int | None, int | None]
"""Whether a quote stands on its page, and from where to where."""


class Given(NamedTuple):
    """What an answer gave, decoded; `known` is False where it is not kept any more."""

    content: Mapping[str, Any]
    known: bool


def members_of_field(
    content: Mapping[str, Any], field: PublishedField
) -> list[tuple[int | None, Mapping[str, Any] | None]]:
    """The values of a field, numbered where it is a list; one nothing for a list without any."""
    parts = parts_of(content, field)
    if not parts:
        return [(None, None)]
    return [(item if field.many else None, part) for item, part in enumerate(parts)]


def standing_of(row: Mapping[str, Any]) -> Standing:
    """Whether a quote stands on its page, by its row of `contracts.PLACES`."""
    if not row["has_page"]:
        return "no such page"
    return "does not stand there" if row["start"] is None else "stands there"


def findings_about(
    field: PublishedField, found: Sequence[Mapping[str, Any]]
) -> tuple[FieldFinding, ...]:
    """What the rules found about one field."""
    return tuple(
        FieldFinding(one["rule"], one["rule_version"], one["severity"], one["note"])
        for one in found
        if one["field"] == field.name
    )


def about_field(
    review: Reviewed, field: PublishedField, content: Mapping[str, Any], given: Given
) -> Reviewed:
    """A review with what it did to one field."""
    if review.decision == "accept":
        changed: bool | None = False
    elif not given.known:
        changed = None
    else:
        changed = parts_of(content, field) != parts_of(given.content, field)
    return replace(review, changed=changed)


def origin_of(
    field: PublishedField, part: Mapping[str, Any] | None, given: Given, by: Origin
) -> Origin:
    """Who gave a value; `part` is None for a list without values."""
    if not given.known:
        return "not told apart"
    offered = parts_of(given.content, field)
    same = part in offered if part is not None else not offered
    return by if same else "reviewer"


def evidence_of(
    field: PublishedField,
    part: Mapping[str, Any],
    places: Mapping[tuple[str, int, str], Place],
) -> tuple[Evidence, ...]:
    """Where a value was read: each quote with its place, where that was kept."""
    unknown: Place = ("not kept", None, None)
    return tuple(
        Evidence(quote["page"], *places.get((field.name, quote["page"], quote["quote"]), unknown))
        for quote in part["evidence"]
    )


def with_words(
    fields: Sequence[FieldProvenance], texts: pl.DataFrame, content: Mapping[str, Any]
) -> tuple[FieldProvenance, ...]:
    """The same with the words of every quote, and with the places that were not kept."""
    pages = dict(texts.select("page", "text").iter_rows())
    shown = []
    for one in fields:
        member = content.get(one.field, ABSENT)
        part = member if one.item is None else member[one.item]
        quoted = part["evidence"] if isinstance(part, dict) else []
        evidence = tuple(
            worded(place, quote["quote"], pages.get(place.page))
            for place, quote in zip(one.evidence, quoted, strict=True)
        )
        shown.append(replace(one, evidence=evidence))
    return tuple(shown)


def worded(place: Evidence, words: str, text: str | None) -> Evidence:
    """A place with its words; one that was not kept is looked for in the page's text."""
    if place.standing != "not kept":
        return replace(place, quote=words)
    if text is None:
        return replace(place, standing="no such page", quote=words)
    found = find_quote(text, words)
    if found is None:
        return replace(place, standing="does not stand there", quote=words)
    return Evidence(place.page, "stands there", *found, words)
