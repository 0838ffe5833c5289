"""The form that the compatible server holds answers to: pure, on a request's JSON Schema.

Belongs here: the narrower schema. Does not belong here: sending (`proxy.py`).

The server turns the schema of a request into a grammar. A schema without lengths lets a small
model write one sentence until its tokens are used up, and one that lets a value stand without
evidence, or evidence without a value, gets just that. Left to itself the model also copies the
reference wrongly and calls nearly everything uncertain: every answer is then refused for one of
these alone, and no other rule is put to the test. So the proxy asks for a narrower form, in which
an answer looks as one of a good model does: the request's own reference, values that are called
found and have evidence, or none. Each is an answer in the form that Tallybook asks for, and nothing
in it says what is right; the rules have to judge what it means. Tallybook's own schema and its
frozen requests stay as they are.
"""

from __future__ import annotations

import copy
from typing import Any

MOST_EVIDENCE = 1
MOST_IDENTIFIERS = 2
_QUOTE = {"type": "string", "minLength": 2, "maxLength": 80}
_TITLE = {"type": "string", "minLength": 1, "maxLength": 100}
_IDENTIFIER = {"type": "string", "minLength": 1, "maxLength": 30}
_LANGUAGE = {"type": "string", "pattern": "^[a-z]{2}$"}
_DESCRIPTION = {"type": "string", "minLength": 20, "maxLength": 160}


def bounded(schema: dict[str, Any], reference: str) -> dict[str, Any]:
    """The schema of an equipment manual's metadata in the narrower form; any other as it is.

    Args:
        schema: of the request.
        reference: the document's, as the request's markers have it.
    """
    named = {"document", "title", "product_identifiers", "language", "description"}
    if set(schema.get("properties", {})) != named:
        return schema
    narrow = copy.deepcopy(schema)
    narrow.pop("$defs", None)
    narrow["properties"] = {
        "document": {"type": "string", "enum": [reference]},
        "title": {"anyOf": [_present(_TITLE), _absent()]},
        "product_identifiers": {
            "type": "array",
            "items": _present(_IDENTIFIER),
            "maxItems": MOST_IDENTIFIERS,
        },
        "language": {"anyOf": [_present(_LANGUAGE), _absent()]},
        "description": {"anyOf": [_present(_DESCRIPTION), _absent()]},
    }
    return narrow


def _present(value: dict[str, Any]) -> dict[str, Any]:
    evidence = _closed({"page": {"type": "integer", "minimum": 1, "maximum": 999}, "quote": _QUOTE})
    return _closed(
        {
            "value": value,
            "status": {"type": "string", "enum": ["found"]},
            "evidence": {
                "type": "array",
                "items": evidence,
                "minItems": 1,
                "maxItems": MOST_EVIDENCE,
            },
        }
    )


def _absent() -> dict[str, Any]:
    return _closed(
        {
            "value": {"type": "null"},
            "status": {"type": "string", "enum": ["absent"]},
            "evidence": {"type": "array", "items": {"type": "string"}, "maxItems": 0},
        }
    )


def _closed(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "additionalProperties": False,
        "required": list(properties),
        "properties": properties,
    }
