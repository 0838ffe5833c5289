"""The message that tells an outlet of one change.

Belongs here: its form, which is a contract with receivers (docs: outlets). Does not belong here:
when it is sent.

A message is made from the ledger alone, so every try of a delivery carries the same bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from pipeline_assets.workloads.fields import members_of

FORMAT = "tallybook.outlet/1"
KEY_HEADER = "Idempotency-Key"


@dataclass(frozen=True)
class Message:
    """One change, ready to be posted.

    Attributes:
        key: the idempotency key.
        body: the exact bytes.
    """

    key: str
    body: bytes


def message_of(due: dict[str, Any], entry: dict[str, Any]) -> Message:
    """The message of a due row (`DUE_SCHEMA`) and its entry as an exported row.

    A removal carries no fields: what left the archive is not told once more.
    """
    content: dict[str, Any] = {
        "format": FORMAT,
        "idempotency_key": due["idempotency_key"],
        "effect": due["effect"],
        "change": due["change"],
        "document_id": due["document_id"],
        "archive_version": due["archive_version"],
        "record_id": due["record_id"],
        "workload": entry["workload"],
        "at": entry["published_at"] if due["effect"] == "put" else due["valid_to"],
        "provenance": entry["provenance"],
    }
    if due["effect"] == "put":
        content["fields"] = members_of(entry)
        content["thumbnail"] = entry["thumbnail"]
    return Message(due["idempotency_key"], msgspec.json.encode(content))
