"""What Anthropic's structured output takes of JSON Schema, and where a schema leaves it.

Belongs here: the check alone, rule by rule. Does not belong here: rewriting a schema so that it
passes. What the model is asked for would no longer be what the answer is judged by.

Source of the rules: PROVIDERS.md 2.7 (A-SO), November 2026, and `transform_schema` of the SDK for
the forms of literals.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from resources.providers.port import SchemaUnsupported

MAX_OPTIONAL = 24
"""Properties that are not required, over the whole schema."""
MAX_UNIONS = 16
"""Properties with a list of types or with `anyOf`, over the whole schema."""

_FORMATS = frozenset(
    "date-time time date duration email hostname uri ipv4 ipv6 uuid".split()
)  # fmt: skip
_TYPES = frozenset("object array string integer number boolean null".split())
_KEYWORDS = frozenset(
    "type properties required additionalProperties items minItems enum const anyOf allOf $ref "
    "$defs default title description format pattern".split()
)
# Look-around, back references and word boundaries are beyond a "simple" pattern.
_HARD_PATTERN = re.compile(r"\(\?(?!:)|\\[1-9bBkK]")


def check_schema(schema: Mapping[str, Any]) -> None:
    """Refuse a schema that Anthropic would answer with a 400.

    A property behind `$ref` counts once towards the limits, where it is defined.

    Raises:
        SchemaUnsupported: naming the first place that is outside the subset.
    """
    problem = next(_problems(schema), None)
    if problem is not None:
        raise SchemaUnsupported("anthropic", problem)


def _problems(schema: Mapping[str, Any]) -> Iterator[str]:
    definitions = schema.get("$defs", {})
    names = frozenset(definitions) if isinstance(definitions, Mapping) else frozenset[str]()
    nodes = list(_walk(schema, "#"))
    for place, node in nodes:
        if not isinstance(node, Mapping):
            yield f"{place} is no object (`true`, `false` and lists are not schemas here)"
            continue
        yield from _of_keywords(place, node)
        yield from _of_object(place, node)
        yield from _of_scalars(place, node)
        yield from _of_reference(place, node, names)
    objects = [node for _, node in nodes if isinstance(node, Mapping)]
    yield from _of_recursion(schema)
    yield from _of_limits(objects)


def _walk(node: Any, place: str) -> Iterator[tuple[str, Any]]:
    """Every schema inside a schema with its JSON pointer, the schema itself first."""
    yield place, node
    if not isinstance(node, Mapping):
        return
    for keyword in ("$defs", "properties"):
        inner = node.get(keyword)
        if isinstance(inner, Mapping):
            for name, value in inner.items():
                yield from _walk(value, f"{place}/{keyword}/{name}")
    for keyword in ("anyOf", "allOf"):
        branches = node.get(keyword)
        if isinstance(branches, list):
            for number, value in enumerate(branches):
                yield from _walk(value, f"{place}/{keyword}/{number}")
    if "items" in node:
        yield from _walk(node["items"], f"{place}/items")


def _of_keywords(place: str, node: Mapping[str, Any]) -> Iterator[str]:
    for keyword in node:
        if keyword not in _KEYWORDS:
            yield f"the keyword {keyword!r} at {place} is not supported"
    if "$defs" in node and place != "#":
        yield f"{place} has '$defs'; definitions stand at the root"
    for keyword, kind in (("$defs", Mapping), ("properties", Mapping), ("anyOf", list)):
        if keyword in node and not isinstance(node[keyword], kind):
            yield f"{place}/{keyword} has the wrong form"
    for word in _types(node):
        if word not in _TYPES:
            yield f"the type {word!r} at {place} is not known"


def _of_object(place: str, node: Mapping[str, Any]) -> Iterator[str]:
    extra = node.get("additionalProperties")
    if ("object" in _types(node) or "properties" in node) and extra is not False:
        yield f"{place} must have 'additionalProperties': false"
    elif "additionalProperties" in node and extra is not False:
        yield f"'additionalProperties' at {place} must be false"
    properties = node.get("properties", {})
    required = node.get("required", [])
    if not isinstance(required, list):
        yield f"{place}/required is no list"
        return
    for name in required:
        if isinstance(properties, Mapping) and name not in properties:
            yield f"{place}/required names {name!r}, which is no property"


def _of_scalars(place: str, node: Mapping[str, Any]) -> Iterator[str]:
    if "format" in node and node["format"] not in _FORMATS:
        yield f"the format {node['format']!r} at {place} is not supported"
    if "minItems" in node and node["minItems"] not in (0, 1):
        yield f"'minItems' at {place} may be 0 or 1 only"
    pattern = node.get("pattern", "")
    if not isinstance(pattern, str) or _HARD_PATTERN.search(pattern):
        yield f"the pattern at {place} is not a simple one (no look-around, no references)"
    values = node.get("enum", [])
    if not isinstance(values, list) or ("enum" in node and not values):
        yield f"{place}/enum must be a list of values"
    elif any(isinstance(value, Mapping | list) for value in [*values, node.get("const")]):
        yield f"{place} lists a value that is not a text, a number, a boolean or null"


def _of_reference(place: str, node: Mapping[str, Any], names: frozenset[str]) -> Iterator[str]:
    branches = node.get("allOf", [])
    if not isinstance(branches, list):
        yield f"{place}/allOf is no list"
    elif any("$ref" in branch for branch in branches if isinstance(branch, Mapping)):
        yield f"'allOf' with '$ref' at {place} is not supported"
    if "$ref" not in node:
        return
    target = node["$ref"]
    if not isinstance(target, str) or not target.startswith("#/$defs/"):
        yield f"'$ref' at {place} must point to '#/$defs/…'; other references are not supported"
    elif target.removeprefix("#/$defs/") not in names:
        yield f"'$ref' at {place} points to {target!r}, which is not defined"


def _of_recursion(schema: Mapping[str, Any]) -> Iterator[str]:
    definitions = schema.get("$defs")
    if not isinstance(definitions, Mapping):
        return
    edges = {name: _targets(node) for name, node in definitions.items()}
    for start, targets in edges.items():
        seen: set[str] = set()
        front = set(targets)
        while front:
            seen |= front
            front = {after for name in front for after in edges.get(name, ())} - seen
        if start in seen:
            yield f"#/$defs/{start} contains itself; recursion is not supported"


def _targets(node: Any) -> set[str]:
    found = (inner.get("$ref") for _, inner in _walk(node, "") if isinstance(inner, Mapping))
    return {target.removeprefix("#/$defs/") for target in found if isinstance(target, str)}


def _of_limits(nodes: list[Mapping[str, Any]]) -> Iterator[str]:
    optional = unions = 0
    for node in nodes:
        properties = node.get("properties")
        if not isinstance(properties, Mapping):
            continue
        required = node.get("required", [])
        optional += sum(name not in required for name in properties)
        unions += sum(_is_union(value) for value in properties.values())
    if optional > MAX_OPTIONAL:
        yield f"{optional} properties are optional, {MAX_OPTIONAL} are allowed in one request"
    if unions > MAX_UNIONS:
        yield f"{unions} properties have several types, {MAX_UNIONS} are allowed in one request"


def _is_union(node: Any) -> bool:
    return isinstance(node, Mapping) and ("anyOf" in node or isinstance(node.get("type"), list))


def _types(node: Mapping[str, Any]) -> list[Any]:
    kind = node.get("type", [])
    return kind if isinstance(kind, list) else [kind]
