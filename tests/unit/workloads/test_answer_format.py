"""Answers of any workload: lists beside single fields, as text and as columns."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_assets.workloads.answer_format import AnswerFormat, Field
from pipeline_assets.workloads.workload import AnswerInvalid, AnswerMalformed


class Recipe(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An answer of no workload."""

    document: str
    name: Field
    ingredients: list[Field]
    author: Field


FORMAT = AnswerFormat(Recipe)

fields = st.fixed_dictionaries(
    {
        "value": st.none() | st.text(),
        "status": st.sampled_from(["found", "absent", "uncertain"]),
        "evidence": st.lists(
            st.fixed_dictionaries({"page": st.integers(1, 1_000_000), "quote": st.text()}),
            max_size=2,
        ),
    }
)
recipes = st.fixed_dictionaries(
    {
        "document": st.text(),
        "name": fields,
        "ingredients": st.lists(fields, max_size=3),
        "author": fields,
    }
)


def members(recipe: dict[str, Any]) -> list[tuple[str, int, dict[str, Any]]]:
    return [
        ("name", 0, recipe["name"]),
        *(("ingredients", item, part) for item, part in enumerate(recipe["ingredients"])),
        ("author", 0, recipe["author"]),
    ]


def test_which_fields_there_are() -> None:
    assert dict(FORMAT.fields) == {"name": False, "ingredients": True, "author": False}
    assert FORMAT.single == ("name", "author")


@given(st.lists(recipes, max_size=4))
def test_nothing_is_lost_on_the_way_into_columns(given_recipes: list[dict[str, Any]]) -> None:
    frame = FORMAT.frame([FORMAT.check(json.dumps(recipe)) for recipe in given_recipes])
    quotes, doubts, items = [], [], []
    for row, recipe in enumerate(given_recipes):
        for name, item, part in members(recipe):
            quotes += [(row, name, item, one["page"], one["quote"]) for one in part["evidence"]]
            doubts += [(row, name)] if part["status"] == "uncertain" else []
            items += [(row, item, part["value"])] if name == "ingredients" else []
    assert FORMAT.evidence(frame).rows() == quotes
    assert sorted(FORMAT.uncertain(frame).rows()) == sorted(doubts)
    listed = FORMAT.items(frame, "ingredients").select("row", "item", "value")
    assert listed.rows() == items
    assert [json.loads(text) for text in FORMAT.content(frame)["content"]] == [
        {name: part for name, part in recipe.items() if name != "document"}
        for recipe in given_recipes
    ]
    values = FORMAT.values(frame)
    assert values.columns == ["row", "document", *_pairs("name"), *_pairs("author")]
    assert values["author"].to_list() == [recipe["author"]["value"] for recipe in given_recipes]


def _pairs(name: str) -> tuple[str, str]:
    return name, f"{name}_status"


def test_no_answers_keep_their_columns() -> None:
    frame = FORMAT.frame([])
    assert FORMAT.evidence(frame).schema == {
        "row": pl.Int64,
        "field": pl.String,
        "item": pl.Int64,
        "page": pl.Int64,
        "quote": pl.String,
    }
    assert FORMAT.items(frame, "ingredients").is_empty()
    assert FORMAT.content(frame).is_empty()


@pytest.mark.parametrize(
    ("text", "kind", "told"),
    [
        ("Stir it.", AnswerMalformed, "not JSON"),
        ('{"document":"a"}', AnswerInvalid, "missing required field `name`"),
        (
            '{"document":"a","name":{"value":1,"status":"found","evidence":[]}}',
            AnswerInvalid,
            r"at \$.name.value",
        ),
        (
            '{"document":"a","secret sauce":1}',
            AnswerInvalid,
            "^a member that the schema does not have$",
        ),
    ],
)
def test_what_is_no_answer(text: str, kind: type[Exception], told: str) -> None:
    with pytest.raises(kind, match=told):
        FORMAT.check(text)
