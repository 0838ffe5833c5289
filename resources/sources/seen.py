"""What looking for one document of a source came to.

Belongs here: the type that folders and buckets share. Does not belong here: how they look.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Seen:
    """One document that was looked for.

    Attributes:
        document_id: the document.
        outcome: `found`; `gone`: it is not there; `failed`: that could not be told.
        row: a row of `LISTED_SCHEMA` where it was found, else empty.
        problem: closed wording where it failed.
    """

    document_id: str
    outcome: Literal["found", "gone", "failed"]
    row: tuple[object, ...] = ()
    problem: str = ""
