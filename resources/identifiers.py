"""Identifiers as they are compared: case, hyphens and spaces do not count.

Belongs here: the one folding that search, rules and the catalogue share. Does not belong here:
what an identifier looks like (`pipeline_assets/workloads`).
"""

from __future__ import annotations

import unicodedata

_DASHES = {"Pd"}


def fold_identifier(text: str) -> str:
    """An identifier without case, hyphens and spaces."""
    return "".join(
        character
        for character in unicodedata.normalize("NFKC", text).casefold()
        if not character.isspace()
        and character != "_"
        and unicodedata.category(character) not in _DASHES
    )
