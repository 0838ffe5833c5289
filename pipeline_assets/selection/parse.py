"""Reading a filter: the grammar, and errors that say where and what was expected.

Belongs here: text to tree. Does not belong here: whether a fact exists and what it can be compared
with, which depends on the workload (`bind.py`).

Nothing of a filter is ever run: it becomes a tree of a few closed kinds of nodes.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection
from functools import cache
from typing import Any, cast

from lark import Lark, Token, Transformer, UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from pipeline_assets.selection.errors import WhereTooDeep, WhereTooLong, WhereUnreadable
from pipeline_assets.selection.expression import (
    Absence,
    Among,
    Comparison,
    Expression,
    FactName,
    Literal,
    Negation,
    Operator,
    Where,
    all_of,
    any_of,
)

MOST_CHARACTERS = 4_000
MOST_NESTED = 50

# A keyword is one only where no longer word begins: `android` is not `and`.
_GRAMMAR = r"""
?start: disjunction
?disjunction: conjunction (_OR conjunction)*
?conjunction: negation (_AND negation)*
?negation: NOT negation -> negated
    | "(" disjunction ")"
    | fact OPERATOR value -> comparison
    | fact LIKE value -> comparison
    | fact HAS value -> comparison
    | fact NOT LIKE value -> refused
    | fact NOT HAS value -> refused
    | fact _IN "(" value ("," value)* ")" -> among
    | fact NOT _IN "(" value ("," value)* ")" -> not_among
    | fact _IS _NULL -> absence
    | fact _IS NOT _NULL -> presence
fact: WORD
value: WORD | STRING

