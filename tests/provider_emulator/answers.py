"""What the emulated models say: the baseline's answer to a page-marked prompt, and bad answers.

Belongs here: reading a prompt, and the kinds of row faults that only change the text of an
answer. How an answer, a refusal or an error is wrapped belongs to the provider's module.
"""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec

_BEGINS = re.compile(r"(?:\A|\n)=== (doc-[0-9a-f]{16}) document begins ===(?=\n)")

PROSE = "Certainly! The document appears to be an equipment manual; please see its first page."
LINE_SEPARATOR = "\u2028"


def read_prompt(user_text: str) -> tuple[str, list[tuple[int, str]]] | None:
    """Return the reference and the numbered pages of a prompt, None where it has no markers.

    The text of a page is what stands between the line feed behind its marker and the line feed
    before the next marker, verbatim.
    """
    begins = _BEGINS.search(user_text)
    if begins is None:
        return None
    reference = begins[1]
    end = user_text.find(f"\n=== {reference} document ends ===", begins.end())
    if end < 0:
        return None
    pieces = re.split(rf"\n=== {reference} page (\d+) ===\n", user_text[begins.end() : end])
    return reference, [(int(n), text) for n, text in zip(pieces[1::2], pieces[2::2], strict=True)]


def answer(user_text: str) -> str:
    """Return the baseline's JSON answer to a prompt, or a short text where it has no pages."""
    prompt = read_prompt(user_text)
    if prompt is None:
        return f"Emulated answer to a question of {len(user_text)} characters."
    from pipeline_assets.workloads.equipment_manuals.baseline import answer as baseline

    reference, pages = prompt
    found = baseline.answer(reference, [baseline.PageText(n, text) for n, text in pages])
    return msgspec.json.encode(found).decode()


def spoil(text: str, kind: str) -> str:
    """Return an answer as a row fault leaves it; kinds that do not touch the text return it as is.

    `truncated` and `repetition` end within the JSON: the provider's module says "token limit" as
    the finish reason. `prose`, `null_values` and `raw_u2028` end as if nothing was wrong.
    """
    if kind == "truncated":
        return text[: max(1, len(text) // 2)]
    if kind == "repetition":
        return text[: max(1, len(text) // 2)] + " and the" * 400
    if kind == "prose":
        return PROSE
    if kind == "null_values":
        return _with_nulls(text)
    if kind == "raw_u2028":
        return _with_line_separator(text)
    return text


def _with_nulls(text: str) -> str:
    """Empty every value of an answer, keeping its shape; other texts become `null`."""
    try:
        found = json.loads(text)
    except ValueError:
        return "null"
    return json.dumps(_emptied(found), ensure_ascii=False, separators=(",", ":"))


def _emptied(value: Any) -> Any:
    if isinstance(value, list):
        return []
    if isinstance(value, dict) and "status" in value:
        return {"value": None, "status": "absent", "evidence": []}
    if isinstance(value, dict):
        kept = {"document"}
        return {name: one if name in kept else _emptied(one) for name, one in value.items()}
    return None


def _with_line_separator(text: str) -> str:
    """Put a raw U+2028 into the description, or in front of a text that has none."""
    try:
        found = json.loads(text)
        description = found["description"]["value"]
    except (ValueError, KeyError, TypeError):
        return LINE_SEPARATOR + text
    found["description"]["value"] = f"{description or ''}{LINE_SEPARATOR}"
    return json.dumps(found, ensure_ascii=False, separators=(",", ":"))
