"""Filters over frames of facts, against a plain reading of them row by row."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_assets.selection.bind import bind
from pipeline_assets.selection.evaluate import COLUMN_TYPES, condition, glob, why
from pipeline_assets.selection.expression import (
    Absence,
    AllOf,
    Among,
    AnyOf,
    Comparison,
    Expression,
    Literal,
    Negation,
    Where,
)
from pipeline_assets.selection.facts import FACTS
from pipeline_assets.selection.parse import parse_where
from tests.support.random_filters import DAYS, FIELDS, FLAG, NUMBER, TEXTS, TIME, WORDS, expressions

COLUMNS = {
    "source": pl.String,
    "model": pl.String,
    "field.title": pl.String,
    "finding": pl.List(pl.String),
    "field.product_identifiers": pl.List(pl.String),
    "attempts": pl.Int64,
    "pages": pl.Int64,
    "published": pl.String,
    "frozen": pl.String,
    "removed": pl.Boolean,
    "visible": pl.Boolean,
}
ALIASES = {"title": "field.title", "identifiers": "field.product_identifiers"}
MOMENTS = (
    "2026-11-28T23:59:59.999999Z",
    "2026-11-29T00:00:00.000000Z",
    "2026-11-29T23:59:59.999999Z",
    "2026-11-30T12:00:00.000000Z",
    "2026-11-30T12:00:00.000001Z",
    "2026-12-01T00:00:00.000000Z",
)
_text = st.none() | st.sampled_from((*WORDS, *TEXTS))
_list = st.none() | st.lists(st.sampled_from((*WORDS, *TEXTS)), max_size=3)
_rows = st.fixed_dictionaries(
    {
        name: _text
        if dtype == pl.String and name not in TIME
        else st.none() | st.sampled_from(MOMENTS)
        if name in TIME
        else _list
        if isinstance(dtype, pl.List)
        else st.none() | st.booleans()
        if name in FLAG
        else st.none() | st.integers(-1, 41)
        for name, dtype in COLUMNS.items()
    }
)


def holds(expression: Expression, row: dict[str, Any]) -> bool:
    """Say whether a filter is true of a row, one value at a time."""
    if isinstance(expression, AllOf):
        return all(holds(part, row) for part in expression.parts)
    if isinstance(expression, AnyOf):
        return any(holds(part, row) for part in expression.parts)
    if isinstance(expression, Negation):
        return not holds(expression.part, row)
    name = ALIASES.get(expression.fact.text, expression.fact.text)
    value = row[name]
    if isinstance(expression, Absence):
        return value is None or value == []
    if isinstance(expression, Among):
        return any(_is(name, value, "=", literal) for literal in expression.values)
    assert isinstance(expression, Comparison)
    if expression.operator == "!=":
        return not _is(name, value, "=", expression.value)
    return _is(name, value, expression.operator, expression.value)


def _is(name: str, value: Any, operator: str, literal: Literal) -> bool:
    if value is None:
        return False
    text = literal.text
    number = not literal.quoted and re.fullmatch(r"-?\d+(\.\d+)?", text)
    if isinstance(value, list) and operator == "has":
        return text in value
    if operator == "like":
        return any(_fits(text, one) for one in (value if isinstance(value, list) else [value]))
    if isinstance(value, list) and not number:
        return text in value
    if isinstance(value, list):
        value = len(value)
    if name in TIME:
        return _in_time(value, operator, text)
    if name in FLAG:
        return value == (text.lower() in ("true", "yes"))
    if isinstance(value, str):
        return value == text
    return _ordered(value, operator, float(text))


def _ordered(one: Any, operator: str, other: Any) -> bool:
    return {
        "=": one == other,
        "<": one < other,
        "<=": one <= other,
        ">": one > other,
        ">=": one >= other,
    }[operator]


def _in_time(value: str, operator: str, text: str) -> bool:
    moment = datetime.fromisoformat(value)
    start = datetime.fromisoformat(text).replace(tzinfo=UTC)
    end = start + (timedelta(days=1) if "T" not in text else timedelta(microseconds=1))
    return {
        "=": start <= moment < end,
        "<": moment < start,
        "<=": moment < end,
        ">": moment >= end,
        ">=": moment >= start,
    }[operator]


def _fits(pattern: str, text: str) -> bool:
    """Match `*` and `?` by hand, without any regular expression."""
    if not pattern:
        return not text
    if pattern[0] == "*":
        return any(_fits(pattern[1:], text[start:]) for start in range(len(text) + 1))
    return bool(text) and (
        (pattern[0] == "?" or pattern[0].lower() == text[0].lower())
        and _fits(pattern[1:], text[1:])
    )


@given(expressions, st.lists(_rows, max_size=6))
def test_as_a_plain_reading_says(expression: Expression, rows: list[dict[str, Any]]) -> None:
    bound = bind(Where(str(expression), expression), lambda: FIELDS)
    frame = pl.DataFrame(rows, schema=COLUMNS)
    found = frame.select(fits=condition(bound))["fits"]
    assert found.null_count() == 0
    assert found.to_list() == [holds(expression, row) for row in rows]


@given(expressions, st.lists(_rows, min_size=1, max_size=6))
def test_every_record_has_a_slice(expression: Expression, rows: list[dict[str, Any]]) -> None:
    bound = bind(Where(str(expression), expression), lambda: FIELDS)
    told = pl.DataFrame(rows, schema=COLUMNS).select(slice=why(bound))["slice"]
    assert told.null_count() == 0


@given(
    st.text(alphabet="ab*?[].\\^$(){}+|-# \n", max_size=8),
    st.text(alphabet="ab*[.\\ \n", max_size=8),
)
def test_a_pattern_knows_stars_and_question_marks_alone(pattern: str, text: str) -> None:
    assert pl.Series([text]).str.contains(glob(pattern)).item() == _fits(pattern, text)


_AROUND = (
    "2026-11-29T23:59:59.999999Z",
    "2026-11-30T00:00:00.000000Z",
    "2026-11-30T12:00:00.000000Z",
    "2026-11-30T23:59:59.999999Z",
    "2026-12-01T00:00:00.000000Z",
    None,
)


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        pytest.param("= 2026-11-30", [0, 1, 1, 1, 0, 0], id="on-a-day"),
        pytest.param("!= 2026-11-30", [1, 0, 0, 0, 1, 1], id="not-on-a-day"),
        pytest.param("< 2026-11-30", [1, 0, 0, 0, 0, 0], id="before-a-day"),
        pytest.param("<= 2026-11-30", [1, 1, 1, 1, 0, 0], id="until-a-day-ends"),
        pytest.param("> 2026-11-30", [0, 0, 0, 0, 1, 0], id="after-a-day"),
        pytest.param(">= 2026-11-30", [0, 1, 1, 1, 1, 0], id="from-a-day-on"),
        pytest.param("= 2026-11-30T12:00:00Z", [0, 0, 1, 0, 0, 0], id="at-a-moment"),
        pytest.param("< 2026-11-30T12:00:00Z", [1, 1, 0, 0, 0, 0], id="before-a-moment"),
        pytest.param("<= 2026-11-30T12:00:00Z", [1, 1, 1, 0, 0, 0], id="until-a-moment"),
        pytest.param("> 2026-11-30T12:00:00Z", [0, 0, 0, 1, 1, 0], id="after-a-moment"),
        pytest.param("in (2026-11-29, 2026-12-01)", [1, 0, 0, 0, 1, 0], id="on-one-of-days"),
    ],
)
def test_times(text: str, fits: list[int]) -> None:
    bound = bind(parse_where(f"published {text}"), lambda: FIELDS)
    frame = pl.DataFrame({"published": _AROUND}, schema={"published": pl.String})
    assert frame.select(fits=condition(bound).cast(pl.Int64))["fits"].to_list() == fits


def test_long_patterns_are_quick() -> None:
    hard = glob("*a" * 1_000)
    assert not pl.Series(["a" * 999 + "b" * 5_000]).str.contains(hard).item()


@pytest.mark.parametrize(
    ("text", "row", "told"),
    [
        pytest.param(
            "identifiers > 1 and prompt = 1",
            {"field.product_identifiers": ["a", "b", "c"], "prompt": "1"},
            "identifiers=3; prompt=1",
            id="order-of-appearance",
        ),
        pytest.param(
            "title = Pump", {"field.title": "Pump"}, "title present", id="text-of-a-field"
        ),
        pytest.param("not title = Pump", {"field.title": None}, "title absent", id="no-text"),
        pytest.param(
            "identifiers is absent", {"field.product_identifiers": []}, "identifiers=0", id="none"
        ),
        pytest.param(
            "identifiers is absent",
            {"field.product_identifiers": None},
            "identifiers absent",
            id="no-answer",
        ),
        pytest.param("finding has b", {"finding": ["b", "a", "b"]}, "finding=a,b", id="set"),
        pytest.param("finding is null", {"finding": []}, "finding=absent", id="empty-set"),
        pytest.param("model != x", {"model": None}, "model=absent", id="absent"),
        pytest.param("document = x", {"document": "s/x"}, "document=own", id="own"),
        pytest.param("size > 1", {"size": 123_456}, "size=~100000", id="rough"),
        pytest.param("size > 1", {"size": 7}, "size=~7", id="rough-digit"),
        pytest.param("size > 1", {"size": 0}, "size=~0", id="rough-zero"),
        pytest.param("size > 1", {"size": None}, "size=absent", id="rough-absent"),
        pytest.param("removed = true", {"removed": True}, "removed=true", id="flag"),
        pytest.param(
            "published > 2026-01-01",
            {"published": "2026-11-30T12:00:00.000001Z"},
            "published=2026-11-30",
            id="day",
        ),
    ],
)
def test_why_a_record_is_in(text: str, row: dict[str, Any], told: str) -> None:
    bound = bind(parse_where(text), lambda: FIELDS)
    schema = {fact.name: COLUMN_TYPES[fact.kind] for _, fact in bound.mentioned}
    assert pl.DataFrame([row], schema=schema).select(slice=why(bound)).item() == told


def test_the_facts_of_the_tests_are_facts() -> None:
    assert {*NUMBER, *TIME, *FLAG} <= set(FACTS)
    assert len(DAYS) == len(set(DAYS))