_AND.2: /and(?![A-Za-z0-9_.:\/-])/i
_OR.2: /or(?![A-Za-z0-9_.:\/-])/i
NOT.2: /not(?![A-Za-z0-9_.:\/-])/i
_IN.2: /in(?![A-Za-z0-9_.:\/-])/i
_IS.2: /is(?![A-Za-z0-9_.:\/-])/i
_NULL.2: /(null|absent)(?![A-Za-z0-9_.:\/-])/i
LIKE.2: /like(?![A-Za-z0-9_.:\/-])/i
HAS.2: /has(?![A-Za-z0-9_.:\/-])/i
WORD: /[A-Za-z0-9_.:\/-]+/
STRING: /"(?:[^"\\\n]|\\[^\n])*"|'(?:[^'\\\n]|\\[^\n])*'/
OPERATOR: /!=|<=|>=|=|<|>/
%ignore /[ \t\r\n]+/
"""
_KEYWORDS = {
    "_AND": "`and`",
    "_OR": "`or`",
    "NOT": "`not`",
    "_IN": "`in`",
    "_IS": "`is`",
    "_NULL": "`null`",
    "LIKE": "`like`",
    "HAS": "`has`",
    "OPERATOR": "a comparison (= != < <= > >=)",
    "LPAR": "`(`",
    "RPAR": "`)`",
    "COMMA": "`,`",
    "$END": "the end",
}
_VALUE = "a value (a word, a number, a date or text in quotes)"
_SHOWN = 24
_UNCLEAN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")


class _Tree(Transformer[Token, Expression]):
    """Makes the nodes while the text is read."""

    def fact(self, children: list[Token]) -> FactName:
        return FactName(str(children[0]), _place(children[0]))

    def value(self, children: list[Token]) -> Literal:
        token = children[0]
        if token.type == "STRING":
            return Literal(re.sub(r"\\([\\\"'])", r"\1", token[1:-1]), True, _place(token))
        return Literal(str(token), False, _place(token))

    def comparison(self, children: list[Any]) -> Comparison:
        fact, operator, value = children
        return Comparison(fact, cast(Operator, str(operator).lower()), value)

    def refused(self, children: list[Any]) -> Negation:
        fact, _, operator, value = children
        return Negation(self.comparison([fact, operator, value]))

    def among(self, children: list[Any]) -> Among:
        return Among(children[0], tuple(children[1:]))

    def not_among(self, children: list[Any]) -> Negation:
        return Negation(Among(children[0], tuple(children[2:])))

    def absence(self, children: list[FactName]) -> Absence:
        return Absence(children[0])

    def presence(self, children: list[Any]) -> Negation:
        return Negation(Absence(children[0]))

    def negated(self, children: list[Any]) -> Negation:
        return Negation(children[1])

    def conjunction(self, children: list[Expression]) -> Expression:
        return all_of(children)

    def disjunction(self, children: list[Expression]) -> Expression:
        return any_of(children)


def parse_where(text: str) -> Where:
    """Read a filter.

    Raises:
        WhereTooLong: it has more than `MOST_CHARACTERS`.
        WhereTooDeep: more than `MOST_NESTED` parentheses and `not` stand inside each other.
        WhereUnreadable: it is not of the grammar.
    """
    if len(text) > MOST_CHARACTERS:
        raise WhereTooLong(len(text), MOST_CHARACTERS)
    _require_clean(text)
    # Ids and published values are in this form.
    normal = unicodedata.normalize("NFC", text)
    parser = _parser()
    try:
        _require_shallow(parser, normal)
        return Where(text, cast(Expression, parser.parse(normal)))
    except UnexpectedInput as error:
        raise _unreadable(error, normal) from error


def _require_clean(text: str) -> None:
    """Neither database nor frame takes everything that a command line can hold."""
    found = _UNCLEAN.search(text)
    if found is not None:
        line = text.count("\n", 0, found.start()) + 1
        column = found.start() - text.rfind("\n", 0, found.start())
        raise WhereUnreadable(
            _at(line, column), ascii(found.group()), "valid text without control characters"
        )


@cache
def _parser() -> Lark:
    return Lark(
        _GRAMMAR, parser="lalr", lexer="basic", transformer=_Tree(), maybe_placeholders=False
    )


def _require_shallow(parser: Lark, text: str) -> None:
    """Trees are walked by recursion, so their depth is bounded before there is one."""
    outer: list[int] = []
    inside, negations = 0, 0
    for token in parser.lex(text):
        if token.type == "NOT":
            negations += 1
        elif token.type == "LPAR":
            outer.append(negations)
            inside, negations = inside + negations + 1, 0
        else:
            if token.type == "RPAR" and outer:
                inside -= outer.pop() + 1
            negations = 0
        if inside + negations > MOST_NESTED:
            raise WhereTooDeep(_place(token), MOST_NESTED)


def _unreadable(error: UnexpectedInput, text: str) -> WhereUnreadable:
    if isinstance(error, UnexpectedToken):
        token = error.token
        if token.type == "$END":
            return WhereUnreadable("its end", "nothing more", _expected(error.accepts or set()))
        return WhereUnreadable(_place(token), _shown(str(token)), _expected(error.accepts or set()))
    character = text[error.pos_in_stream or 0]
    expected = "facts, values and operators"
    if character in "\"'":
        expected = f"a closing {character} on the same line"
    elif isinstance(error, UnexpectedCharacters) and not character.isascii():
        expected = "quotes around text that is not plain"
    return WhereUnreadable(_at(error.line, error.column), _shown(character), expected)


def _expected(accepted: Collection[str]) -> str:
    names = [_KEYWORDS[name] for name in _KEYWORDS if name in accepted]
    if "STRING" in accepted:
        names.insert(0, _VALUE)
    elif "WORD" in accepted:
        names.insert(0, "the name of a fact")
    return " or ".join(names)


def _shown(text: str) -> str:
    return ascii(text if len(text) <= _SHOWN else text[:_SHOWN] + "...")


def _place(token: Token) -> str:
    return _at(token.line or 1, token.column or 1)


def _at(line: int, column: int) -> str:
    return f"column {column}" if line == 1 else f"line {line}, column {column}"
