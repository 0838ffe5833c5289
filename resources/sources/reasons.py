"""The closed list of reasons why a source document never becomes a record.

Here: the names and one line on each. Not here: who decides on them (the sources, the parser).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

EXCLUSION_REASONS: Mapping[str, str] = MappingProxyType(
    {
        "empty": "the file has no bytes",
        "unsupported_type": "the content is of a type that is not read",
        "type_mismatch": "the name says one type, the content is another",
        "encrypted": "the document needs a password",
        "unreadable": "the bytes, or the document in them, could not be read",
        "no_text": "no page has text, not even after text recognition",
        "too_large": "the file, or what it unpacks to, is larger than the limit",
        "too_slow": "reading the document took longer than the limit",
        "outside_root": "the name leads out of the source's root or file system",
        "duplicate_content": "another document of the source has the same bytes",
        "not_a_document": "a pipe, socket or device, or content that is no document",
        "id_collision": "another file's name folds to the same document id",
        "symbolic_link": "a link to a file or folder that the source already holds",
        "broken_link": "a link that leads nowhere or in a circle",
        "page_over_budget": "its first page with text is longer than a request may be",
        "reference_in_text": "a page holds the mark that separates it from the instructions",
        "no_pages": "it was parsed into no page",
        "name_too_long": "the path is too long for a document id",
        "no_key": "the row has no key, so it has no identity",
        "awaiting_approval": "its source demands approval, and nobody has decided yet",
        "approval_refused": "its source demands approval, and it was refused",
        "not_selected": "its version processes only what replays select, and none did",
        "erased": "it was erased, and its source still holds it",
    }
)


class UnknownExclusionReason(ValueError):
    """A reason that is not in the closed list."""


def check_reason(reason: str) -> str:
    """Return `reason` unchanged if it is in the list.

    Raises:
        UnknownExclusionReason: it is not.
    """
    if reason not in EXCLUSION_REASONS:
        raise UnknownExclusionReason(
            f"{reason!a} is no exclusion reason: expected one of "
            f"{', '.join(sorted(EXCLUSION_REASONS))}; a new reason belongs in the list first"
        )
    return reason
