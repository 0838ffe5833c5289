"""Which schemas OpenAI's strict structured output refuses, and in which words.

Belongs here: the emulated provider's own reading of the rules. The product has another one, which
must come to the same.
"""

from __future__ import annotations

from typing import Any

_REFUSED = frozenset(
    """
    allOf oneOf not if then else dependentRequired dependentSchemas patternProperties prefixItems
    contains uniqueItems propertyNames minProperties maxProperties unevaluatedProperties
    unevaluatedItems default
    """.split()
)
_FORMATS = frozenset("date-time time date duration email hostname ipv4 ipv6 uuid".split())


class BadSchema(Exception):
    """A schema that strict mode refuses; the text is the reason with its context."""


class _Sizes:
    def __init__(self) -> None:
        self.properties = 0
        self.enum_values = 0
        self.characters = 0


def check_strict(schema: Any) -> None:
    """Accept a schema of the strict subset.

    Raises:
        BadSchema: it is not one.
    """
    if not isinstance(schema, dict) or schema.get("type") != "object":
        raise BadSchema("schema must be a JSON Schema of 'type: \"object\"'")
    if "anyOf" in schema:
        raise BadSchema("In context=(), 'anyOf' is not permitted at the root")
    sizes = _Sizes()
    _check(schema, schema, (), sizes, 0, frozenset())
    for definition in _mapping(schema.get("$defs")).values():
        _check(definition, schema, ("$defs",), sizes, 0, frozenset())
    if sizes.properties > 5000:
        raise BadSchema(f"the schema has {sizes.properties} properties, 5000 are allowed")
    if sizes.enum_values > 1000:
        raise BadSchema(f"the schema has {sizes.enum_values} enum values, 1000 are allowed")
    if sizes.characters > 120_000:
        raise BadSchema("the names and values of the schema have more than 120000 characters")


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _check(
    node: Any, root: dict[str, Any], at: tuple[str, ...], sizes: _Sizes, level: int, inside: Any
) -> None:
    if not isinstance(node, dict):
        raise BadSchema(f"In context={at}, schema must be an object")
    refused = sorted(_REFUSED.intersection(node))
    if refused:
        raise BadSchema(f"In context={at}, '{refused[0]}' is not permitted")
    if node.get("format", "date") not in _FORMATS:
        raise BadSchema(f"In context={at}, '{node['format']}' is not a valid format")
    level += _check_object(node, at, sizes)
    if level > 10:
        raise BadSchema(f"In context={at}, more than 10 levels of nesting")
    _check_enum(node, at, sizes)
    if "$ref" in node:
        _check_reference(str(node["$ref"]), root, at, level, inside)
    for name, child in _mapping(node.get("properties")).items():
        _check(child, root, (*at, "properties", name), sizes, level, inside)
    for number, child in enumerate(node.get("anyOf", ())):
        _check(child, root, (*at, "anyOf", str(number)), sizes, level, inside)
    if "items" in node:
        _check(node["items"], root, (*at, "items"), sizes, level, inside)


def _check_object(node: dict[str, Any], at: tuple[str, ...], sizes: _Sizes) -> int:
    """Check an object's own rules; return how many levels it adds."""
    kinds = node.get("type")
    if "object" not in (kinds if isinstance(kinds, list) else [kinds]):
        return 0
    if node.get("additionalProperties") is not False:
        raise BadSchema(
            f"In context={at}, 'additionalProperties' is required to be supplied and to be false."
        )
    names = list(_mapping(node.get("properties")))
    missing = [name for name in names if name not in (node.get("required") or ())]
    if missing:
        raise BadSchema(
            f"In context={at}, 'required' is required to be supplied and to be an array including "
            f"every key in properties. Missing '{missing[0]}'."
        )
    sizes.properties += len(names)
    sizes.characters += sum(map(len, names))
    return 1


def _check_enum(node: dict[str, Any], at: tuple[str, ...], sizes: _Sizes) -> None:
    values = [str(value) for value in node.get("enum", ())]
    length = sum(map(len, values))
    if len(values) > 250 and length > 15_000:
        raise BadSchema(f"In context={at}, the enum has more than 15000 characters")
    sizes.enum_values += len(values)
    sizes.characters += length


def _check_reference(
    reference: str, root: dict[str, Any], at: tuple[str, ...], level: int, inside: Any
) -> None:
    target: Any = root
    for part in reference.removeprefix("#").split("/")[1:]:
        target = _mapping(target).get(part)
    if not reference.startswith("#") or not isinstance(target, dict):
        raise BadSchema(f"In context={at}, reference to '{reference}' can't be found")
    if reference not in inside:
        # Only for the depth: the sizes of a definition are counted once, with the definition.
        _check(target, root, (*at, reference), _Sizes(), level, inside | {reference})
