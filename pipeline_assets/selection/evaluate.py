"""Computing a filter over a frame of facts, and saying why a record is in.

Belongs here: trees to Polars expressions. Does not belong here: reading the facts (`load.py`).

Two values, never three: a comparison with a fact that a record does not have is false, and
`a != b` is exactly `not a = b`. Literals are only ever compared; none becomes part of a name, a
statement or code. A pattern becomes a regular expression of stars and escaped text, which Rust's
engine matches in linear time.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

import polars as pl

from pipeline_assets.selection.bind import Bound, Span, Value, value_of
from pipeline_assets.selection.expression import (
    Absence,
    AllOf,
    Among,
    AnyOf,
    Comparison,
    Expression,
    Negation,
)
from pipeline_assets.selection.facts import Fact

COLUMN_TYPES: Mapping[str, pl.DataType | type[pl.DataType]] = {
    "text": pl.String,
    "digest": pl.String,
    "number": pl.Int64,
    "time": pl.String,
    "flag": pl.Boolean,
    "list": pl.List(pl.String),
}
"""The column of a fact of each kind; it is called like the fact."""
_NUMERIC: Mapping[str, Callable[[Any, Any], pl.Expr]] = {
    "=": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_BETWEEN = "; "
_SPECIAL = re.compile(r"[\\.+*?()|\[\]{}^$#&\-~\s]")


def condition(bound: Bound) -> pl.Expr:
    """The filter as a Boolean expression over columns called like its facts; never null."""
    return _condition(bound.where.expression, bound)


def _condition(expression: Expression, bound: Bound) -> pl.Expr:
    if isinstance(expression, AllOf):
        return pl.all_horizontal(*(_condition(part, bound) for part in expression.parts))
    if isinstance(expression, AnyOf):
        return pl.any_horizontal(*(_condition(part, bound) for part in expression.parts))
    if isinstance(expression, Negation):
        return ~_condition(expression.part, bound)
    fact = bound.fact(expression.fact)
    if isinstance(expression, Absence):
        return _absent(fact)
    if isinstance(expression, Among):
        return pl.any_horizontal(
            *(
                _compared(fact, "=", value_of(expression.fact, fact, literal))
                for literal in expression.values
            )
        )
    return _comparison(expression, fact)


def _comparison(leaf: Comparison, fact: Fact) -> pl.Expr:
    if leaf.operator == "like":
        return _like(fact, leaf.value.text)
    if leaf.operator == "has":
        return _compared(fact, "=", leaf.value.text)
    value = value_of(leaf.fact, fact, leaf.value)
    if leaf.operator == "!=":
        return ~_compared(fact, "=", value)
    return _compared(fact, leaf.operator, value)


def _compared(fact: Fact, how: str, value: Value) -> pl.Expr:
    column = pl.col(fact.name)
    if isinstance(value, Decimal):
        # Neither a count nor a number of the ledger needs more digits than a float has.
        number = column.list.len() if fact.kind == "list" else column
        return _NUMERIC[how](number.cast(pl.Float64), pl.lit(float(value))).fill_null(value=False)
    if isinstance(value, Span):
        return _in_time(column, how, value).fill_null(value=False)
    if isinstance(value, str) and fact.kind == "list":
        return column.list.contains(pl.lit(value, dtype=pl.String)).fill_null(value=False)
    return (column == pl.lit(value)).fill_null(value=False)


def _in_time(column: pl.Expr, how: str, span: Span) -> pl.Expr:
    first, last = pl.lit(span.first), pl.lit(span.last)
    return {
        "=": (column >= first) & (column <= last),
        "<": column < first,
        "<=": column <= last,
        ">": column > last,
        ">=": column >= first,
    }[how]


def _absent(fact: Fact) -> pl.Expr:
    column = pl.col(fact.name)
    if fact.kind == "list":
        return column.list.len().fill_null(0) == 0
    return column.is_null()


def _like(fact: Fact, pattern: str) -> pl.Expr:
    column, regex = pl.col(fact.name), glob(pattern)
    if fact.kind == "list":
        return column.list.eval(pl.element().str.contains(regex)).list.any().fill_null(value=False)
    return column.str.contains(regex).fill_null(value=False)


def glob(pattern: str) -> str:
    """A pattern of `*` (any text) and `?` (one character) as a regular expression.

    Upper and lower case are the same; every other character stands for itself.
    """
    parts = (
        ".*" if character == "*" else "." if character == "?" else _escaped(character)
        for character in pattern
    )
    return f"(?is)^{''.join(parts)}$"


def _escaped(character: str) -> str:
    return f"\\x{{{ord(character):x}}}" if _SPECIAL.match(character) else character


def why(bound: Bound) -> pl.Expr:
    """The mentioned facts with a record's values, in closed wording: `identifiers=3; prompt=1`.

    Of a document's own text nothing is told but whether it is there, or how many there are.
    """
    return pl.concat_str(*(_told(name, fact) for name, fact in bound.mentioned), separator=_BETWEEN)


def _told(name: str, fact: Fact) -> pl.Expr:
    if fact.shown == "own":
        return pl.lit(f"{name}=own")
    column = pl.col(fact.name)
    if fact.shown == "present":
        there = (
            pl.format(f"{name}={{}}", column.list.len())
            if fact.kind == "list"
            else pl.lit(f"{name} present")
        )
        return pl.when(column.is_null()).then(pl.lit(f"{name} absent")).otherwise(there)
    return pl.format(f"{name}={{}}", _value(fact).fill_null("absent"))


def _value(fact: Fact) -> pl.Expr:
    column = pl.col(fact.name)
    if fact.kind == "list":
        joined = column.list.unique().list.sort().list.join(",")
        return pl.when(column.list.len() > 0).then(joined)
    if fact.kind == "time":
        return column.str.slice(0, len("2026-11-30"))
    if fact.kind == "flag":
        return pl.when(column).then(pl.lit("true")).when(~column).then(pl.lit("false"))
    if fact.kind == "digest":
        return column.str.slice(0, 12)
    if fact.shown == "rough":
        digits = column.abs().cast(pl.String).str.len_chars() - 1
        unit = pl.lit(10, dtype=pl.Int64).pow(digits)
        return pl.format("~{}", (column // unit) * unit)
    return column.cast(pl.String)
