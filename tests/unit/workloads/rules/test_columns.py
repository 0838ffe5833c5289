"""Answers: which are of the schema, what is said of those that are not, and their columns."""

from __future__ import annotations

import json
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_assets.workloads.equipment_manuals.columns import VALUE_SCHEMA, check_answer, decode
from pipeline_assets.workloads.registry import UnknownWorkload, load_workload
from pipeline_assets.workloads.workload import AnswerInvalid, AnswerMalformed
from tests.unit.workloads.rules.support import ABSENT, SENTENCE, TITLE, answer, field

SECRET = "Zebra Confidential"


@pytest.mark.parametrize(
    "text",
    ["", "{", "[" * 50_000, "nul", json.dumps(answer())[:-1], json.dumps(answer()) + "x", SECRET],
    ids=range(7),
)
def test_what_is_not_json(text: str) -> None:
    with pytest.raises((AnswerMalformed, AnswerInvalid)) as refused:
        check_answer(text)
    assert SECRET not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        pytest.param("[]", "Expected `object`, got `array`", id="list"),
        pytest.param("{}", "Object missing required field `document`", id="nothing-in-it"),
        pytest.param(
            json.dumps(answer(**{SECRET: 1})),
            "a member that the schema does not have",
            id="unknown-member",
        ),
        pytest.param(
            json.dumps(answer(title=field(TITLE, TITLE) | {f"x` - at `$.{SECRET}": 1})),
            "a member that the schema does not have at $.title",
            id="unknown-member-of-a-field",
        ),
        pytest.param(
            json.dumps(answer(title=field(TITLE, status=SECRET))),
            "a value outside the closed list at $.title.status",
            id="unknown-status",
        ),
        pytest.param(
            json.dumps(answer(title=[])),
            "Expected `object`, got `array` at $.title",
            id="field-no-object",
        ),
        pytest.param(
            json.dumps(answer(product_identifiers=[field("a"), field(7)])),  # type: ignore[arg-type]
            "Expected `str | null`, got `int` at $.product_identifiers[1].value",
            id="value-no-text",
        ),
        pytest.param(
            json.dumps(answer(title={"value": None, "status": "absent"})),
            "Object missing required field `evidence` at $.title",
            id="evidence-missing",
        ),
        pytest.param(
            json.dumps(answer(title=field(TITLE, (10**30, TITLE)))),
            "at $.title.evidence[0].page",
            id="page-beyond-all-numbers",
        ),
        pytest.param(
            json.dumps(answer(title=field(TITLE, (0, TITLE)))),
            "at $.title.evidence[0].page",
            id="page-zero",
        ),
    ],
)
def test_json_of_another_shape(text: str, told: str) -> None:
    with pytest.raises(AnswerInvalid) as refused:
        check_answer(text)
    assert told in str(refused.value)
    assert SECRET not in str(refused.value)


fields = st.builds(
    lambda value, status, quotes: field(value, *quotes, status=status),
    st.none() | st.text(),
    st.sampled_from(["found", "absent", "uncertain"]),
    st.lists(st.tuples(st.integers(1, 1_000_000), st.text()), max_size=2),
)
answers = st.builds(
    lambda document, title, items, language, description: {
        "document": document,
        "title": title,
        "product_identifiers": items,
        "language": language,
        "description": description,
    },
    st.text(),
    fields,
    st.lists(fields, max_size=3),
    fields,
    fields,
)


@given(st.lists(answers, max_size=4))
def test_nothing_is_lost_on_the_way_into_columns(given_answers: list[dict[str, Any]]) -> None:
    decoded = decode([check_answer(json.dumps(entry)) for entry in given_answers])
    rows = range(len(given_answers))
    assert decoded.values["row"].to_list() == list(rows)
    assert decoded.content["row"].to_list() == list(rows)
    for row, entry in zip(rows, given_answers, strict=True):
        published = json.loads(decoded.content["content"][row])
        assert published == {name: part for name, part in entry.items() if name != "document"}
        assert list(published) == ["title", "product_identifiers", "language", "description"]
        values = decoded.values.row(row, named=True)
        assert values["document"] == entry["document"]
        for name in ("title", "language", "description"):
            assert values[name] == entry[name]["value"]
            assert values[f"{name}_status"] == entry[name]["status"]
        items = entry["product_identifiers"]
        assert values["identifiers"] == [item["value"] for item in items]
        quotes = decoded.evidence.filter(pl.col("row") == row).drop("row").rows()
        wanted = [
            (name, index, proof["page"], proof["quote"])
            for name in ("title", "language", "description", "product_identifiers")
            for index, part in enumerate(
                entry[name] if isinstance(entry[name], list) else [entry[name]]
            )
            for proof in part["evidence"]
        ]
        assert sorted(quotes) == sorted(wanted)


