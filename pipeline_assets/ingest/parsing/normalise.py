"""Turns the text of a reader into the text that is stored: one canonical spelling of each page.

Pure functions on strings. Which lines or pages to drop is decided in `useful`.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

_COMPATIBILITY: Final = re.compile(
    "["
    "\ufb00-\ufb06"  # Latin ligatures: ff fi fl ffi ffl st
    "\ufb13-\ufb17"  # Armenian ligatures
    "\ufb50-\ufdff\ufe70-\ufefc"  # Arabic presentation forms
    "\u2e80-\u2fdf"  # CJK and Kangxi radicals, which some fonts map in place of the characters
    "]+"
)
_LINE_END_HYPHEN: Final = re.compile("[\ufffe\u00ad][ \t]*\n[ \t]*")
_SOFT_HYPHEN: Final = re.compile("[\ufffe\u00ad\u0002]")
_LINE_BREAKS: Final = re.compile("\r\n|\u2028|\u2029|\u0085|\u000b")
_SPACES: Final = re.compile("[ \t\r\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]+")
_UNWANTED: Final = re.compile(
    "[\u0000-\u0008\u000c\u000e-\u001f\u007f-\u009f\ufeff\ufff9-\ufffb\uffff\ud800-\udfff]"
)
_BLANK_LINES: Final = re.compile("\n{3,}")
_BULLETS: Final = {0xF0B7: "•", 0xF0A7: "▪", 0xF0D8: "➢"}
"""Bullets of the Symbol and Wingdings fonts, which PDF writers leave in the private-use area."""


def normalise(text: str) -> str:
    r"""Canonical page text.

    Line ends become `\n`; words divided by a soft hyphen at a line's end are joined; ligatures,
    Arabic presentation forms and CJK radicals are expanded; the rest is NFC. Control characters
    go, runs of spaces become one, lines have no outer space, and at most one line stays empty
    between two others.
    """
    text = _LINE_BREAKS.sub("\n", text)
    text = _LINE_END_HYPHEN.sub("", text)
    text = _SOFT_HYPHEN.sub("", text)
    text = _SPACES.sub(" ", text)
    text = _UNWANTED.sub("", text)
    text = _COMPATIBILITY.sub(lambda match: unicodedata.normalize("NFKC", match[0]), text)
    text = unicodedata.normalize("NFC", text).translate(_BULLETS)
    text = "\n".join(_SPACES.sub(" ", line).strip(" ") for line in text.split("\n"))
    return _BLANK_LINES.sub("\n\n", text).strip("\n")


def control_share(text: str) -> float:
    """Share of characters that no text has: control codes but for line ends, tabs and pages."""
    if not text:
        return 0.0
    return sum(1 for char in text if char < " " and char not in "\t\n\r\f\x02\x0b") / len(text)
