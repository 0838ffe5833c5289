"""The raw names that may stand behind the path of a document id.

Belongs here: the spellings that are tried first, and how the start of a name is narrowed down when
none of them is there. Does not belong here: the grammar of ids (`document_id.py`), and looking for
a name in a folder or a bucket.

An id holds its path in NFC, so it tells the text of a name and not how the name was composed.
Most names are in NFC or in NFD; a name that mixes both has to be looked for among its neighbours,
by the text that they fold to.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass

from resources.sources.document_id import escape_path, parse_document_id

#: The signs of ASCII that another sign folds to (all of Unicode has three: the Kelvin sign, the
#: Greek question mark and the varia).
FOLDING_TO_ASCII = {"K": "\u212a", ";": "\u037e", "`": "\u1fef"}


@dataclass(frozen=True)
class Spelt:
    """What a document id says about the raw name.

    Attributes:
        path: the path as the id gives it.
        exact: these are the very bytes; no other spelling is meant.
    """

    path: bytes
    exact: bool

    def likely(self) -> list[bytes]:
        """The path as it is, which is NFC, and as some systems write it (NFD)."""
        return [self.path] if self.exact else likely_spellings(self.path)

    def may_differ(self) -> bool:
        """Might another raw name than the likely ones be meant?"""
        return not self.exact and may_be_spelt_otherwise(self.path)


def spelt(document_id: str) -> Spelt:
    """The path of an id.

    Raises:
        DocumentIdError: it cannot be told.
    """
    _, path = parse_document_id(document_id)
    return Spelt(path, exact=document_id.partition("/")[2] != escape_path(path))


def likely_spellings(path: bytes) -> list[bytes]:
    """A path in NFC, and the same in NFD where that differs."""
    text = path.decode("utf-8", "surrogateescape")
    decomposed = unicodedata.normalize("NFD", text).encode("utf-8", "surrogateescape")
    return list(dict.fromkeys((path, decomposed)))


def folded(path: bytes) -> bytes:
    """A raw path in NFC."""
    text = path.decode("utf-8", "surrogateescape")
    return unicodedata.normalize("NFC", text).encode("utf-8", "surrogateescape")


def may_be_spelt_otherwise(path: bytes) -> bool:
    """Might another raw name fold to this one?"""
    return not path.isascii() or any(sign.encode() in path for sign in FOLDING_TO_ASCII)


def starts(path: bytes) -> list[str]:
    """What each raw name that folds to this path, but for the path itself, begins with.

    A sign that folds to ASCII stands where its plain twin does in the path; everything else lies
    behind the part that is plain ASCII. The last sign of that part may belong to a mark behind it.
    """
    text = path.decode("utf-8", "surrogateescape")
    end = next((place for place, sign in enumerate(text) if not sign.isascii()), len(text))
    found = [
        text[:place] + FOLDING_TO_ASCII[sign]
        for place, sign in enumerate(text[:end])
        if sign in FOLDING_TO_ASCII
    ]
    return found if end == len(text) else [*found, text[: max(end - 1, 0)]]
