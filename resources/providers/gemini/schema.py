"""The output schema in Gemini's two dialects.

Belongs here: turning a JSON Schema into `responseSchema` (an OpenAPI subset) or checking it for
`responseJsonSchema`, and refusing what neither can say. Does not belong here: the rest of a
request body (`wire.py`).

`additionalProperties: false` is dropped for `responseSchema`, which has no word for it: there a
model can only write the properties that are listed. Nothing else that judges a value is dropped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

from resources.providers.gemini.statuses import PROVIDER
from resources.providers.port import SchemaUnsupported

DIALECT_PARAMETER = "schema_dialect"
"""Our own parameter, never sent: which of the two fields carries the schema."""

DIALECTS = ("responseSchema", "responseJsonSchema")
"""The first is the default: the second was reported to give shifted or empty values in batch
(crmne/ruby_llm#894)."""

_TYPES = {
    "string": "STRING",
    "number": "NUMBER",
    "integer": "INTEGER",
    "boolean": "BOOLEAN",
    "array": "ARRAY",
    "object": "OBJECT",
}
_FORMATS = {
    "STRING": {"date-time", "enum"},
    "NUMBER": {"float", "double"},
    "INTEGER": {"int32", "int64"},
}
# Fields of the provider's Schema object that mean the same in JSON Schema.
_SAME = (
    "title",
    "description",
    "minItems",
    "maxItems",
    "minLength",
    "maxLength",
    "minimum",
    "maximum",
    "pattern",
)
_ANNOTATIONS = frozenset({"$schema", "$id", "$comment", "$defs", "definitions", "examples"})
_KNOWN = frozenset(
    {
        *_SAME,
        *_ANNOTATIONS,
        "$ref",
        "type",
        "format",
        "enum",
        "nullable",
        "items",
        "properties",
        "required",
        "propertyOrdering",
        "additionalProperties",
        "anyOf",
        "oneOf",
    }
)
# G-R: what `responseJsonSchema` documents; other words are ignored or rejected.
_JSON_SCHEMA_WORDS = frozenset(
    {
        "$id",
        "$defs",
        "$ref",
        "$anchor",
        "type",
        "format",
        "title",
        "description",
        "enum",
        "items",
        "prefixItems",
        "minItems",
        "maxItems",
        "minimum",
        "maximum",
        "anyOf",
        "oneOf",
        "properties",
        "additionalProperties",
        "required",
        "propertyOrdering",
    }
)

Node = Mapping[str, Any]


def dialect_fields(schema: Node, dialect: object) -> dict[str, Any]:
    """The field of `generationConfig` that carries the schema.

    Raises:
        SchemaUnsupported: the dialect is unknown, or cannot say what the schema says.
    """
    if dialect == "responseSchema":
        return {"responseSchema": _openapi(schema, schema, "the schema", ())}
    if dialect == "responseJsonSchema":
        _check_json_schema(schema)
        return {"responseJsonSchema": dict(schema)}
    raise SchemaUnsupported(
        PROVIDER, f"{DIALECT_PARAMETER} is {dialect!r}, expected one of {', '.join(DIALECTS)}"
    )


def _refuse(path: str, problem: str) -> SchemaUnsupported:
    return SchemaUnsupported(PROVIDER, f"{path}: {problem}")


# --- responseSchema -----------------------------------------------------------------------------


def _openapi(node: object, root: Node, path: str, within: tuple[str, ...]) -> dict[str, Any]:
    """A node of the OpenAPI subset, references written out."""
    plain, within = _without_reference(_node(node, path), root, path, within)
    unknown = sorted(set(plain) - _KNOWN)
    if unknown:
        raise _refuse(path, f"responseSchema has no word for {', '.join(unknown)}")
    choices = plain.get("anyOf", plain.get("oneOf"))
    if choices is not None:
        return _choice(plain, choices, root, path, within)
    kind, nullable = _kind(plain, path)
    made: dict[str, Any] = {"type": kind}
    if nullable:
        made["nullable"] = True
    made.update({word: plain[word] for word in _SAME if word in plain})
    _add_values(made, plain, kind, path)
    if kind == "OBJECT":
        _add_properties(made, plain, root, path, within)
    if kind == "ARRAY":
        if "items" not in plain:
            raise _refuse(path, "an array needs items")
        made["items"] = _openapi(plain["items"], root, f"{path}[]", within)
    return made


def _node(node: object, path: str) -> Node:
    if not isinstance(node, Mapping):
        raise _refuse(path, "found a value that is no schema object, expected one")
    return cast("Node", node)


def _without_reference(
    node: Node, root: Node, path: str, within: tuple[str, ...]
) -> tuple[Node, tuple[str, ...]]:
    """The node with its `$ref` written out; words beside the reference win over the target's."""
    while "$ref" in node:
        reference = str(node["$ref"])
        if reference in within:
            raise _refuse(path, f"{reference} refers to itself, which cannot be written out")
        within = (*within, reference)
        beside = {word: value for word, value in node.items() if word != "$ref"}
        node = {**_target(root, reference, path), **beside}
    return node, within


def _target(root: Node, reference: str, path: str) -> Node:
    if not reference.startswith("#"):
        raise _refuse(path, f"{reference} points outside the schema")
    found: object = root
    for step in reference.removeprefix("#").split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if not isinstance(found, Mapping) or name not in found:
            raise _refuse(path, f"{reference} points at nothing")
        found = cast("Node", found)[name]
    return _node(found, path)


def _kind(node: Node, path: str) -> tuple[str, bool]:
    """(type in the provider's spelling, whether null is allowed)."""
    declared = node.get("type")
    names = list(declared) if isinstance(declared, list) else [declared]
    nullable = "null" in names or node.get("nullable") is True
    named = [name for name in names if name != "null"]
    if len(named) != 1 or named[0] not in _TYPES:
        raise _refuse(path, f"type is {declared!r}, expected one type, with null or without")
    return _TYPES[named[0]], nullable


def _add_values(made: dict[str, Any], node: Node, kind: str, path: str) -> None:
    if "enum" in node:
        values = [value for value in node["enum"] if value is not None]
        if kind != "STRING" or not all(isinstance(value, str) for value in values):
            raise _refuse(path, "an enum can only list strings")
        made["enum"] = values
        if len(values) < len(node["enum"]):
            made["nullable"] = True
    form = node.get("format")
    if form is not None:
        if form not in _FORMATS.get(kind, set()):
            raise _refuse(path, f"format {form!r} is not offered for {kind}")
        made["format"] = form


def _add_properties(
    made: dict[str, Any], node: Node, root: Node, path: str, within: tuple[str, ...]
) -> None:
    properties = _node(node.get("properties", {}), path)
    if not properties:
        raise _refuse(path, "an object needs properties")
    if node.get("additionalProperties", False) is not False:
        raise _refuse(
            path, "additionalProperties must be false: only listed properties are written"
        )
    required = list(node.get("required", []))
    missing = [name for name in required if name not in properties]
    if missing:
        raise _refuse(path, f"requires {', '.join(missing)}, which it does not describe")
    made["properties"] = {
        name: _openapi(value, root, f"{path}.{name}", within) for name, value in properties.items()
    }
    if required:
        made["required"] = required
    # Without it the model answers in alphabetical order, evidence before the value it is for.
    made["propertyOrdering"] = list(node.get("propertyOrdering", properties))


def _choice(
    node: Node, choices: object, root: Node, path: str, within: tuple[str, ...]
) -> dict[str, Any]:
    beside = sorted(set(node) - _ANNOTATIONS - {"anyOf", "oneOf", "title", "description"})
    if beside or not isinstance(choices, list):
        raise _refuse(path, f"anyOf beside {', '.join(beside) or 'no list'} cannot be said")
    kept = [choice for choice in choices if choice != {"type": "null"}]
    nullable = len(kept) < len(choices)
    made = [
        _openapi(choice, root, f"{path}(choice {number})", within)
        for number, choice in enumerate(kept, 1)
    ]
    words = {word: node[word] for word in ("title", "description") if word in node}
    if len(made) == 1:
        return {**made[0], **words, **({"nullable": True} if nullable else {})}
    return {"anyOf": made, **words, **({"nullable": True} if nullable else {})}


# --- responseJsonSchema -------------------------------------------------------------------------


def _check_json_schema(schema: Node) -> None:
    for path, node in _nodes(schema, "the schema"):
        unknown = sorted(set(node) - _JSON_SCHEMA_WORDS)
        if unknown:
            raise _refuse(path, f"responseJsonSchema does not document {', '.join(unknown)}")
        if "$ref" in node:
            _target(schema, str(node["$ref"]), path)
    _check_cycles(schema, schema, ())


def _nodes(node: object, path: str) -> Iterator[tuple[str, Node]]:
    """Every schema object of the tree, with where it stands."""
    here = _node(node, path)
    yield path, here
    for word in ("properties", "$defs"):
        for name, value in _node(here.get(word, {}), path).items():
            yield from _nodes(value, f"{path}.{name}")
    for word in ("anyOf", "oneOf", "prefixItems"):
        for number, value in enumerate(here.get(word, []), 1):
            yield from _nodes(value, f"{path}({word} {number})")
    for word in ("items", "additionalProperties"):
        if isinstance(here.get(word), Mapping):
            yield from _nodes(here[word], f"{path}[]")


def _check_cycles(node: object, root: Node, within: tuple[str, ...]) -> None:
    """G-R: a reference may come round to itself only through a property that is not required."""
    here = _node(node, "the schema")
    if "$ref" in here:
        reference = str(here["$ref"])
        if reference in within:
            raise _refuse(reference, "refers to itself other than through an optional property")
        _check_cycles(_target(root, reference, reference), root, (*within, reference))
    required = here.get("required", [])
    inner = [value for name, value in here.get("properties", {}).items() if name in required]
    inner += [*here.get("anyOf", []), *here.get("oneOf", []), *here.get("prefixItems", [])]
    inner += [here["items"]] if "items" in here else []
    for value in inner:
        _check_cycles(value, root, within)
