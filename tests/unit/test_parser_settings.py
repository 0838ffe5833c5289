"""The key of a parse in the cache."""

from __future__ import annotations

import dataclasses

from resources.parser_settings import ParserSettings


def test_settings_key_names_every_setting() -> None:
    assert ParserSettings(version="1").key == "1;max_pages=2000;ocr_pages=12"
    keys = {
        ParserSettings().key,
        ParserSettings(version="x").key,
        ParserSettings(ocr_pages=0).key,
        ParserSettings(max_pages=1).key,
    }
    assert len(keys) == 1 + len(dataclasses.fields(ParserSettings))
