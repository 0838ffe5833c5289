"""Values out of content, and the outcome of a pair."""

from __future__ import annotations

import json

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_assets.compare.compare import (
    ContradictingConditions,
    UnclearCondition,
    read_conditions,
)
from pipeline_assets.compare.fields import (
    DIFFERENT,
    OUTCOMES,
    is_changed,
    outcomes_of,
    texts_of,
)
from pipeline_assets.workloads.equipment_manuals.workload import FIELDS
from tests.support.archive_shelf import content


def values(*contents: dict[str, object]) -> pl.DataFrame:
    return texts_of(pl.Series([json.dumps(one) for one in contents], dtype=pl.String), FIELDS)


@pytest.mark.parametrize(
    ("first", "second", "outcome"),
    [
        pytest.param("Pump", "Pump", "same", id="equal"),
        pytest.param("PUMP  WP\u201110", "Pump WP-10", "form", id="case, space and dash"),
        pytest.param("Pump", "Pumps", "changed", id="another word"),
        pytest.param(None, "Pump", "gained", id="only the second"),
        pytest.param("Pump", None, "lost", id="only the first"),
        pytest.param(None, None, "absent", id="neither"),
    ],
)
def test_a_text(first: str | None, second: str | None, outcome: str) -> None:
    found = outcomes_of(values(content(first)), values(content(second)))
    assert found["title"].to_list() == [outcome]
    assert found["language"].to_list() == ["same"]
    assert is_changed(found).to_list() == [outcome in DIFFERENT]


@pytest.mark.parametrize(
    ("first", "second", "outcome"),
    [
        pytest.param(("A-1", "B-2"), ("B-2", "A-1"), "same", id="another order"),
        pytest.param(("A-1", "A-1"), ("A-1",), "same", id="repeated"),
        pytest.param(("a-1",), ("A-1",), "form", id="letter case"),
        pytest.param(("A-1",), ("A-1", "B-2"), "changed", id="one more"),
        pytest.param((), ("A-1",), "gained", id="gained"),
        pytest.param(("A-1",), (), "lost", id="lost"),
        pytest.param((), (), "absent", id="neither"),
    ],
)
def test_identifiers_are_a_set(
    first: tuple[str, ...], second: tuple[str, ...], outcome: str
) -> None:
    found = outcomes_of(values(content("t", first)), values(content("t", second)))
    assert found["product_identifiers"].to_list() == [outcome]


TEXTS = st.none() | st.sampled_from(["a", "A", "b", "a b", "a  b"]) | st.text(max_size=5)
PAIRS = st.lists(
    st.tuples(TEXTS.filter(lambda text: text != ""), TEXTS.filter(lambda text: text != "")),
    max_size=8,
)


@given(PAIRS)
def test_turned_round(pairs: list[tuple[str | None, str | None]]) -> None:
    """Gained and lost change places, and nothing else does; every row has one outcome."""
    first = values(*(content(a) for a, _ in pairs))
    second = values(*(content(b) for _, b in pairs))
    there = outcomes_of(first, second)["title"].to_list()
    back = outcomes_of(second, first)["title"].to_list()
    assert len(there) == len(pairs)
    assert set(there) <= set(OUTCOMES)
    turned = {"gained": "lost", "lost": "gained"}
    assert back == [turned.get(outcome, outcome) for outcome in there]


@pytest.mark.parametrize("text", ["title", "title=better", "name=changed", "=changed", "slice="])
def test_an_unclear_condition(text: str) -> None:
    with pytest.raises(UnclearCondition, match="title=changed"):
        read_conditions([text], FIELDS)


def test_conditions_that_never_hold_together() -> None:
    """The last one used to win, in silence."""
    with pytest.raises(ContradictingConditions, match="give title once"):
        read_conditions(["title=changed", "title=lost"], FIELDS)
    assert read_conditions(["title=lost", "title=lost"], FIELDS) == {"title": "lost"}


def test_conditions() -> None:
    assert read_conditions(["title=form", "slice=de/short/text"], FIELDS) == {
        "title": "form",
        "slice": "de/short/text",
    }
    assert values(content("t")).columns == [field.name for field in FIELDS]
