"""The parser settings of a spec, for the stages that need the parse cache's key.

Belongs here: only that; stages never import each other.
"""

from __future__ import annotations

from partitions.processing_version import Spec
from resources.parser_settings import ParserSettings


def parser_settings(spec: Spec) -> ParserSettings:
    """How the documents of a version are parsed."""
    return ParserSettings(
        version=spec.parser.version,
        ocr_pages=spec.parser.ocr_pages,
        max_pages=spec.parser.max_pages,
    )
