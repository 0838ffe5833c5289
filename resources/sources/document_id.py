"""The grammar of document ids: how a source name and a path become one stable text, and back.

Here: building, parsing and the rules of the grammar. Not here: walking folders, deciding which
documents are excluded, or record ids (which are made from document ids).

The grammar::

    document_id = source_name "/" escaped_path
    source_name = [a-z0-9] [a-z0-9_-]{0,30}

The path is normalised to NFC. Escaped as `%XX` (upper-case hexadecimal, one escape for each UTF-8
byte) are: `@`, `:` and `%`; C0 and C1 control characters and DEL; the line and paragraph
separators U+2028 and U+2029; the bidirectional controls U+061C, U+200E, U+200F, U+202A-U+202E and
U+2066-U+2069; every byte that is not valid UTF-8; and a combining mark that would directly follow
an escape, because NFC would otherwise fuse it with the last hexadecimal digit. So an id is always
valid, NFC, printable text on one line, and none of the separators of record ids occurs in it.

The NFC and the NFD spelling of one name fold to the same id. Where both exist, the *exact form*
tells them apart: the raw bytes, not normalised, with every non-ASCII byte escaped too. An exact
form equals the ordinary id of another path only when both paths fold to one id, so within a source
the exact forms of folded paths are unique.

An id is at most `MAX_DOCUMENT_ID_BYTES` long. A longer path has only a *shortened form*, which is
unique but cannot be turned back into a path: its documents can be named, not processed.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata

#: Longest id in UTF-8 bytes. PostgreSQL refuses index rows above 2,704 bytes (a third of a page);
#: the rest is room for the workload and the version that a record id adds.
MAX_DOCUMENT_ID_BYTES = 2_000

_SOURCE_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,30}")
_SHORTENED_HEAD_BYTES = 200
_SHORTENED_MARK = "%~"
_BIDI_AND_SEPARATORS = "\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"
# Lone surrogates stand for bytes that are not valid UTF-8 (the "surrogateescape" convention).
#: One character that never occurs unescaped in an id.
FORBIDDEN_IN_IDS = re.compile(f"[@:%\x00-\x1f\x7f-\x9f{_BIDI_AND_SEPARATORS}\udc80-\udcff]")
_FORBIDDEN_OR_NON_ASCII = re.compile(r"[@:%\x00-\x1f\x7f]|[^\x00-\x7f]")
_PLAIN_ASCII = re.compile(rb"[ -$&-9;-?A-~]*")
_ESCAPE = re.compile(rb"%([0-9A-F]{2})")
_BROKEN_ESCAPE = re.compile(r"%(?![0-9A-F]{2})")


class DocumentIdError(ValueError):
    """The text or the path does not follow the grammar of document ids."""


class DocumentIdTooLong(DocumentIdError):
    """The path has no ordinary id, because it would be longer than `MAX_DOCUMENT_ID_BYTES`."""


def check_source_name(name: str) -> str:
    """Return `name` unchanged if it may name a source.

    Raises:
        DocumentIdError: the name does not match `[a-z0-9][a-z0-9_-]{0,30}`.
    """
    if _SOURCE_NAME.fullmatch(name) is None:
        raise DocumentIdError(
            f"source name {name!a} is not usable: expected 1 to 31 characters of a-z, 0-9, "
            "'_' and '-', the first a letter or a digit; rename the source in the settings"
        )
    return name


def document_id(source_name: str, relative_path: bytes) -> str:
    """The id of the document at `relative_path` (raw bytes, "/" between folders) in a source.

    Raises:
        DocumentIdError: the source name is not usable, or the path is empty.
        DocumentIdTooLong: the id would exceed `MAX_DOCUMENT_ID_BYTES`; use `shortened_document_id`.
    """
    return _checked_length(f"{_prefix(source_name, relative_path)}{escape_path(relative_path)}")


def exact_document_id(source_name: str, relative_path: bytes) -> str:
    """The exact form: tells apart two paths that fold to one id.

    Raises:
        DocumentIdError: the source name is not usable, or the path is empty.
        DocumentIdTooLong: the id would exceed `MAX_DOCUMENT_ID_BYTES`; use `shortened_document_id`.
    """
    escaped = escape_path_exactly(relative_path)
    return _checked_length(f"{_prefix(source_name, relative_path)}{escaped}")


def shortened_document_id(source_name: str, relative_path: bytes) -> str:
    """A unique name for a path whose id is too long: its start, `%~`, and a SHA-256 of its bytes.

    Raises:
        DocumentIdError: the source name is not usable, or the path is empty.
    """
    prefix = _prefix(source_name, relative_path)
    head = escape_path_exactly(relative_path[:_SHORTENED_HEAD_BYTES])
    return f"{prefix}{head}{_SHORTENED_MARK}{hashlib.sha256(relative_path).hexdigest()}"


def parse_document_id(text: str) -> tuple[str, bytes]:
    """Split an id into source name and path; the path of an ordinary id comes back in NFC.

    Raises:
        DocumentIdError: the text is not an id that this module would have made, or it is a
            shortened form, from which the path cannot be told.
    """
    source_name, slash, escaped = text.partition("/")
    if not slash or not escaped:
        raise DocumentIdError(f"document id {text!a} is not usable: expected <source name>/<path>")
    check_source_name(source_name)
    if _SHORTENED_MARK in escaped:
        raise DocumentIdError(
            f"document id {text!a} is shortened, so its path cannot be told: find the file "
            "by its SHA-256 over the path bytes, or give it a shorter path"
        )
    path = _unescape(text, escaped)
    ordinary = escape_path(path)
    if escaped not in (ordinary, escape_path_exactly(path)):
        raise DocumentIdError(
            f"document id {text!a} is not in its one permitted spelling: expected "
            f"{source_name}/{ordinary!a}"
        )
    return source_name, path


def escape_path(path: bytes) -> str:
    """The escaped, NFC-folded form of a path: the part of an id behind the source name."""
    if _PLAIN_ASCII.fullmatch(path) is not None:
        return path.decode("ascii")
    text = unicodedata.normalize("NFC", path.decode("utf-8", "surrogateescape"))
    if FORBIDDEN_IN_IDS.search(text) is None:
        return text
    parts: list[str] = []
    after_escape = False
    for character in text:
        fuses = after_escape and unicodedata.combining(character) != 0
        after_escape = fuses or FORBIDDEN_IN_IDS.match(character) is not None
        parts.append(_escape_character(character) if after_escape else character)
    return "".join(parts)


def escape_path_exactly(path: bytes) -> str:
    """The escaped raw bytes of a path, without folding: pure ASCII, one form for each path."""
    text = path.decode("utf-8", "surrogateescape")
    return _FORBIDDEN_OR_NON_ASCII.sub(lambda match: _escape_character(match.group()), text)


def _escape_character(character: str) -> str:
    return "".join(f"%{byte:02X}" for byte in character.encode("utf-8", "surrogateescape"))


def _unescape(whole: str, escaped: str) -> bytes:
    if _BROKEN_ESCAPE.search(escaped) is not None:
        raise DocumentIdError(
            f"document id {whole!a} holds a '%' that starts no escape: expected '%' and two "
            "upper-case hexadecimal digits; write the character '%' as '%25'"
        )
    try:
        raw = escaped.encode("utf-8")
    except UnicodeEncodeError as error:
        raise DocumentIdError(
            f"document id {whole!a} is not valid Unicode text: expected escaped bytes "
            "('%FF') in place of lone surrogates"
        ) from error
    return _ESCAPE.sub(lambda match: bytes([int(match.group(1), 16)]), raw)


def _prefix(source_name: str, relative_path: bytes) -> str:
    check_source_name(source_name)
    if not relative_path:
        raise DocumentIdError(
            f"a document of source {source_name!r} has an empty path: expected the path of a file "
            "below the source's root"
        )
    return f"{source_name}/"


def _checked_length(text: str) -> str:
    size = len(text.encode("utf-8"))
    if size > MAX_DOCUMENT_ID_BYTES:
        raise DocumentIdTooLong(
            f"the id of {text[:80]!a}... has {size} bytes, at most {MAX_DOCUMENT_ID_BYTES} "
            "are possible: move the file to a shorter path"
        )
    return text
