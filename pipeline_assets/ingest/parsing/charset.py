"""Turns bytes of text files into strings: byte-order marks, declarations, then a guess.

Pure functions. Guesses are scored by how plausible the letters are, not by language.
"""

from __future__ import annotations

import codecs
import unicodedata
from collections.abc import Callable
from typing import Final

_BOMS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_WEB_ALIASES: Final = {"iso8859-1": "cp1252", "ascii": "cp1252", "iso8859-9": "cp1254"}
"""What the Encoding Standard reads under these names."""
_SAMPLE_BYTES: Final = 20_000


def decode(data: bytes, declared: str | None = None) -> tuple[str, bool]:
    """The text, and whether its encoding was guessed.

    A byte-order mark wins, then UTF-8 when it fits without error, then what the document
    declares, then a guess that falls back on Windows-1252. Undefined bytes become U+FFFD.
    """
    for bom, name in _BOMS:
        if data.startswith(bom):
            return data[len(bom) :].decode(name, "replace"), False
    try:
        return data.decode("utf-8"), False
    except UnicodeDecodeError:
        pass
    name = known_charset(declared)
    if name is not None and name != "utf-8":
        return data.decode(name, "replace"), False
    return data.decode(guess_charset(data), "replace"), True


def known_charset(label: str | None) -> str | None:
    """Python's name for a declared charset; None when it is unknown or no text encoding."""
    if not label or not label.isascii() or "\x00" in label:
        return None
    try:
        codec = codecs.lookup(label.strip())
    except (LookupError, ValueError):
        return None
    # Codecs such as zlib or rot13 turn bytes into other things than text.
    if not getattr(codec, "_is_text_encoding", False):
        return None
    return _WEB_ALIASES.get(codec.name, codec.name)


def guess_charset(data: bytes) -> str:
    """The likeliest of the common legacy encodings for text that is not UTF-8."""
    sample = data[:_SAMPLE_BYTES]
    high = sum(1 for byte in sample if byte >= 0x80)
    letters = sum(1 for byte in sample if chr(byte).isalpha() and byte < 0x80)
    # Western text has under a sixth of such letters; other scripts are made of little else.
    if high < 0.45 * (high + letters):
        return "cp1252"
    best, name = max(
        ((_score(sample, name, plausible), name) for name, plausible in _candidates()),
        key=lambda pair: pair[0],
    )
    return name if best > 0.6 else "cp1252"


def _score(sample: bytes, name: str, plausible: Callable[[str], float]) -> float:
    """Mean plausibility of the characters beyond ASCII; 0 when the bytes do not fit."""
    decoder = codecs.getincrementaldecoder(name)()
    try:
        text = decoder.decode(sample)
    except UnicodeDecodeError:
        return 0.0
    beyond = [char for char in text if char > "\x7f"]
    return sum(map(plausible, beyond)) / len(beyond) if beyond else 0.0


def _cyrillic(char: str) -> float:
    """Running text is mostly lower case; a wrong table swaps the cases or gives box drawings."""
    if "а" <= char <= "я" or char in "ёіїєґў":
        return 1.0
    return 0.3 if "А" <= char <= "Я" or char in "№«»—–…Ё" else 0.0


def _japanese(char: str) -> float:
    if "\u3041" <= char <= "\u30fe":
        return 1.0
    return _han(char, "shift_jis", range(0x88, 0x98))


def _chinese(char: str) -> float:
    """Kana count for nothing: GB 2312 has them at the same codes as EUC-JP."""
    return _han(char, "gb2312", range(0xB0, 0xD8))


def _traditional_chinese(char: str) -> float:
    return _han(char, "big5", range(0xA4, 0xC7))


def _korean(char: str) -> float:
    if "\uac00" <= char <= "\ud7a3":
        return 1.0
    return 0.2 if unicodedata.name(char, "").startswith("CJK UNIFIED") else _punctuation(char)


def _han(char: str, charset: str, common: range) -> float:
    """Han characters arise by chance; the standards put the common ones first, in `common`."""
    if not unicodedata.name(char, "").startswith("CJK UNIFIED"):
        return _punctuation(char)
    try:
        lead = char.encode(charset)[0]
    except UnicodeEncodeError:
        return 0.3
    return 0.8 if lead in common else 0.3


def _punctuation(char: str) -> float:
    return 1.0 if "\u3001" <= char <= "\u3011" or "\uff01" <= char <= "\uff1f" else 0.0


def _candidates() -> tuple[tuple[str, Callable[[str], float]], ...]:
    return (
        ("shift_jis", _japanese),
        ("euc_jp", _japanese),
        ("gb18030", _chinese),
        ("euc_kr", _korean),
        ("big5", _traditional_chinese),
        ("cp1251", _cyrillic),
        ("koi8-r", _cyrillic),
        ("cp866", _cyrillic),
    )