def test_no_answers_keep_their_columns() -> None:
    decoded = decode([])
    assert decoded.values.schema == VALUE_SCHEMA
    assert decode([check_answer(json.dumps(answer()))]).values.schema == VALUE_SCHEMA
    for frame in (decoded.items, decoded.evidence, decoded.content, decoded.search):
        assert frame.is_empty()


def test_equal_answers_have_equal_content() -> None:
    """The digest of the content names the accepted values, so blanks and order must not count."""
    first = json.dumps(answer())
    turned = json.dumps(dict(reversed(answer().items())), indent=2, ensure_ascii=False)
    content = decode([check_answer(first), check_answer(turned)]).content["content"]
    assert content[0] == content[1]


def test_the_content_of_a_known_answer() -> None:
    """Digests of published values are compared for years."""
    known = answer(title=field('Gerät\u2028"𝒳"\n', (2, "a/b\0")), product_identifiers=[ABSENT])
    assert decode([check_answer(json.dumps(known))]).content["content"][0] == (
        '{"title":{"value":"Gerät\u2028\\"𝒳\\"\\n","status":"found",'
        '"evidence":[{"page":2,"quote":"a/b\\u0000"}]},'
        '"product_identifiers":[{"value":null,"status":"absent","evidence":[]}],'
        '"language":{"value":"en","status":"found",'
        f'"evidence":[{{"page":1,"quote":"{SENTENCE}"}}]}},'
        f'"description":{{"value":"{SENTENCE}","status":"found",'
        f'"evidence":[{{"page":1,"quote":"{SENTENCE}"}}]}}}}'
    )


def test_search_text() -> None:
    entry = answer(product_identifiers=[field("A1", "A1"), ABSENT, field("B2", "B2")], title=ABSENT)
    search = decode([check_answer(json.dumps(entry))]).search
    assert search.row(0, named=True) == {
        "row": 0,
        "title": None,
        "identifiers": "A1 B2",
        "description": SENTENCE,
        "language": "en",
    }


def test_a_workload_is_found_by_name() -> None:
    found = load_workload("equipment_manuals")
    assert (found.name, found.schema_version) == ("equipment_manuals", 1)
    assert load_workload("equipment_manuals") is found


@pytest.mark.parametrize(
    "name", ["nothing", "rules", "workload", "registry", "text_folding", "a.b", "a.b.c", ""]
)
def test_what_is_no_workload(name: str) -> None:
    with pytest.raises(UnknownWorkload, match="Correct the spec's field `workload`"):
        load_workload(name)


TWICE = [
    pytest.param('{"document":"a",', '{"document":"a","document":"b",', id="compact"),
    pytest.param(
        '{"document":"a",', '{"document" : "a", "document": "b",', id="blank-before-colon"
    ),
    pytest.param('"value":"en"', '"value":"xx","value":"en"', id="nested"),
    pytest.param('"value":"en"', '"value":"xx","val\\u0075e":"en"', id="escaped-name"),
    pytest.param(
        '"quote":"One line."', '"quote":"One \\u0022: line.","page" :7', id="hidden-from-the-count"
    ),
]


@pytest.mark.parametrize(("once", "twice"), TWICE)
def test_a_member_that_is_there_twice_is_refused(once: str, twice: str) -> None:
    good = json.dumps(
        answer(document="a", language=field("en", "One line.")), separators=(",", ":")
    )
    assert once in good
    assert check_answer(good) == good
    with pytest.raises(AnswerInvalid, match="a member is there twice"):
        check_answer(good.replace(once, twice))


@pytest.mark.parametrize("indent", [None, 0, 2])
def test_blanks_between_members_are_no_fault(indent: int | None) -> None:
    quoted = answer(title=field('The "KX": a saw', 'The "KX": a saw'))
    assert check_answer(json.dumps(quoted, indent=indent)) == check_answer(json.dumps(quoted))
