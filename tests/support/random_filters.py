"""Random filters over every kind of fact."""

from __future__ import annotations

from hypothesis import strategies as st

from pipeline_assets.selection.expression import (
    Absence,
    Among,
    Comparison,
    Expression,
    FactName,
    Literal,
    Negation,
    all_of,
    any_of,
)
from pipeline_assets.workloads.workload import PublishedField

FIELDS = (
    PublishedField("title", "Title", search="title"),
    PublishedField("product_identifiers", "Product identifiers", many=True, search="identifiers"),
    PublishedField("language", "Language", search="language"),
    PublishedField("in", "Of a keyword's name"),
)
WORDS = ("a", "ab", "KX-40", "4021", "12", "3.5", "published", "true", "x/y:z", "-7")
TEXTS = (
    "",
    "a",
    "A b",
    "q\"uo'te",
    "back\\slash",
    "st*r",
    "?",
    "Grün",
    "[a-c]",
    "(.+)",
    "\t.",
    "12",
)
DAYS = ("2026-11-29", "2026-11-30", "2026-11-30T12:00:00Z", "2026-12-01T00:00:00Z")


def _names(*names: str) -> st.SearchStrategy[FactName]:
    return st.sampled_from(names).map(FactName)


words = st.sampled_from(WORDS).map(lambda text: Literal(text, quoted=False))
quoted = st.sampled_from(TEXTS).map(lambda text: Literal(text, quoted=True))
texts = st.one_of(words, quoted)
numbers = st.sampled_from(("0", "1", "2", "2.5", "-1", "40")).map(
    lambda text: Literal(text, quoted=False)
)
days = st.sampled_from(DAYS).map(lambda text: Literal(text, quoted=False))
flags = st.sampled_from(("true", "False", "yes", "NO")).map(
    lambda text: Literal(text, quoted=False)
)
patterns = st.sampled_from(("*", "a*", "?", "*B", "*\\*", "4?21", "[a-c]", "A b", "*.*", "")).map(
    lambda text: Literal(text, quoted=True)
)

TEXT = ("source", "model", "field.title", "title")
LIST = ("finding", "field.product_identifiers", "identifiers")
NUMBER, TIME, FLAG = ("attempts", "pages"), ("published", "frozen"), ("removed", "visible")
EQUAL = st.sampled_from(("=", "!="))
ORDERED = st.sampled_from(("=", "!=", "<", "<=", ">", ">="))
PAIRS = (
    (TEXT, texts),
    (LIST, texts),
    (LIST, numbers),
    (NUMBER, numbers),
    (TIME, days),
    (FLAG, flags),
)

_leaves: st.SearchStrategy[Expression] = st.one_of(
    st.builds(Comparison, _names(*TEXT, *LIST, *FLAG), EQUAL, flags),
    st.builds(Comparison, _names(*TEXT), EQUAL, texts),
    st.builds(Comparison, _names(*TEXT, *LIST), st.just("like"), patterns),
    st.builds(Comparison, _names(*LIST), EQUAL, texts),
    st.builds(Comparison, _names(*LIST), st.just("has"), texts),
    st.builds(Comparison, _names(*LIST, *NUMBER), ORDERED, numbers),
    st.builds(Comparison, _names(*TIME), ORDERED, days),
    *(
        st.builds(Among, _names(*names), st.lists(values, min_size=1, max_size=3).map(tuple))
        for names, values in PAIRS
    ),
    st.builds(Absence, _names(*TEXT, *LIST, *NUMBER, *TIME, *FLAG)),
)
expressions: st.SearchStrategy[Expression] = st.recursive(
    _leaves,
    lambda inner: st.one_of(
        st.builds(Negation, inner),
        st.lists(inner, min_size=2, max_size=3).map(all_of),
        st.lists(inner, min_size=2, max_size=3).map(any_of),
    ),
    max_leaves=8,
)
"""Filters that every fact of the names above can be asked."""
