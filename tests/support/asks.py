"""Requests before they have a provider's form, as the tests of all providers make them.

Belongs here: the schema, the prompt of a numbered document, and an `Ask` around them. Does not
belong here: any provider's model, ids or form.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from resources.providers.port import Ask

REPOSITORY = Path(__file__).resolve().parents[2]
SCHEMA_FILE = REPOSITORY / "pipeline_assets/workloads/equipment_manuals/output_schema.json"
SCHEMA: dict[str, Any] = json.loads(SCHEMA_FILE.read_text(encoding="utf-8"))


def reference(number: int) -> str:
    """What a request calls the document of a number."""
    return f"doc-{number:016x}"


def page_prompt(number: int, padding: str = "") -> str:
    """The user part about the document of a number: one page between its markers."""
    name = reference(number)
    return (
        f"=== {name} document begins ===\n=== {name} page 1 ===\n"
        f"Pump Model KX-{number}00 Operating Instructions\u2028é{padding}\n"
        f"=== {name} document ends ==="
    )


def make_ask(model: str, user: str, /, **changes: Any) -> Ask:
    """An ask about any user part, with some of its attributes changed."""
    values: dict[str, Any] = {
        "model": model,
        "system": "Read the manual.",
        "user": user,
        "schema_name": "equipment_manual",
        "schema": SCHEMA,
        "output_tokens": 2000,
        "parameters": {},
    }
    return Ask(**{**values, **changes})
