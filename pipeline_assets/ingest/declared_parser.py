"""The parser settings that a version declares, if this release has that parser.

Belongs here: reading them from the spec. Does not belong here: the rest of a version, of which
ingest knows nothing (`pipeline_assets/versions.py` opens all of it).
"""

from __future__ import annotations

from partitions.processing_version import SpecDisagrees, find_spec
from pipeline_assets.parser_settings import parser_settings
from resources.context import Context
from resources.parser_settings import PARSER_VERSION, ParserSettings


def declared_parser(context: Context, key: str) -> ParserSettings:
    """How the documents of a version are parsed.

    Raises:
        MalformedVersionKey: the key cannot be one.
        UnknownVersion: no spec file has the key.
        InvalidSpec: its file cannot be used.
        SpecDisagrees: another parser is installed; its texts would be cached under a wrong name.
    """
    spec = find_spec(key, context.settings.spec_folders)
    if spec.parser.version != PARSER_VERSION:
        raise SpecDisagrees(
            key, [f"parser {spec.parser.version} is declared, {PARSER_VERSION} is installed"]
        )
    return parser_settings(spec)
