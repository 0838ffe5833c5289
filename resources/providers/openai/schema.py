"""Which output schemas OpenAI's strict structured output takes.

Belongs here: the subset of JSON Schema, checked before a request is made. Does not belong here:
whether a model has structured output at all (the capability table), or rewriting a schema to fit,
which nobody does: what is asked is what the workload wrote.

Source: PROVIDERS.md 1.8 (the provider's guide to structured outputs, 2026-11).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

MAX_PROPERTIES = 5_000
"""Properties, over the whole schema."""

MAX_LEVELS = 10
"""Objects inside objects, references followed."""

MAX_TEXT = 120_000
"""Characters of all names of properties and definitions, enum values and constants."""

MAX_ENUM_VALUES = 1_000
"""Enum values, over the whole schema."""

LONG_ENUM = 250
"""A string enum with more values than this is bounded in characters."""

MAX_LONG_ENUM_TEXT = 15_000
"""Characters of the values of one string enum that is long."""

KEYWORDS = frozenset(
    """
    $schema $comment title description type enum const properties required additionalProperties
    items anyOf $defs definitions $ref pattern format minLength maxLength multipleOf minimum maximum
    exclusiveMinimum exclusiveMaximum minItems maxItems
    """.split()
)
"""Keywords that are taken; every other one is refused, since it would be refused in each row."""

FORMATS = frozenset(
    {"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}
)
"""Values of `format` that are taken."""

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_Node = tuple[str, Mapping[str, Any]]


def problem_of(name: str, schema: Mapping[str, Any]) -> str | None:
    """Return what OpenAI would refuse in a schema or its name, with the place, or None."""
    if _NAME.fullmatch(name) is None:
        return f"the schema name {name[:80]!r} is not 1 to 64 letters, digits, '_' or '-'"
    if schema.get("type") != "object" or "anyOf" in schema:
        return "the root must be an object and no anyOf"
    nodes = list(_walk("#", schema))
    for place, node in nodes:
        problem = _problem_of_node(node, schema)
        if problem is not None:
            return f"{problem} at {place}"
    return _problem_of_size([node for _, node in nodes], schema)


def _walk(place: str, node: Mapping[str, Any]) -> Iterator[_Node]:
    yield place, node
    for key, child in _children(node):
        yield from _walk(f"{place}/{key}", child)


def _children(node: Mapping[str, Any]) -> Iterator[_Node]:
    for key in ("properties", "$defs", "definitions"):
        for name, child in _mapping(node.get(key)).items():
            if isinstance(child, Mapping):
                yield f"{key}/{name}", child
    if isinstance(node.get("items"), Mapping):
        yield "items", node["items"]
    for number, child in enumerate(_list(node.get("anyOf"))):
        if isinstance(child, Mapping):
            yield f"anyOf/{number}", child


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _list(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else ()


def _problem_of_node(node: Mapping[str, Any], root: Mapping[str, Any]) -> str | None:
    refused = sorted(set(node) - KEYWORDS)
    if refused:
        return f"the keyword {refused[0]!r} is not supported"
    if "format" in node and node["format"] not in FORMATS:
        return f"the format {node['format']!r} is not supported"
    return _problem_of_object(node) or _problem_of_enum(node) or _problem_of_reference(node, root)


def _problem_of_object(node: Mapping[str, Any]) -> str | None:
    if not _is_object(node):
        return None
    if node.get("additionalProperties") is not False:
        return "an object must say additionalProperties: false"
    properties = _mapping(node.get("properties"))
    optional = sorted(set(properties) - set(_list(node.get("required"))))
    if optional:
        return f"the property {optional[0]!r} is not required (a union with null makes it optional)"
    return None


def _problem_of_enum(node: Mapping[str, Any]) -> str | None:
    values = _list(node.get("enum"))
    texts = [value for value in values if isinstance(value, str)]
    length = sum(map(len, texts))
    if len(values) > LONG_ENUM and len(texts) == len(values) and length > MAX_LONG_ENUM_TEXT:
        return (
            f"an enum of {len(values)} values has {length} characters, "
            f"{MAX_LONG_ENUM_TEXT} are allowed"
        )
    return None


def _problem_of_reference(node: Mapping[str, Any], root: Mapping[str, Any]) -> str | None:
    reference = node.get("$ref")
    if reference is None or reference == "#":
        return None
    if not isinstance(reference, str) or _target(reference, root) is None:
        return f"the reference {reference!r} points nowhere inside the schema"
    return None


def _target(reference: str, root: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return what a reference names: the root, or a definition of it."""
    if reference == "#":
        return root
    for key in ("$defs", "definitions"):
        prefix = f"#/{key}/"
        if reference.startswith(prefix):
            found = _mapping(root.get(key)).get(reference.removeprefix(prefix))
            return found if isinstance(found, Mapping) else None
    return None


def _is_object(node: Mapping[str, Any]) -> bool:
    kind = node.get("type")
    return kind == "object" or "object" in _list(kind) or "properties" in node


def _problem_of_size(nodes: list[Mapping[str, Any]], root: Mapping[str, Any]) -> str | None:
    found = {
        "properties": (
            sum(len(_mapping(node.get("properties"))) for node in nodes),
            MAX_PROPERTIES,
        ),
        "enum values": (sum(len(_list(node.get("enum"))) for node in nodes), MAX_ENUM_VALUES),
        "characters of names and values": (sum(map(_text_of, nodes)), MAX_TEXT),
        "levels of objects": (_levels(root, root, frozenset()), MAX_LEVELS),
    }
    for what, (number, allowed) in found.items():
        if number > allowed:
            return f"{number} {what}, {allowed} are allowed"
    return None


def _text_of(node: Mapping[str, Any]) -> int:
    names = [*_mapping(node.get("properties")), *_mapping(node.get("$defs"))]
    values = [*_list(node.get("enum")), node.get("const")]
    texts = [value for value in values if isinstance(value, str)]
    return sum(map(len, names)) + sum(map(len, texts))


def _levels(node: Mapping[str, Any], root: Mapping[str, Any], inside: frozenset[str]) -> int:
    """Return how deep objects stand in each other; a reference into itself adds no level."""
    reference = node.get("$ref")
    if isinstance(reference, str) and reference not in inside:
        target = _target(reference, root)
        return 0 if target is None else _levels(target, root, inside | {reference})
    children = (child for key, child in _children(node) if not key.startswith(("$defs", "defin")))
    deepest = max((_levels(child, root, inside) for child in children), default=0)
    return deepest + 1 if _is_object(node) else deepest
