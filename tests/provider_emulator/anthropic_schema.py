"""The emulated compiler of Anthropic's structured output: what it answers a schema with.

Belongs here: the rules of the provider as an outsider sees them, written from the documents and
not from the product, so that the product's own check is checked by another hand.
"""

from __future__ import annotations

from typing import Any

MAX_OPTIONAL = 24
MAX_UNION = 16
STRING_FORMATS = (
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
)
KNOWN_TYPES = ("object", "array", "string", "integer", "number", "boolean", "null")
UNSUPPORTED = {
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    "string": ("minLength", "maxLength"),
    "array": ("maxItems", "uniqueItems", "contains", "prefixItems", "minContains", "maxContains"),
    "object": ("patternProperties", "propertyNames", "minProperties", "maxProperties"),
    "schema": ("oneOf", "not", "if", "then", "else", "dependentRequired", "dependentSchemas"),
}


class _Compiler:
    """Walks a schema once and counts what is limited per request."""

    def __init__(self, root: dict[str, Any]) -> None:
        self._definitions = root.get("$defs") or root.get("definitions") or {}
        self.optional = 0
        self.unions = 0

    def compile(self, node: Any, expanding: tuple[str, ...] = ()) -> str | None:
        """Return the message of the first fault in a schema, None where there is none."""
        if not isinstance(node, dict):
            return "schema must be an object"
        if (reference := node.get("$ref")) is not None:
            return self._reference(reference, expanding)
        return (
            _unsupported_keyword(node)
            or _wrong_type(node)
            or _wrong_scalar(node)
            or self._object(node, expanding)
            or self._branches(node, expanding)
            or self._items(node, expanding)
        )

    def _reference(self, reference: str, expanding: tuple[str, ...]) -> str | None:
        if not reference.startswith("#/"):
            return f"External $ref '{reference}' is not supported"
        if reference in expanding:
            return f"Circular reference detected in schema definitions: {reference}"
        target = self._definitions.get(reference.rsplit("/", 1)[-1])
        if target is None:
            return f"$ref '{reference}' could not be resolved"
        return self.compile(target, (*expanding, reference))

    def _object(self, node: dict[str, Any], expanding: tuple[str, ...]) -> str | None:
        if node.get("type") != "object" and "properties" not in node:
            return None
        if node.get("additionalProperties") is not False:
            return "For 'object' type, 'additionalProperties' must be explicitly set to false"
        for name, inner in node.get("properties", {}).items():
            problem = self.compile(inner, expanding)
            if problem is not None:
                return f"{problem} (in property '{name}')"
        return None

    def _branches(self, node: dict[str, Any], expanding: tuple[str, ...]) -> str | None:
        if any("$ref" in one for one in node.get("allOf", [])):
            return "'allOf' with '$ref' is not supported"
        inner = [*node.get("anyOf", []), *node.get("allOf", [])]
        return next((p for one in inner if (p := self.compile(one, expanding))), None)

    def _items(self, node: dict[str, Any], expanding: tuple[str, ...]) -> str | None:
        if node.get("minItems", 0) not in (0, 1):
            return "For 'array' type, 'minItems' values other than 0 or 1 are not supported"
        return self.compile(node["items"], expanding) if "items" in node else None

    def count(self, node: Any) -> None:
        """Count optional and union-typed parameters where they are written."""
        if isinstance(node, list):
            for one in node:
                self.count(one)
        if not isinstance(node, dict):
            return
        properties = node.get("properties")
        if isinstance(properties, dict):
            required = node.get("required", [])
            self.optional += sum(name not in required for name in properties)
            self.unions += sum(
                isinstance(one.get("type"), list) or "anyOf" in one
                for one in properties.values()
                if isinstance(one, dict)
            )
        for inner in node.values():
            self.count(inner)


def schema_problem(schema: Any) -> str | None:
    """Return the message of a 400 for a schema, None for one that compiles."""
    if not isinstance(schema, dict):
        return "schema must be an object"
    compiler = _Compiler(schema)
    definitions = schema.get("$defs") or {}
    for name, node in [("", schema), *definitions.items()]:
        problem = compiler.compile(node)
        if problem is not None:
            return f"{problem} (in $defs '{name}')" if name else problem
    compiler.count(schema)
    if compiler.optional > MAX_OPTIONAL:
        return (
            f"Schemas contains too many optional parameters ({compiler.optional}), which would "
            f"make grammar compilation inefficient. (limit: {MAX_OPTIONAL} parameters)"
        )
    if compiler.unions > MAX_UNION:
        return (
            f"Schemas contains too many parameters with union types ({compiler.unions} parameters "
            f"with type arrays or anyOf). (limit: {MAX_UNION} parameters)"
        )
    return None


def _unsupported_keyword(node: dict[str, Any]) -> str | None:
    for kind, keywords in UNSUPPORTED.items():
        found = [keyword for keyword in keywords if keyword in node]
        if found:
            return f"For '{kind}' type, property '{found[0]}' is not supported"
    return None


def _wrong_type(node: dict[str, Any]) -> str | None:
    kinds = node.get("type", [])
    for kind in kinds if isinstance(kinds, list) else [kinds]:
        if kind not in KNOWN_TYPES:
            return f"'{kind}' is not a known type"
    return None


def _wrong_scalar(node: dict[str, Any]) -> str | None:
    if "format" in node and node["format"] not in STRING_FORMATS:
        return f"For 'string' type, format '{node['format']}' is not supported"
    if any(hard in node.get("pattern", "") for hard in ("(?=", "(?!", "(?<", "\\b", "\\1")):
        return "For 'string' type, the pattern is not supported"
    if any(isinstance(value, dict | list) for value in node.get("enum", [])):
        return "Complex values in 'enum' are not supported"
    return None
