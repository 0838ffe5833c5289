"""Which JSON Schemas a provider's structured output takes: the rules of each dialect.

Belongs here: the dialects as data and one pure check. Does not belong here: which model speaks
which dialect and how large a schema may be (`capabilities.yaml`), and rewriting a schema: nothing
is trimmed to pass, so what the model is asked for is what its answer is judged by.

Sources, as of 2026-11: OpenAI's and Anthropic's guides to structured outputs, Google's reference
of `generateContent`, and the types of their SDKs. A keyword that a dialect does not name is
refused, since providers refuse it too or, worse, ignore it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import ConfigDict, PositiveInt
from pydantic.dataclasses import dataclass as checked_dataclass

Schema = Mapping[str, Any]

_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
_MAPPINGS = ("properties", "patternProperties", "$defs", "definitions")


@checked_dataclass(frozen=True, config=ConfigDict(extra="forbid", strict=True))
class SchemaLimits:
    """How large a schema may be; None where no limit is known.

    A definition counts once, however often it is referred to: providers do not say otherwise, and
    a schema that is refused here in error would have no way around.

    Attributes:
        properties: in all objects together.
        depth: objects inside objects, references followed.
        name_characters: of property names, definition names, and enum and const texts together.
        enum_values: in all enums together.
        long_enum_values: an enum of texts with more values than this is a long one.
        long_enum_characters: of all values of one long enum.
        optional_properties: properties that are not required, in all objects together.
        union_properties: properties with several types or `anyOf`, in all objects together.
    """

    properties: PositiveInt | None = None
    depth: PositiveInt | None = None
    name_characters: PositiveInt | None = None
    enum_values: PositiveInt | None = None
    long_enum_values: PositiveInt | None = None
    long_enum_characters: PositiveInt | None = None
    optional_properties: PositiveInt | None = None
    union_properties: PositiveInt | None = None


@dataclass(frozen=True)
class Dialect:
    """The rules of one provider's structured output, apart from sizes.

    Attributes:
        keywords: what may stand in a schema.
        formats: values of `format`; None where any is taken.
        closed_objects: every object must say `additionalProperties: false`.
        all_required: every property must be required.
        object_root: the root must be an object and have no `anyOf`.
        recursion: a schema may refer to itself.
        lone_reference: nothing may stand beside `$ref`.
        enums: `scalars` or `texts`; None where any value is taken.
        min_items: values of `minItems`; None where any is taken.
        simple_patterns: no look-around, back reference or word boundary in `pattern`.
        references_in_all_of: `allOf` may hold a `$ref`.
        types_in_a_list: how many types beside null a list of types may name.
    """

    keywords: frozenset[str]
    formats: frozenset[str] | None = None
    closed_objects: bool = False
    all_required: bool = False
    object_root: bool = False
    recursion: bool = False
    lone_reference: bool = False
    enums: Literal["scalars", "texts"] | None = None
    min_items: frozenset[int] | None = None
    simple_patterns: bool = False
    references_in_all_of: bool = True
    types_in_a_list: int | None = None


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_FORMATS = _words("date-time time date duration email hostname ipv4 ipv6 uuid")
_SHARED = _words("type title description enum properties required items anyOf")
_CLAUDE = Dialect(
    keywords=_SHARED
    | _words("additionalProperties const allOf $ref $defs default format pattern minItems"),
    formats=_FORMATS | {"uri"},
    closed_objects=True,
    enums="scalars",
    min_items=frozenset({0, 1}),
    simple_patterns=True,
    references_in_all_of=False,
)

DIALECTS: Mapping[str, Dialect] = {
    "openai_strict": Dialect(
        # String lengths and patternProperties are known from the list of what fine-tuned models
        # lack; a reference that stands alone from the SDK, which inlines every other one.
        keywords=_SHARED
        | _words("additionalProperties const $ref $defs definitions pattern format multipleOf")
        | _words("minimum maximum exclusiveMinimum exclusiveMaximum minItems maxItems")
        | _words("minLength maxLength patternProperties"),
        formats=_FORMATS,
        closed_objects=True,
        all_required=True,
        object_root=True,
        recursion=True,
        lone_reference=True,
    ),
    "anthropic": _CLAUDE,
    # Bedrock publishes no subset of its own; this is the one of the Claude models that it hosts.
    "bedrock": _CLAUDE,
    # References are inlined on the way and annotations left out, so both may stand in a schema.
    "responseSchema": Dialect(
        keywords=_SHARED
        | _words("additionalProperties $ref $defs definitions oneOf nullable format pattern")
        | _words("minItems maxItems minLength maxLength minimum maximum propertyOrdering")
        | _words("$schema $id $comment examples"),
        formats=_words("date-time enum float double int32 int64"),
        enums="texts",
        types_in_a_list=1,
    ),
    "responseJsonSchema": Dialect(
        keywords=_SHARED
        | _words("$id $defs $ref $anchor format prefixItems minItems maxItems minimum maximum")
        | _words("oneOf additionalProperties propertyOrdering"),
        recursion=True,
    ),
}
"""Every dialect by the name that the capability table uses."""

_HARD_PATTERN = re.compile(r"\(\?(?!:)|\\[1-9bBkK]")


class UnknownDialect(LookupError):
    """A dialect that is not in the table."""

    def __init__(self, dialect: str) -> None:
        super().__init__(
            f"there is no schema dialect {dialect!r}; expected one of {', '.join(DIALECTS)}"
        )


def check_schema(schema: Schema, dialect: str, limits: SchemaLimits | None = None) -> list[str]:
    """What a provider would refuse in a schema, each with its place; empty where nothing is.

    Raises:
        UnknownDialect: the dialect is not in the table.
    """
    if dialect not in DIALECTS:
        raise UnknownDialect(dialect)
    rules = DIALECTS[dialect]
    nodes = list(_walk("#", schema))
    bad = [f"{place} is no schema object" for place, node in nodes if not _is_schema(node)]
    if bad:
        return bad
    problems = [*_of_root(schema, rules)]
    for place, node in nodes:
        problems += (f"{place}: {problem}" for problem in _of_node(node, schema, rules))
    if not problems and not rules.recursion and (name := _loop(schema, schema, ("#",), set())):
        problems.append(f"{name} contains itself; recursion is not supported")
    if not problems and limits is not None:
        problems += _of_sizes([node for _, node in nodes], schema, limits)
    return problems


def _is_schema(node: object) -> bool:
    """Is it a mapping whose parts have the forms that every walk below relies on?"""
    if not isinstance(node, Mapping):
        return False
    return (
        all(isinstance(node.get(word, {}), Mapping) for word in _MAPPINGS)
        and all(isinstance(node.get(word, []), list) for word in (*_LISTS, "enum", "required"))
        and isinstance(node.get("$ref", ""), str)
    )


def _parts(node: Schema) -> Iterator[tuple[str, Any]]:
    """The schemas directly inside a schema, with the way to them."""
    for word in _MAPPINGS:
        inner = node.get(word)
        if isinstance(inner, Mapping):
            yield from ((f"{word}/{name}", part) for name, part in inner.items())
    for word in _LISTS:
        inner = node.get(word)
        if isinstance(inner, list):
            yield from ((f"{word}/{number}", part) for number, part in enumerate(inner))
    if "items" in node:
        yield "items", node["items"]


def _walk(place: str, node: Any) -> Iterator[tuple[str, Any]]:
    yield place, node
    if isinstance(node, Mapping):
        for way, part in _parts(node):
            yield from _walk(f"{place}/{way}", part)


def _types(node: Schema) -> list[Any]:
    kind = node.get("type", [])
    return kind if isinstance(kind, list) else [kind]


def _target(schema: Schema, reference: str) -> Schema | None:
    """What an internal reference points to; None where it points nowhere or outside."""
    if reference == "#":
        return schema
    if not reference.startswith("#/"):
        return None
    found: Any = schema
    for step in reference.removeprefix("#/").split("/"):
        found = found.get(step) if isinstance(found, Mapping) else None
    return found if isinstance(found, Mapping) else None


def _of_root(schema: Schema, rules: Dialect) -> Iterator[str]:
    if rules.object_root and (schema.get("type") != "object" or "anyOf" in schema):
        yield "#: the root must be an object and have no 'anyOf'"


def _of_node(node: Schema, schema: Schema, rules: Dialect) -> Iterator[str]:
    for word in node:
        if word not in rules.keywords:
            yield f"the keyword {word!r} is not supported"
    yield from _of_object(node, rules)
    yield from _of_reference(node, schema, rules)
    yield from _of_values(node, rules)
    yield from _of_text(node, rules)


def _of_object(node: Schema, rules: Dialect) -> Iterator[str]:
    properties = node.get("properties", {})
    is_object = "object" in _types(node) or "properties" in node
    if rules.closed_objects and is_object and node.get("additionalProperties") is not False:
        yield "an object must have 'additionalProperties': false"
    required = node.get("required", [])
    unknown = [str(name) for name in required if name not in properties]
    if unknown:
        yield f"'required' names {', '.join(unknown)}, which is no property"
    missing = [name for name in properties if name not in required]
    if rules.all_required and missing:
        yield (
            f"every property must be in 'required' (missing: {', '.join(missing)}); "
            "say optional as a type that may be null"
        )


def _of_reference(node: Schema, schema: Schema, rules: Dialect) -> Iterator[str]:
    if not rules.references_in_all_of and any("$ref" in part for part in node.get("allOf", [])):
        yield "'allOf' with a '$ref' is not supported"
    if "$ref" not in node:
        return
    if _target(schema, node["$ref"]) is None:
        yield f"'$ref' to {node['$ref']!r} points to nothing inside the schema"
    if rules.lone_reference and len(node) > 1:
        beside = ", ".join(word for word in node if word != "$ref")
        yield f"nothing may stand beside '$ref' (found: {beside})"


def _of_values(node: Schema, rules: Dialect) -> Iterator[str]:
    values = [*node.get("enum", []), *([node["const"]] if "const" in node else [])]
    if rules.enums == "texts" and not all(isinstance(value, str) for value in values):
        yield "an enum may list texts only"
    if rules.enums == "scalars" and any(isinstance(value, Mapping | list) for value in values):
        yield "an enum may list texts, numbers, booleans and null only"
    many = [kind for kind in _types(node) if kind != "null"]
    if rules.types_in_a_list is not None and len(many) > rules.types_in_a_list:
        yield f"several types beside null ({', '.join(map(str, many))}) are not supported"
    if rules.min_items is not None and node.get("minItems", 0) not in rules.min_items:
        yield f"'minItems' may be {' or '.join(map(str, sorted(rules.min_items)))} only"


def _of_text(node: Schema, rules: Dialect) -> Iterator[str]:
    if rules.formats is not None and "format" in node and node["format"] not in rules.formats:
        yield f"the format {node['format']!r} is not supported"
    if rules.simple_patterns and _HARD_PATTERN.search(str(node.get("pattern", ""))):
        yield "the pattern must be simple: no look-around, back reference or word boundary"


def _loop(node: Schema, schema: Schema, path: tuple[str, ...], clean: set[str]) -> str | None:
    """A reference that leads back to itself; `clean` holds those that are known not to."""
    reference = node.get("$ref")
    if reference in path:
        return reference
    found = []
    if reference is not None and reference not in clean:
        target = _target(schema, reference)
        found.append(target and _loop(target, schema, (*path, reference), clean))
        clean.add(reference)
    inner = (part for way, part in _parts(node) if not _is_definition(way))
    found += (_loop(part, schema, path, clean) for part in inner)
    return next((name for name in found if isinstance(name, str)), None)


def _is_definition(way: str) -> bool:
    return way.startswith(("$defs/", "definitions/"))


def _of_sizes(nodes: list[Schema], schema: Schema, limits: SchemaLimits) -> Iterator[str]:
    objects = [(node.get("properties", {}), node.get("required", [])) for node in nodes]
    properties = [part for inner, _ in objects for part in inner.values()]
    enums = [node["enum"] for node in nodes if "enum" in node]
    names = [name for node in nodes for word in _MAPPINGS for name in node.get(word, {})]
    texts = [value for values in enums for value in values if isinstance(value, str)]
    texts += [node["const"] for node in nodes if isinstance(node.get("const"), str)]
    counted = [
        ("properties", len(properties), limits.properties),
        ("levels of objects", _depth(schema, schema, {"#": 0}), limits.depth),
        ("characters in names and enums", sum(map(len, names + texts)), limits.name_characters),
        ("enum values", sum(map(len, enums)), limits.enum_values),
        (
            "optional properties",
            sum(name not in required for inner, required in objects for name in inner),
            limits.optional_properties,
        ),
        (
            "properties with several types",
            sum("anyOf" in part or isinstance(part.get("type"), list) for part in properties),
            limits.union_properties,
        ),
    ]
    for what, found, allowed in counted:
        if allowed is not None and found > allowed:
            yield f"{found} {what}, allowed are at most {allowed}"
    for values in enums:
        yield from _of_long_enum(values, limits)


def _of_long_enum(values: list[Any], limits: SchemaLimits) -> Iterator[str]:
    many, characters = limits.long_enum_values, limits.long_enum_characters
    if many is None or characters is None or len(values) <= many:
        return
    found = sum(len(value) for value in values if isinstance(value, str))
    if found > characters:
        yield (
            f"{found} characters in an enum of {len(values)} values, allowed are at most "
            f"{characters} where there are more than {many}"
        )


def _depth(node: Schema, schema: Schema, known: dict[str, int]) -> int:
    """Objects inside objects; a reference that leads back to itself adds nothing."""
    reference = node.get("$ref")
    if reference is not None and reference not in known:
        known[reference] = 0
        target = _target(schema, reference)
        known[reference] = 0 if target is None else _depth(target, schema, known)
    inner = [_depth(part, schema, known) for way, part in _parts(node) if not _is_definition(way)]
    below = max([*inner, known.get(reference, 0) if reference else 0])
    return below + ("properties" in node)
