"""Which output schemas Bedrock's structured output takes.

Belongs here: the subset of JSON Schema, checked before a request is made. Does not belong here:
whether a model has structured output at all (the capability table), or rewriting a schema to fit,
which nobody does: what is asked is what the workload wrote.

Source: PROVIDERS.md 2.7 and 4.5. The subset is the one that is published for Claude models; Bedrock
publishes no other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

MAX_OPTIONAL = 24
"""Properties that are not required, over the whole schema (PROVIDERS.md 2.7)."""

MAX_UNIONS = 16
"""Places with several types or `anyOf`, over the whole schema (PROVIDERS.md 2.7)."""

UNSUPPORTED = frozenset(
    {
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
        "minLength",
        "maxLength",
        "maxItems",
        "uniqueItems",
        "contains",
        "minContains",
        "maxContains",
        "minProperties",
        "maxProperties",
        "patternProperties",
        "propertyNames",
        "dependentRequired",
        "dependentSchemas",
        "unevaluatedItems",
        "unevaluatedProperties",
        "oneOf",
        "not",
        "if",
        "then",
        "else",
        "prefixItems",
    }
)
"""Keywords that are refused wherever they stand (PROVIDERS.md 2.7)."""

FORMATS = frozenset(
    {
        "date-time",
        "time",
        "date",
        "duration",
        "email",
        "hostname",
        "uri",
        "ipv4",
        "ipv6",
        "uuid",
    }
)
"""Values of `format` that are taken (PROVIDERS.md 2.7)."""

_LOCAL_REFERENCE = "#/$defs/"
_Node = tuple[str, Mapping[str, Any]]


def problem_of(schema: Mapping[str, Any]) -> str | None:
    """Return what Bedrock would refuse in a schema, with its place, or None."""
    nodes = list(_walk("#", schema))
    for place, node in nodes:
        problem = _problem_of_node(node, schema)
        if problem is not None:
            return f"{problem} at {place}"
    optional = sum(_optional(node) for _, node in nodes)
    if optional > MAX_OPTIONAL:
        return f"{optional} optional properties, {MAX_OPTIONAL} are allowed"
    unions = sum(_is_union(node) for _, node in nodes)
    if unions > MAX_UNIONS:
        return f"{unions} union-typed places, {MAX_UNIONS} are allowed"
    return _recursion_in(schema)


def _walk(place: str, node: Mapping[str, Any]) -> Iterator[_Node]:
    yield place, node
    for key, child in _children(node):
        yield from _walk(f"{place}/{key}", child)


def _children(node: Mapping[str, Any]) -> Iterator[_Node]:
    for key in ("properties", "$defs", "definitions"):
        for name, child in _mapping(node.get(key)).items():
            if isinstance(child, Mapping):
                yield f"{key}/{name}", child
    for key in ("items", "additionalProperties"):
        child = node.get(key)
        if isinstance(child, Mapping):
            yield key, child
    for key in ("anyOf", "allOf"):
        for number, child in enumerate(node.get(key) or ()):
            if isinstance(child, Mapping):
                yield f"{key}/{number}", child


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _problem_of_node(node: Mapping[str, Any], root: Mapping[str, Any]) -> str | None:
    refused = sorted(UNSUPPORTED.intersection(node))
    if refused:
        return f"the keyword {refused[0]!r} is not supported"
    if _is_object(node) and node.get("additionalProperties") is not False:
        return "an object must say additionalProperties: false"
    if node.get("minItems", 0) not in (0, 1):
        return "minItems may only be 0 or 1"
    if "format" in node and node["format"] not in FORMATS:
        return f"the format {node['format']!r} is not supported"
    return _problem_of_reference(node, root)


def _problem_of_reference(node: Mapping[str, Any], root: Mapping[str, Any]) -> str | None:
    if any("$ref" in _mapping(part) for part in node.get("allOf") or ()):
        return "allOf may not hold a $ref"
    reference = node.get("$ref")
    if reference is None:
        return None
    if not isinstance(reference, str) or not reference.startswith(_LOCAL_REFERENCE):
        return f"the reference {reference!r} does not point into {_LOCAL_REFERENCE}"
    if reference.removeprefix(_LOCAL_REFERENCE) not in _mapping(root.get("$defs")):
        return f"the reference {reference!r} points nowhere"
    return None


def _is_object(node: Mapping[str, Any]) -> bool:
    kind = node.get("type")
    return kind == "object" or (isinstance(kind, list) and "object" in kind) or "properties" in node


def _is_union(node: Mapping[str, Any]) -> bool:
    kind = node.get("type")
    return "anyOf" in node or (isinstance(kind, list) and len(kind) > 1)


def _optional(node: Mapping[str, Any]) -> int:
    required = node.get("required") or ()
    return sum(name not in required for name in _mapping(node.get("properties")))


def _recursion_in(schema: Mapping[str, Any]) -> str | None:
    """Return which definition reaches itself, or None."""
    uses = {
        name: {
            node["$ref"].removeprefix(_LOCAL_REFERENCE)
            for _, node in _walk("#", definition)
            if isinstance(node.get("$ref"), str)
        }
        for name, definition in _mapping(schema.get("$defs")).items()
        if isinstance(definition, Mapping)
    }
    for name, direct in uses.items():
        reached, todo = set[str](), set(direct)
        while todo:
            reached |= todo
            todo = {used for one in todo for used in uses.get(one, ())} - reached
        if name in reached:
            return f"the definition {name!r} refers to itself; recursion is not supported"
    return None
