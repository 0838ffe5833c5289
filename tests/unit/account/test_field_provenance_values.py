"""Telling the values of a reviewer from those of the answer, and where each was read."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from pipeline_assets.account.field_provenance_model import Evidence, Reviewed
from pipeline_assets.account.field_provenance_values import (
    Given,
    about_field,
    evidence_of,
    findings_about,
    members_of_field,
    origin_of,
    standing_of,
    worded,
)
from pipeline_assets.workloads.workload import PublishedField

ONE = PublishedField("kind", "Kind")
MANY = PublishedField("people", "People", many=True)


def part(value: str | None, *quotes: tuple[int, str]) -> dict[str, Any]:
    return {
        "value": value,
        "status": "absent" if value is None else "found",
        "evidence": [{"page": page, "quote": words} for page, words in quotes],
    }


GIVEN = Given({"kind": part("call"), "people": [part("Ada"), part("Bo")]}, known=True)


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        pytest.param(ONE, part("call"), "model", id="same"),
        pytest.param(ONE, part("letter"), "reviewer", id="other-value"),
        pytest.param(ONE, part("call", (1, "a call")), "reviewer", id="other-evidence"),
        pytest.param(ONE, part(None), "reviewer", id="taken-away"),
        pytest.param(MANY, part("Bo"), "model", id="kept-item"),
        pytest.param(MANY, part("Cy"), "reviewer", id="new-item"),
        pytest.param(MANY, None, "reviewer", id="emptied-list"),
    ],
)
def test_who_gave_a_value(
    field: PublishedField, value: dict[str, Any] | None, expected: str
) -> None:
    assert origin_of(field, value, GIVEN, "model") == expected
    assert origin_of(field, value, Given({}, known=False), "model") == "not told apart"


def test_a_list_without_values_is_the_answers_where_that_had_none() -> None:
    assert origin_of(MANY, None, Given({"people": []}, known=True), "model") == "model"


@pytest.mark.parametrize(
    ("decision", "given", "content", "expected"),
    [
        pytest.param("accept", GIVEN, {"kind": part("call")}, False, id="accepted"),
        pytest.param("correct", GIVEN, {"kind": part("call")}, False, id="other-field-corrected"),
        pytest.param("correct", GIVEN, {"kind": part("letter")}, True, id="corrected"),
        pytest.param("correct", Given({}, known=False), {"kind": part("x")}, None, id="unknown"),
    ],
)
def test_what_a_review_did_to_a_field(
    decision: str, given: Given, content: dict[str, Any], expected: bool | None
) -> None:
    review = Reviewed(1, "findings", decision, "ada", "2026-01-01", "seen")
    assert about_field(review, ONE, content, given).changed is expected


def test_members_are_numbered_in_lists_alone() -> None:
    content = {"kind": part("call"), "people": [part("Ada"), part("Bo")]}
    assert [item for item, _ in members_of_field(content, ONE)] == [None]
    assert [item for item, _ in members_of_field(content, MANY)] == [0, 1]
    assert members_of_field({"people": []}, MANY) == [(None, None)]
    assert members_of_field({}, MANY) == [(None, None)]


def test_evidence_has_the_places_that_were_kept() -> None:
    found = evidence_of(
        ONE,
        part("call", (1, "a call"), (2, "calls")),
        {("kind", 1, "a call"): ("stands there", 3, 9)},
    )
    assert found == (
        Evidence(1, "stands there", 3, 9),
        Evidence(2, "not kept", None, None),
    )


@pytest.mark.parametrize(
    ("has_page", "start", "expected"),
    [
        (True, 3, "stands there"),
        (True, 0, "stands there"),
        (True, None, "does not stand there"),
        (False, None, "no such page"),
    ],
)
def test_standing(has_page: bool, start: int | None, expected: str) -> None:
    assert standing_of({"has_page": has_page, "start": start}) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("it was a call", Evidence(1, "stands there", 7, 13, "a call"), id="found"),
        pytest.param(
            "a letter", Evidence(1, "does not stand there", None, None, "a call"), id="not-found"
        ),
        pytest.param(None, Evidence(1, "no such page", None, None, "a call"), id="no-page"),
    ],
)
def test_a_place_that_was_not_kept_is_looked_for(text: str | None, expected: Evidence) -> None:
    assert worded(Evidence(1, "not kept", None, None), "a call", text) == expected


def test_a_place_that_was_kept_is_not_looked_for_again() -> None:
    kept = Evidence(1, "stands there", 0, 6)
    assert worded(kept, "a call", "another text") == Evidence(1, "stands there", 0, 6, "a call")


def test_findings_are_those_about_the_field() -> None:
    rows = pl.DataFrame(
        {
            "rule": ["a", "b"],
            "rule_version": [1, 2],
            "severity": ["review", "note"],
            "field": ["kind", "people"],
            "note": ["n", "m"],
        }
    ).to_dicts()
    assert [one.rule for one in findings_about(ONE, rows)] == ["a"]
