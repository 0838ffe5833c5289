"""Contents of any workload, read by the fields that it declares or by what they tell."""

from __future__ import annotations

import json
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_assets.workloads.equipment_manuals.workload import FIELDS as MANUAL
from pipeline_assets.workloads.fields import (
    ROW_NAMES,
    field_in_role,
    fields_of,
    heading_field,
    heading_of,
    members_of,
    parts_of,
    readable_fields,
    searched,
    searched_of,
    status_of,
    text_of,
    value_columns,
    values_of,
)
from pipeline_assets.workloads.registry import UnknownWorkload
from pipeline_assets.workloads.workload import PublishedField
from resources.settings import Settings
from tests.support.archive_shelf import content
from tests.support.made_up_workload import FIELDS, NOTES, install, note

SUBJECT, KIND, PEOPLE, TONGUE = FIELDS
UNCERTAIN = {"value": "x", "status": "uncertain", "evidence": []}


def test_fields_are_those_that_the_workload_declares() -> None:
    assert fields_of(Settings(), "equipment_manuals") == MANUAL
    with pytest.raises(UnknownWorkload, match="invoices"):
        fields_of(Settings(), "invoices")


def test_a_workload_that_is_gone_is_read_as_its_content_tells() -> None:
    found = readable_fields(Settings(), "invoices", note("Lunch", people=("Ada",)))
    assert found == (
        PublishedField("subject", "Subject"),
        PublishedField("kind", "Kind"),
        PublishedField("people", "People", many=True),
        PublishedField("tongue", "Tongue"),
    )


def test_an_older_content_has_what_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    """A later schema has other fields; what was published under the earlier one is all shown."""
    install(monkeypatch)
    older = note("Lunch") | {"room_number": {"value": "7", "status": "found", "evidence": []}}
    del older["kind"]
    found = readable_fields(Settings(), NOTES, older)
    assert found == (SUBJECT, PEOPLE, TONGUE, PublishedField("room_number", "Room number"))


def test_the_field_that_names_a_document(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch)
    assert heading_field(FIELDS) == SUBJECT
    assert heading_field((KIND, PEOPLE)) == KIND, "without a title it is the first one"
    assert heading_field(()) is None
    assert heading_of(Settings(), {"workload": NOTES, **note("Lunch")}) == "Lunch"
    assert heading_of(Settings(), {"workload": NOTES, **note(None)}) is None
    assert heading_of(Settings(), {"workload": "invoices", **note("Lunch")}) == "Lunch"


def test_fields_by_role() -> None:
    assert field_in_role(FIELDS, "language") == TONGUE
    assert field_in_role(FIELDS, "identifiers") is None
    assert values_of(note("Lunch"), field_in_role(FIELDS, "identifiers")) == ()


def test_values() -> None:
    given = note("Lunch", people=("Ada", "Kim"))
    assert values_of(given, SUBJECT) == ("Lunch",)
    assert text_of(given, PEOPLE) == "Ada, Kim"
    assert values_of(note(None), SUBJECT) == ()
    assert text_of(note("Lunch"), PEOPLE) is None
    assert (parts_of({}, PEOPLE), values_of({}, SUBJECT)) == ([], ())
    assert parts_of({}, SUBJECT)[0]["status"] == "absent"


@pytest.mark.parametrize(
    ("field", "part", "status"),
    [
        (SUBJECT, UNCERTAIN, "uncertain"),
        (SUBJECT, note("x")["subject"], "found"),
        (SUBJECT, note(None)["subject"], "absent"),
        (PEOPLE, [], "absent"),
        (PEOPLE, [note("x")["subject"], UNCERTAIN], "uncertain"),
        (PEOPLE, [note("x")["subject"], note(None)["subject"]], "found"),
    ],
    ids=["one uncertain", "one found", "one absent", "empty", "least certain", "one of them"],
)
def test_status(field: PublishedField, part: Any, status: str) -> None:
    assert status_of({field.name: part}, field) == status


def test_an_exported_row_without_what_stands_beside_its_fields() -> None:
    row = dict.fromkeys(ROW_NAMES) | note("Lunch")
    assert list(members_of(row)) == ["subject", "kind", "people", "tongue"]


def test_what_is_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    assert searched(FIELDS) == {"subject": (False, "title"), "tongue": (False, "language")}
    find = searched_of(Settings())
    assert find("equipment_manuals")["product_identifiers"] == (True, "identifiers")
    with pytest.raises(UnknownWorkload):
        find(NOTES)
    install(monkeypatch)
    assert find(NOTES) == searched(FIELDS)


TEXT = st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
NAMES = st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=8), max_size=3)


@given(st.lists(st.tuples(TEXT, NAMES), max_size=6))
def test_columns_hold_what_each_content_holds(rows: list[tuple[str | None, list[str]]]) -> None:
    contents = [content(title, tuple(names)) for title, names in rows]
    found = value_columns(pl.Series(map(json.dumps, contents), dtype=pl.String), MANUAL)
    assert found.columns == [field.name for field in MANUAL]
    for field in MANUAL:
        expected = [values_of(one, field) for one in contents]
        shown = found[field.name].to_list()
        assert shown == [list(v) if field.many else next(iter(v), None) for v in expected]


def test_a_field_that_no_content_has_is_null() -> None:
    found = value_columns(pl.Series(['{"kind": {"value": "memo"}}'] * 2), FIELDS)
    assert found["kind"].to_list() == ["memo", "memo"]
    assert found["subject"].null_count() == found["people"].null_count() == 2
