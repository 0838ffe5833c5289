"""What each provider's structured output takes of JSON Schema."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from resources.providers.schema_dialects import (
    DIALECTS,
    SchemaLimits,
    UnknownDialect,
    check_schema,
)

TEXT = {"type": "string"}


def closed(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "additionalProperties": False,
        "properties": properties,
        "required": [*properties],
    }


def with_definition(node: dict[str, Any], **definitions: Any) -> dict[str, Any]:
    return closed(a=node) | {"$defs": definitions}


LOOP = with_definition({"$ref": "#/$defs/n"}, n=closed(next={"$ref": "#/$defs/n"}))
OPEN = {"type": "object", "properties": {"a": TEXT}, "required": ["a"]}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_workloads_schema_is_taken_everywhere(dialect: str, repository: Path) -> None:
    path = repository / "pipeline_assets/workloads/equipment_manuals/output_schema.json"
    assert check_schema(json.loads(path.read_text(encoding="utf-8")), dialect) == []


@pytest.mark.parametrize(
    ("dialect", "schema", "problems"),
    [
        # OpenAI
        pytest.param(
            "openai_strict",
            {"anyOf": [closed(a=TEXT)]},
            ["#: the root must be an object and have no 'anyOf'"],
            id="openai-root",
        ),
        pytest.param(
            "openai_strict",
            OPEN,
            ["#: an object must have 'additionalProperties': false"],
            id="openai-open-object",
        ),
        pytest.param(
            "openai_strict",
            closed(a=TEXT, b=TEXT) | {"required": ["a"]},
            [
                "#: every property must be in 'required' (missing: b); say optional as a type "
                "that may be null"
            ],
            id="openai-optional",
        ),
        *(
            pytest.param(
                "openai_strict",
                closed(a=TEXT | {word: {}}),
                [f"#/properties/a: the keyword {word!r} is not supported"],
                id=f"openai-{word}",
            )
            for word in ("not", "dependentRequired", "dependentSchemas", "if", "default")
        ),
        pytest.param(
            "openai_strict",
            closed(a={"allOf": [TEXT]}),
            ["#/properties/a: the keyword 'allOf' is not supported"],
            id="openai-allOf",
        ),
        pytest.param(
            "openai_strict",
            closed(a=TEXT | {"format": "uri"}),
            ["#/properties/a: the format 'uri' is not supported"],
            id="openai-format",
        ),
        pytest.param(
            "openai_strict",
            with_definition({"$ref": "#/$defs/t", "description": "x"}, t=TEXT),
            ["#/properties/a: nothing may stand beside '$ref' (found: description)"],
            id="openai-reference-with-company",
        ),
        pytest.param(
            "openai_strict",
            closed(a={"$ref": "https://elsewhere/t.json"}),
            [
                "#/properties/a: '$ref' to 'https://elsewhere/t.json' points to nothing inside "
                "the schema"
            ],
            id="openai-reference-outside",
        ),
        pytest.param("openai_strict", LOOP, [], id="openai-recursion"),
        pytest.param(
            "openai_strict",
            closed(a=TEXT | {"pattern": r"(?=a)\b", "minLength": 3}, b={"const": 1}),
            [],
            id="openai-pattern-and-length",
        ),
        # Anthropic
        pytest.param(
            "anthropic",
            OPEN,
            ["#: an object must have 'additionalProperties': false"],
            id="anthropic-open-object",
        ),
        pytest.param(
            "anthropic", closed(a=TEXT) | {"required": []}, [], id="anthropic-optional-is-taken"
        ),
        *(
            pytest.param(
                "anthropic",
                closed(a={"type": kind, word: 1}),
                [f"#/properties/a: the keyword {word!r} is not supported"],
                id=f"anthropic-{word}",
            )
            for kind, word in (
                ("integer", "minimum"),
                ("integer", "maximum"),
                ("number", "multipleOf"),
                ("string", "minLength"),
                ("string", "maxLength"),
                ("array", "maxItems"),
            )
        ),
        pytest.param(
            "anthropic",
            closed(a={"type": "array", "items": TEXT, "minItems": 2}),
            ["#/properties/a: 'minItems' may be 0 or 1 only"],
            id="anthropic-minItems",
        ),
        pytest.param(
            "anthropic",
            LOOP,
            ["#/$defs/n contains itself; recursion is not supported"],
            id="anthropic-recursion",
        ),
        pytest.param(
            "anthropic",
            with_definition({"allOf": [{"$ref": "#/$defs/t"}]}, t=TEXT),
            ["#/properties/a: 'allOf' with a '$ref' is not supported"],
            id="anthropic-reference-in-allOf",
        ),
        pytest.param(
            "anthropic",
            closed(a=TEXT | {"pattern": "a(?=b)"}),
            [
                "#/properties/a: the pattern must be simple: no look-around, back reference or "
                "word boundary"
            ],
            id="anthropic-pattern",
        ),
        pytest.param(
            "anthropic",
            closed(a={"enum": [{"x": 1}]}),
            ["#/properties/a: an enum may list texts, numbers, booleans and null only"],
            id="anthropic-enum-of-objects",
        ),
        pytest.param(
            "anthropic",
            closed(a=TEXT | {"format": "uri", "default": "x"}, b={"enum": [1, None, "x"]}),
            [],
            id="anthropic-what-it-takes",
        ),
        # Bedrock
        pytest.param(
            "bedrock",
            closed(a={"type": "integer", "minimum": 1}),
            ["#/properties/a: the keyword 'minimum' is not supported"],
            id="bedrock-is-like-anthropic",
        ),
        # Gemini
        pytest.param(
            "responseSchema",
            closed(a={"type": "integer", "enum": [1, 2]}),
            ["#/properties/a: an enum may list texts only"],
            id="gemini-enum-of-numbers",
        ),
        pytest.param(
            "responseSchema",
            closed(a={"type": ["string", "integer", "null"]}),
            ["#/properties/a: several types beside null (string, integer) are not supported"],
            id="gemini-several-types",
        ),
        pytest.param(
            "responseSchema",
            closed(a={"type": "array", "prefixItems": [TEXT]}),
            ["#/properties/a: the keyword 'prefixItems' is not supported"],
            id="gemini-prefixItems",
        ),
        pytest.param(
            "responseSchema",
            closed(a={"const": "x"}),
            ["#/properties/a: the keyword 'const' is not supported"],
            id="gemini-const",
        ),
        pytest.param(
            "responseSchema",
            LOOP,
            ["#/$defs/n contains itself; recursion is not supported"],
            id="gemini-recursion-cannot-be-inlined",
        ),
        pytest.param("responseSchema", OPEN, [], id="gemini-open-object"),
        pytest.param(
            "responseJsonSchema",
            closed(a=TEXT | {"pattern": "a"}),
            ["#/properties/a: the keyword 'pattern' is not supported"],
            id="gemini-json-pattern",
        ),
        pytest.param("responseJsonSchema", LOOP, [], id="gemini-json-recursion"),
        # All of them
        pytest.param(
            "anthropic",
            closed(a=TEXT) | {"required": ["a", "b"]},
            ["#: 'required' names b, which is no property"],
            id="required-without-property",
        ),
        pytest.param(
            "anthropic", closed(a=True), ["#/properties/a is no schema object"], id="boolean-schema"
        ),
        pytest.param(
            "anthropic", {"properties": []}, ["# is no schema object"], id="properties-of-a-list"
        ),
        pytest.param(
            "openai_strict",
            closed(a=TEXT | {"not": {}, "if": {}}) | {"additionalProperties": True},
            [
                "#: an object must have 'additionalProperties': false",
                "#/properties/a: the keyword 'not' is not supported",
                "#/properties/a: the keyword 'if' is not supported",
            ],
            id="every-problem-is-said",
        ),
    ],
)
def test_what_a_dialect_takes(dialect: str, schema: dict[str, Any], problems: list[str]) -> None:
    assert check_schema(schema, dialect) == problems


def nested(levels: int) -> dict[str, Any]:
    return closed(a=TEXT if levels == 1 else nested(levels - 1))


UNION = {"type": ["string", "null"]}


@pytest.mark.parametrize(
    ("limits", "fits", "too_large", "problem"),
    [
        pytest.param(
            SchemaLimits(properties=2),
            closed(a=TEXT, b=TEXT),
            closed(a=TEXT, b=closed(c=TEXT)),
            "3 properties, allowed are at most 2",
            id="properties",
        ),
        pytest.param(
            SchemaLimits(depth=3),
            nested(3),
            nested(4),
            "4 levels of objects, allowed are at most 3",
            id="depth",
        ),
        pytest.param(
            SchemaLimits(depth=2),
            with_definition({"$ref": "#/$defs/n"}, n=closed(a=TEXT)),
            with_definition({"$ref": "#/$defs/n"}, n=closed(a={"$ref": "#/$defs/m"}), m=nested(1)),
            "3 levels of objects, allowed are at most 2",
            id="depth-through-references",
        ),
        pytest.param(
            SchemaLimits(name_characters=9),
            closed(abc={"enum": ["def", "ghi", 1]}),
            closed(abc={"enum": ["def", "ghi"]}, j={"const": "k"}),
            "11 characters in names and enums, allowed are at most 9",
            id="characters",
        ),
        pytest.param(
            SchemaLimits(enum_values=3),
            closed(a={"enum": [1, 2]}, b={"enum": [1]}),
            closed(a={"enum": [1, 2]}, b={"enum": [1, 2]}),
            "4 enum values, allowed are at most 3",
            id="enum-values",
        ),
        pytest.param(
            SchemaLimits(long_enum_values=2, long_enum_characters=5),
            closed(a={"enum": ["abcdef", "g"]}),
            closed(a={"enum": ["abcd", "e", "f"]}),
            "6 characters in an enum of 3 values, allowed are at most 5 where there are more "
            "than 2",
            id="long-enum",
        ),
        pytest.param(
            SchemaLimits(optional_properties=1),
            closed(a=TEXT, b=TEXT) | {"required": ["a"]},
            closed(a=TEXT, b=TEXT) | {"required": []},
            "2 optional properties, allowed are at most 1",
            id="optional-properties",
        ),
        pytest.param(
            SchemaLimits(union_properties=1),
            closed(a=UNION, b=TEXT),
            closed(a=UNION, b={"anyOf": [TEXT, {"type": "integer"}]}),
            "2 properties with several types, allowed are at most 1",
            id="union-properties",
        ),
    ],
)
def test_sizes(
    limits: SchemaLimits, fits: dict[str, Any], too_large: dict[str, Any], problem: str
) -> None:
    dialect = "anthropic"
    assert check_schema(fits, dialect, limits) == []
    assert check_schema(too_large, dialect, limits) == [problem]
    assert check_schema(too_large, dialect) == []


def test_recursion_adds_no_depth_of_its_own() -> None:
    assert check_schema(LOOP, "openai_strict", SchemaLimits(depth=2)) == []
    own = closed(child={"anyOf": [{"$ref": "#"}, {"type": "null"}]})
    assert check_schema(own, "openai_strict", SchemaLimits(depth=1)) == []


def test_definitions_that_double_at_each_step_are_checked_in_one_walk() -> None:
    steps = {
        f"n{n}": closed(a={"$ref": f"#/$defs/n{n + 1}"}, b={"$ref": f"#/$defs/n{n + 1}"})
        for n in range(60)
    }
    schema = with_definition({"$ref": "#/$defs/n0"}, **steps, n60=TEXT)
    limits = SchemaLimits(depth=61)
    assert check_schema(schema, "anthropic", limits) == []
    assert check_schema(schema, "openai_strict", limits) == []


def test_an_unknown_dialect_is_refused() -> None:
    with pytest.raises(UnknownDialect) as raised:
        check_schema(closed(), "xml")
    assert str(raised.value) == (
        "there is no schema dialect 'xml'; expected one of openai_strict, anthropic, bedrock, "
        "responseSchema, responseJsonSchema"
    )
