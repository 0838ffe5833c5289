"""Canaries as they are shown.

Belongs here: rows and facts as plain values. Does not belong here: making and judging canaries.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import msgspec

from resources.context import Context
from resources.ledger.canaries import list_canaries


class UnknownCanary(LookupError):
    """A name that no canary has."""

    def __init__(self, name: str) -> None:
        super().__init__(f"there is no canary {name!r} here; `tallybook canary list` shows them")


def canary_rows(context: Context) -> list[dict[str, Any]]:
    """Every canary, newest first; findings are left to `canary_facts`."""
    return [_plain(asdict(row)) for row in list_canaries(context.ledger)]


def canary_facts(context: Context, name: str) -> dict[str, Any]:
    """One canary with its findings.

    Raises:
        UnknownCanary: there is none of that name.
    """
    for row in list_canaries(context.ledger):
        if row.canary_id == name:
            found = msgspec.json.decode(row.findings or "[]")
            return {**_plain(asdict(row)), "findings": found}
    raise UnknownCanary(name)


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    left_out = {"canary_no", "version_no", "findings", "results"}
    return {name: value for name, value in row.items() if name not in left_out}
