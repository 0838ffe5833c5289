"""Encodings of text files."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline_assets.ingest.parsing.charset import decode, known_charset

GERMAN = "Gerät für höhere Spannungen"
RUSSIAN = "Перед подключением прибора проверьте напряжение сети питания."
JAPANESE = "本機を電源に接続する前に、取扱説明書をお読みください。"
CHINESE = "在将设备连接到电源之前，请仔细阅读本使用说明书。"


@pytest.mark.parametrize(
    ("data", "declared", "text", "guessed"),
    [
        pytest.param(GERMAN.encode(), None, GERMAN, False, id="utf-8"),
        pytest.param(GERMAN.encode("utf-8-sig"), None, GERMAN, False, id="utf-8 with BOM"),
        pytest.param(GERMAN.encode("utf-16"), None, GERMAN, False, id="utf-16 with BOM"),
        pytest.param(GERMAN.encode("utf-32"), None, GERMAN, False, id="utf-32 with BOM"),
        pytest.param(GERMAN.encode("latin-1"), "ISO-8859-1", GERMAN, False, id="declared"),
        pytest.param(b"\x93x\x94", "iso-8859-1", "“x”", False, id="latin-1 means Windows-1252"),
        pytest.param(RUSSIAN.encode("koi8-r"), "koi8-r", RUSSIAN, False, id="declared koi8-r"),
        pytest.param(GERMAN.encode(), "iso-8859-1", GERMAN, False, id="wrongly declared utf-8"),
        pytest.param(GERMAN.encode("cp1252"), None, GERMAN, True, id="Windows-1252"),
        pytest.param(GERMAN.encode("cp1252"), "nonsense", GERMAN, True, id="unknown declaration"),
        pytest.param(RUSSIAN.encode("cp1251"), None, RUSSIAN, True, id="Windows-1251"),
        pytest.param(RUSSIAN.encode("koi8-r"), None, RUSSIAN, True, id="koi8-r"),
        pytest.param(RUSSIAN.encode("cp866"), None, RUSSIAN, True, id="cp866"),
        pytest.param(JAPANESE.encode("shift_jis"), None, JAPANESE, True, id="Shift-JIS"),
        pytest.param(JAPANESE.encode("euc_jp"), None, JAPANESE, True, id="EUC-JP"),
        pytest.param(CHINESE.encode("gb18030"), None, CHINESE, True, id="GB 18030"),
        pytest.param(b"", None, "", False, id="nothing"),
    ],
)
def test_decode(data: bytes, declared: str | None, text: str, guessed: bool) -> None:
    assert decode(data, declared) == (text, guessed)


@pytest.mark.parametrize("label", ["zlib", "rot13", "base64", "\x00", "é", "", None, "x" * 999])
def test_labels_that_name_no_text_encoding(label: str | None) -> None:
    assert known_charset(label) is None


@given(st.binary(max_size=400))
def test_any_bytes_decode(data: bytes) -> None:
    text, _ = decode(data)
    assert isinstance(text, str)
