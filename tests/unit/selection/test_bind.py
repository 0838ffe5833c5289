"""What names and values mean, and what is refused before anything is read."""

from __future__ import annotations

from decimal import Decimal

import pytest

from pipeline_assets.selection.bind import Bound, Span, bind, value_of
from pipeline_assets.selection.errors import AmbiguousFact, FactMisused, UnknownFact
from pipeline_assets.selection.expression import FactName, Literal
from pipeline_assets.selection.facts import FACTS
from pipeline_assets.selection.parse import parse_where
from pipeline_assets.workloads.workload import PublishedField
from tests.support.random_filters import FIELDS


def _bind(text: str, fields: tuple[PublishedField, ...] = FIELDS) -> Bound:
    return bind(parse_where(text), lambda: fields)


@pytest.mark.parametrize(
    ("name", "fact"),
    [
        pytest.param("state", "state", id="fact"),
        pytest.param("title", "field.title", id="field"),
        pytest.param("field.title", "field.title", id="full-name"),
        pytest.param("identifiers", "field.product_identifiers", id="search-role"),
        pytest.param("product_identifiers", "field.product_identifiers", id="many"),
        pytest.param("language", "language", id="fact-before-field"),
        pytest.param("field.language", "field.language", id="field-of-a-facts-name"),
        pytest.param("field.in", "field.in", id="field-of-a-keywords-name"),
    ],
)
def test_names(name: str, fact: str) -> None:
    assert [found.name for _, found in _bind(f"{name} is null").mentioned] == [fact]


def test_fields_are_asked_for_only_where_they_are_named() -> None:
    def installed() -> tuple[PublishedField, ...]:
        raise AssertionError("the workload was loaded")

    bind(parse_where("state = published and finding has x"), installed)


def test_each_fact_is_mentioned_once_in_order() -> None:
    bound = _bind("identifiers > 1 and prompt = 1 and product_identifiers = x and prompt = 2")
    assert [name for name, _ in bound.mentioned] == ["identifiers", "prompt"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("modle = x", "'modle' (at column 1); is one of these meant: mode", id="near"),
        pytest.param("state = published or tittle = x", "(at column 22)", id="place"),
        pytest.param("qqqqqqqq = x", "known are acceptance, attempt_reason", id="none-near"),
        pytest.param("field.state = x", "'field.state'", id="fact-is-no-field"),
    ],
)
def test_unknown_facts(text: str, message: str) -> None:
    with pytest.raises(UnknownFact) as caught:
        _bind(text)
    assert message in str(caught.value)


def test_a_role_of_two_fields() -> None:
    fields = (
        PublishedField("summary", "Summary", search="description"),
        PublishedField("steps", "Steps", search="description"),
    )
    with pytest.raises(AmbiguousFact, match=r"summary, steps: write `field.summary`"):
        _bind("description like x", fields)
    _bind("steps like x", fields)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(
            "checksum > 3", "found > '3', expected one of != = in like", id="digest-order"
        ),
        pytest.param("checksum = 3", "all 64 hexadecimal digits", id="short-digest"),
        pytest.param(
            "title < x", "expected one of != = in like, since it is text", id="text-order"
        ),
        pytest.param("attempts = two", "found 'two', expected a number", id="word-for-number"),
        pytest.param('attempts = "2"', "expected a number without quotes", id="text-for-number"),
        pytest.param("attempts like 2", "since it is a number", id="number-like"),
        pytest.param("size > 12345678901234567890", "at most 15 digits", id="digits"),
        pytest.param("finding > x", "compare how many it has, with a number", id="set-order"),
        pytest.param('identifiers > "1"', "compare how many", id="count-as-text"),
        pytest.param("state has x", "expected one of != = in like", id="has-of-text"),
        pytest.param("removed = maybe", "expected true or false", id="flag"),
        pytest.param("removed > true", "since it is true or false", id="flag-order"),
        pytest.param("published > soon", "2026-11-30T12:00:00Z", id="word-for-time"),
        pytest.param("published > 2026-13-01", "found '2026-13-01'", id="month-13"),
        pytest.param("published > 0226-11-30", "found '0226-11-30'", id="year-226"),
        pytest.param('published = "9999-12-31T23:00:00-05:00"', "'9999", id="after-the-last-year"),
        pytest.param('published like "2026*"', "since it is a time", id="time-like"),
        pytest.param("state = publishd", "found 'publishd', expected 'published', or", id="state"),
        pytest.param("state in (published, done)", "found 'done'", id="state-in-list"),
        pytest.param("disposition != ok", "expected one of succeeded, retry", id="disposition"),
        pytest.param("decision = accepted", "expected 'accept', or another of", id="decision"),
        pytest.param("state = queued or attempts = y", "`attempts` at column 30", id="place"),
    ],
)
def test_misused_facts(text: str, message: str) -> None:
    with pytest.raises(FactMisused) as caught:
        _bind(text)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        pytest.param("attempts", "2.50", Decimal("2.5"), id="number"),
        pytest.param("finding", "2", Decimal(2), id="count"),
        pytest.param("prompt", "2", "2", id="text-of-digits"),
        pytest.param("removed", "Yes", True, id="flag"),
        pytest.param("checksum", "AB" * 32, "ab" * 32, id="digest"),
        pytest.param(
            "frozen",
            "2026-11-30",
            Span("2026-11-30T00:00:00.000000Z", "2026-11-30T23:59:59.999999Z"),
            id="day",
        ),
        pytest.param(
            "frozen",
            "2026-11-30T12:00:00Z",
            Span("2026-11-30T12:00:00.000000Z", "2026-11-30T12:00:00.000000Z"),
            id="moment",
        ),
        pytest.param(
            "frozen",
            "2026-11-30T12:00:00+02:00",
            Span("2026-11-30T10:00:00.000000Z", "2026-11-30T10:00:00.000000Z"),
            id="zone",
        ),
        pytest.param(
            "frozen",
            "2026-11-30T12:00",
            Span("2026-11-30T12:00:00.000000Z", "2026-11-30T12:00:00.000000Z"),
            id="utc-without-a-zone",
        ),
    ],
)
def test_values(name: str, text: str, value: object) -> None:
    assert value_of(FactName(name), FACTS[name], Literal(text, quoted=False)) == value


def test_a_number_in_quotes_is_a_member() -> None:
    literal = Literal("4021", quoted=True)
    assert value_of(FactName("finding"), FACTS["finding"], literal) == "4021"
