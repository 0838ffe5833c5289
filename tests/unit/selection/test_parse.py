"""The grammar of filters: what is read, and what an error says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_assets.selection.errors import (
    SelectionError,
    WhereTooDeep,
    WhereTooLong,
    WhereUnreadable,
)
from pipeline_assets.selection.expression import Comparison, Expression, Literal
from pipeline_assets.selection.parse import MOST_CHARACTERS, MOST_NESTED, parse_where
from tests.support.random_filters import expressions


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        pytest.param("state=published", "state = published", id="no-blanks"),
        pytest.param("identifiers > 1", "identifiers > 1", id="number"),
        pytest.param("a >=-2.5", "a >= -2.5", id="decimal-below-zero"),
        pytest.param("a != 'x y'", 'a != "x y"', id="single-quotes"),
        pytest.param('a = "it\'s"', 'a = "it\'s"', id="quote-in-the-other-quotes"),
        pytest.param(r'a = "6\" pipe \\ b\n"', r'a = "6\" pipe \\ b\\n"', id="escapes"),
        pytest.param('a = ""', 'a = ""', id="empty-text"),
        pytest.param("a = b and c = d or e = f", "a = b and c = d or e = f", id="and-binds-more"),
        pytest.param("a = b and (c = d or e = f)", "a = b and (c = d or e = f)", id="parentheses"),
        pytest.param("((a = b) and (c = d)) and e = f", "a = b and c = d and e = f", id="flat"),
        pytest.param("not a = b and c = d", "not a = b and c = d", id="not-binds-most"),
        pytest.param("not (a = b and c = d)", "not (a = b and c = d)", id="not-of-all"),
        pytest.param(
            "NOT a LIKE 'x*' AND b In (1,2)", 'not a like "x*" and b in (1, 2)', id="case"
        ),
        pytest.param("a not in (x)", "not a in (x)", id="not-in"),
        pytest.param("a not like x", "not a like x", id="not-like"),
        pytest.param("finding not has x", "not finding has x", id="not-has"),
        pytest.param("a is null", "a is null", id="null"),
        pytest.param("a IS absent", "a is null", id="absent"),
        pytest.param("a is not absent", "a is not null", id="not-absent"),
        pytest.param("not a is null", "a is not null", id="not-null"),
        pytest.param("android = order", "android = order", id="words-that-begin-like-keywords"),
        pytest.param("field.in = notes.x", "field.in = notes.x", id="dots"),
        pytest.param(
            "frozen < 2026-11-30T12:00:00Z", "frozen < 2026-11-30T12:00:00Z", id="time-of-day"
        ),
        pytest.param("a = b\n  and\tc = d\r\n", "a = b and c = d", id="lines"),
        pytest.param("a = 'u\u0308'", 'a = "\u00fc"', id="composed"),
    ],
)
def test_read(text: str, printed: str) -> None:
    where = parse_where(text)
    assert str(where.expression) == printed
    assert where.text == text
    assert parse_where(printed).expression == where.expression


@pytest.mark.parametrize(
    ("text", "place", "found", "expected"),
    [
        pytest.param("", "its end", "nothing more", "the name of a fact", id="empty"),
        pytest.param("a = ", "its end", "nothing more", "a value", id="no-value"),
        pytest.param("a", "its end", "nothing more", "a comparison", id="no-comparison"),
        pytest.param("a == b", "column 4", "'='", "a value", id="two-signs"),
        pytest.param("a b", "column 3", "'b'", "`in` or `is`", id="no-operator"),
        pytest.param("a = b c = d", "column 7", "'c'", "`and` or `or`", id="no-and"),
        pytest.param("a = 1)", "column 6", "')'", "the end", id="closed-too-often"),
        pytest.param("((a = 1)", "its end", "nothing more", "`)`", id="left-open"),
        pytest.param("a in ()", "column 7", "')'", "a value", id="empty-list"),
        pytest.param("a in (1,)", "column 9", "')'", "a value", id="comma-at-the-end"),
        pytest.param("a in 1", "column 6", "'1'", "`(`", id="in-without-list"),
        pytest.param("a is 1", "column 6", "'1'", "`not` or `null`", id="is-with-a-value"),
        pytest.param("and = 1", "column 1", "'and'", "the name of a fact", id="keyword-as-fact"),
        pytest.param("a = and", "column 5", "'and'", "a value", id="keyword-as-value"),
        pytest.param("a = 'x", "column 5", '"\'"', "a closing '", id="quote-left-open"),
        pytest.param('a = "x\ny"', "column 5", "'\"'", 'a closing "', id="text-over-lines"),
        pytest.param("a = grün", "column 7", r"'\xfc'", "quotes around", id="umlaut-in-a-word"),
        pytest.param("a = b\nand c ~ d", "line 2, column 7", "'~'", "operators", id="second-line"),
        pytest.param("a = 1; DROP TABLE records", "column 6", "';'", "operators", id="statement"),
        pytest.param("a = b -- c", "column 7", "'--'", "`and` or `or`", id="comment"),
        pytest.param("__import__('os')", "column 11", "'('", "a comparison", id="call"),
        pytest.param("a = 'x\0'", "column 7", r"'\x00'", "without control", id="zero"),
        pytest.param("a =\n '\udcff'", "line 2, column 3", r"'\udcff'", "valid text", id="bytes"),
    ],
)
def test_refused(text: str, place: str, found: str, expected: str) -> None:
    with pytest.raises(WhereUnreadable) as caught:
        parse_where(text)
    assert f"cannot be read at {place}: found {found}, expected " in str(caught.value)
    assert expected in str(caught.value).split("expected ", 1)[1]


def test_length() -> None:
    text = "a = '" + "x" * (MOST_CHARACTERS - 6) + "'"
    assert isinstance(parse_where(text).expression, Comparison)
    with pytest.raises(WhereTooLong, match=f"has {MOST_CHARACTERS + 1} characters"):
        parse_where(text + " ")


@pytest.mark.parametrize(
    ("opening", "closing"),
    [
        pytest.param("(", ")", id="parentheses"),
        pytest.param("not ", "", id="not"),
        pytest.param("not (b = c or ", ")", id="both"),
    ],
)
def test_nesting(opening: str, closing: str) -> None:
    levels = opening.count("(") + opening.count("not")
    times = MOST_NESTED // levels
    parse_where(opening * times + "a = 1" + closing * times)
    with pytest.raises(WhereTooDeep, match="more than 50 deep at column "):
        parse_where(opening * (times + 1) + "a = 1" + closing * (times + 1))


def test_many_parts_are_not_deep() -> None:
    text = " and ".join(["(a=1)"] * 400)
    assert str(parse_where(text).expression).count("a = 1") == 400


def test_a_place_is_no_part_of_a_tree() -> None:
    assert Literal("x", quoted=False, place="column 1") == Literal("x", quoted=False)


@given(expressions)
def test_printed_and_read_again(expression: Expression) -> None:
    assert parse_where(str(expression)).expression == expression


@given(st.text(alphabet="ab=<>!()'\",. \\\n*?notandridlkeh1-:\0\ud800", max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        where = parse_where(text)
    except SelectionError as error:
        assert str(error)
    else:
        assert parse_where(str(where.expression)).expression == where.expression
