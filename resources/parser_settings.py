"""What names a parse in the cache besides the bytes: the parser's version and its bounds.

Belongs here: the version, the settings and their key, which specs, ingest and the later stages
must agree on. Does not belong here: parsing (`pipeline_assets/ingest/parsing`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

PARSER_VERSION: Final = "1"
"""Bumped when the output of any reader can change; part of the parse cache's key."""

_KEY = re.compile(r"(.+);max_pages=([0-9]+);ocr_pages=([0-9]+)")


@dataclass(frozen=True)
class ParserSettings:
    """The part of parsing that decides the text.

    Attributes:
        version: of the readers.
        ocr_pages: at most so many pages of a document go through text recognition.
        max_pages: pages beyond this are not read.
    """

    version: str = PARSER_VERSION
    ocr_pages: int = 12
    max_pages: int = 2000

    @property
    def key(self) -> str:
        """Cache key, used together with the source checksum."""
        return f"{self.version};max_pages={self.max_pages};ocr_pages={self.ocr_pages}"

    @classmethod
    def from_key(cls, key: str) -> ParserSettings | None:
        """The settings that a cache key names; None where it is of another form."""
        found = _KEY.fullmatch(key)
        if found is None:
            return None
        version, max_pages, ocr_pages = found.groups()
        return cls(version=version, ocr_pages=int(ocr_pages), max_pages=int(max_pages))
