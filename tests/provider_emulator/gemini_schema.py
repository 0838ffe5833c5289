"""What Gemini takes as an output schema, in both of its dialects.

Belongs here: the strict subsets and the message for each violation. Written from the provider's
documentation, not from the product's converter: each is a check of the other.
"""

from __future__ import annotations

from typing import Any

TYPES = ("STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT")
SCHEMA_FIELDS = frozenset(
    "type format title description nullable enum maxItems minItems properties required "
    "minProperties maxProperties minLength maxLength pattern example anyOf propertyOrdering "
    "default items minimum maximum".split()
)
JSON_SCHEMA_WORDS = frozenset(
    "$id $defs $ref $anchor type format title description enum items prefixItems minItems "
    "maxItems minimum maximum anyOf oneOf properties additionalProperties required "
    "propertyOrdering".split()
)
FORMATS = {
    "STRING": ("enum", "date-time"),
    "NUMBER": ("float", "double"),
    "INTEGER": ("int32", "int64"),
}
PLACE = "GenerateContentRequest.generation_config.response_schema"
TOO_DEEP = (
    "A schema in GenerationConfig in the request exceeds the maximum allowed nesting depth. For "
    "more information, see https://ai.google.dev/gemini-api/docs/structured-output."
)


class BadSchema(ValueError):
    """A schema that is refused; the message is the provider's."""


def check_schema(config: dict[str, Any], depth_limit: int) -> None:
    """Check the schema of a `generationConfig`, if it has one.

    Raises:
        BadSchema: it is outside the subset, or cannot be combined with what stands beside it.
    """
    given = [name for name in ("responseSchema", "responseJsonSchema") if name in config]
    if not given:
        return
    if len(given) > 1:
        raise BadSchema("Only one of response_schema and response_json_schema can be set.")
    if config.get("responseMimeType") not in ("application/json", "text/x.enum"):
        raise BadSchema(
            "* GenerateContentRequest.generation_config.response_mime_type: a response schema "
            "is only allowed with the mime type application/json or text/x.enum\n"
        )
    if "responseSchema" in config:
        _check_openapi(config["responseSchema"], PLACE, depth_limit)
    else:
        _check_json_schema(config["responseJsonSchema"], config["responseJsonSchema"], depth_limit)


def _check_openapi(node: Any, place: str, depth: int) -> None:
    if depth <= 0:
        raise BadSchema(TOO_DEEP)
    if not isinstance(node, dict):
        raise BadSchema(f"Invalid value at '{place}' (Schema).")
    for field in node:
        if field not in SCHEMA_FIELDS:
            raise BadSchema(
                f"Invalid JSON payload received. Unknown name \"{field}\" at '{place}': Cannot "
                "find field."
            )
    if "anyOf" in node:
        for number, choice in enumerate(node["anyOf"]):
            _check_openapi(choice, f"{place}.any_of[{number}]", depth - 1)
        return
    _check_typed(node, place, depth)


def _check_typed(node: dict[str, Any], place: str, depth: int) -> None:
    if isinstance(node.get("type"), list):
        raise BadSchema(
            f"Invalid JSON payload received. Unknown name \"type\" at '{place}': Proto field is "
            "not repeating, cannot start list."
        )
    kind = str(node.get("type", "")).upper()
    if kind not in TYPES:
        raise BadSchema(f"* {place}.type: must be specified\n")
    if "enum" in node and kind != "STRING":
        raise BadSchema(f"* {place}.enum: only allowed for STRING type\n")
    if "format" in node and node["format"] not in FORMATS.get(kind, ()):
        allowed = " and ".join(f"'{one}'" for one in FORMATS.get(kind, ("none",)))
        raise BadSchema(f"* {place}.format: only {allowed} are supported for {kind} type\n")
    if kind == "OBJECT":
        _check_object(node, place, depth)
    if kind == "ARRAY":
        if "items" not in node:
            raise BadSchema(f"* {place}.items: missing field.\n")
        _check_openapi(node["items"], f"{place}.items", depth - 1)


def _check_object(node: dict[str, Any], place: str, depth: int) -> None:
    properties = node.get("properties") or {}
    if not properties:
        raise BadSchema(f"* {place}.properties: should be non-empty for OBJECT type\n")
    for field in ("required", "propertyOrdering"):
        for number, name in enumerate(node.get(field, [])):
            if name not in properties:
                raise BadSchema(f"* {place}.{field}[{number}]: property is not defined\n")
    for name, value in properties.items():
        _check_openapi(value, f"{place}.properties[{name}]", depth - 1)


def _check_json_schema(node: Any, root: Any, depth: int, within: tuple[str, ...] = ()) -> None:
    """Walk a JSON Schema with its references followed, as the service does to build a grammar."""
    if depth <= 0:
        raise BadSchema(TOO_DEEP)
    if not isinstance(node, dict):
        raise BadSchema("response_json_schema: a schema must be an object.")
    unknown = sorted(set(node) - JSON_SCHEMA_WORDS)
    if unknown:
        raise BadSchema(f"response_json_schema: the keyword '{unknown[0]}' is not supported.")
    if "$ref" in node:
        reference = node["$ref"]
        if reference in within:
            raise BadSchema(
                "response_json_schema: cyclic references are only allowed within non-required "
                "properties."
            )
        _check_json_schema(_target(root, reference), root, depth, (*within, reference))
    required = node.get("required", [])
    for name, value in node.get("properties", {}).items():
        if name in required:
            _check_json_schema(value, root, depth - 1, within)
    for choice in [*node.get("anyOf", []), *node.get("oneOf", []), *node.get("prefixItems", [])]:
        _check_json_schema(choice, root, depth - 1, within)
    if "items" in node:
        _check_json_schema(node["items"], root, depth - 1, within)


def _target(root: Any, reference: Any) -> Any:
    found = root
    for step in str(reference).removeprefix("#").split("/")[1:]:
        if not isinstance(found, dict) or step not in found:
            raise BadSchema(f"response_json_schema: the reference '{reference}' does not resolve.")
        found = found[step]
    return found
