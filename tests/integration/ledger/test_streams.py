"""Long results in chunks, many ids as one parameter, and text in byte order."""

from __future__ import annotations

import polars as pl
import pytest

from resources.ledger import postgres, sqlite
from resources.ledger.engine import Ledger
from resources.ledger.frames import json_of_texts

TEXTS = ["a/\u00e9", "a/z", "a/Z", "a/_", 'a/"x', "a/\U0001f600", "a/%25", "a/\u4e2d"]
SCHEMA = {"value": pl.String}


def test_a_stream_comes_in_chunks(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    for dialect in (sqlite, postgres):
        monkeypatch.setattr(dialect, "ROWS_A_CHUNK", 3)
    sql = f"SELECT value FROM ({ledger.dialect.texts_of_json}) s WHERE value <> ?"
    given = (json_of_texts(pl.Series(TEXTS)), "a/z")
    with ledger.read() as connection:
        parts = list(ledger.dialect.stream(connection, sql, SCHEMA, given))
        assert [part.height for part in parts] == [3, 3, 1]
        assert pl.concat(parts)["value"].to_list() == [text for text in TEXTS if text != "a/z"]
        assert list(ledger.dialect.stream(connection, sql + " AND 1 = 0", SCHEMA, given)) == []


def test_text_is_sorted_by_its_bytes(ledger: Ledger) -> None:
    by_bytes = ledger.dialect.in_byte_order("value")
    sql = f"SELECT value FROM ({ledger.dialect.texts_of_json}) s ORDER BY {by_bytes}"
    with ledger.read() as connection:
        found = ledger.dialect.fetch(connection, sql, SCHEMA, (json_of_texts(pl.Series(TEXTS)),))
    assert found["value"].to_list() == sorted(TEXTS)
