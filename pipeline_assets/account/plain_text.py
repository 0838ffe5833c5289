"""Document text made safe to print on a terminal.

Belongs here: escaping what could move the cursor, change colours or turn the reading direction.
Does not belong here: cutting or marking text.
"""

from __future__ import annotations

import re

# C0 and C1 controls and DEL, line and paragraph separators, bidirectional controls, characters
# without width (but for the joiners that scripts need), lone surrogates, and tag characters.
_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\uffff"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)
_UNSAFE_IN_LINES = re.compile(_UNSAFE.pattern.replace("\x00-\x1f", "\x00-\x08\x0b-\x1f"))


def one_line(text: str) -> str:
    r"""The text on one line, unsafe characters as `\u{...}`."""
    return _UNSAFE.sub(_escape, text)


def lines(text: str) -> str:
    r"""The text with its line ends and tabs, other unsafe characters as `\u{...}`."""
    return _UNSAFE_IN_LINES.sub(_escape, text)


def json_safe(encoded: str) -> str:
    r"""JSON text with unsafe characters as `\uXXXX`, which means the same to a parser."""
    return _UNSAFE.sub(_escape_in_json, encoded)


def _escape(match: re.Match[str]) -> str:
    return f"\\u{{{ord(match.group()):x}}}"


def _escape_in_json(match: re.Match[str]) -> str:
    units = match.group().encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i : i + 2].hex()}" for i in range(0, len(units), 2))
