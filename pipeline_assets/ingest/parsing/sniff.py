"""Decides a file's media type from its name and its first bytes.

A pure table: content decides whenever it is a supported binary type, the name decides between
kinds of text, and a name that promises one supported type over bytes of another kind is refused.
Zip containers are told apart by their directory in `containers`.
"""

from __future__ import annotations

import re
from typing import Final

from pipeline_assets.ingest.parsing.model import DOCX, HTML, ODT, PDF, PLAIN, ParseFailure

HEAD_BYTES: Final = 4096
"""How many first bytes a decision needs."""

ZIP: Final = "application/zip"
"""Not an answer but a question: `containers.decide_container_type` looks inside."""

_EXTENSIONS: Final = {
    "pdf": PDF,
    "docx": DOCX,
    "odt": ODT,
    "html": HTML,
    "htm": HTML,
    "xhtml": HTML,
    "txt": PLAIN,
    "text": PLAIN,
    "md": PLAIN,
    "markdown": PLAIN,
    "rst": PLAIN,
    "adoc": PLAIN,
    "asc": PLAIN,
}
_FOREIGN: Final = (
    (b"\x89PNG\r\n\x1a\n", "PNG image"),
    (b"\xff\xd8\xff", "JPEG image"),
    (b"GIF8", "GIF image"),
    (b"II*\x00", "TIFF image"),
    (b"MM\x00*", "TIFF image"),
    (b"BM", "bitmap image"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "OLE compound file"),
    (b"\x1f\x8b", "gzip archive"),
    (b"7z\xbc\xaf\x27\x1c", "7z archive"),
    (b"Rar!", "RAR archive"),
    (b"{\\rtf", "RTF text"),
    (b"%!PS", "PostScript"),
    (b"\x7fELF", "executable"),
    (b"MZ", "executable"),
    (b"AT&TFORM", "DjVu"),
    (b"BZh", "bzip2 archive"),
    (b"\xfd7zXZ\x00", "xz archive"),
)
_TEXT_SIGNATURES: Final = (b"BM", b"MZ", b"BZh", b"Rar!", b"GIF8")
"""Signatures that plain words may start with: they count only over bytes that are not text."""
_BOMS: Final = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")
_HTML_START: Final = re.compile(
    rb"\A(?:\s|<\?xml[^>]*>|<!--.*?-->)*<(?:!doctype\s+html|html|head|body|title|meta|h1)\b",
    re.I | re.S,
)


def claimed_media_type(name: str) -> str | None:
    """The supported type that a name's extension promises, None when it promises none."""
    _, dot, extension = name.rpartition(".")
    return _EXTENSIONS.get(extension.strip().casefold()) if dot else None


def is_bare(name: str) -> bool:
    """Whether a name has no extension, so that nothing speaks against text."""
    stem, dot, extension = name.rpartition(".")
    return not dot or not stem or not extension.strip()


def decide_media_type(name: str, head: bytes) -> str | ParseFailure:
    """The media type to parse by, `ZIP` for a container, or why the file is refused.

    | content | name promises | decision |
    | --- | --- | --- |
    | `%PDF-` first (within 1 KiB when .pdf) | anything | PDF |
    | zip | anything | ZIP: look inside |
    | known foreign signature | a supported type / nothing | type_mismatch / unsupported_type |
    | HTML or text | PDF, DOCX, ODT | type_mismatch |
    | HTML or text | HTML / text | HTML / plain text, as named |
    | HTML | no extension | HTML |
    | text | no extension | plain text |
    | HTML or text | an unknown extension | unsupported_type |
    | other bytes | PDF, DOCX, ODT | unreadable |
    | other bytes | HTML, text | not_a_document |
    | other bytes | nothing | unsupported_type |

    Args:
        name: File name; only its extension counts.
        head: The first `HEAD_BYTES` bytes, fewer only when the file is shorter.
    """
    return decide_by_claim(claimed_media_type(name), head, bare_name=is_bare(name))


def decide_by_claim(
    claimed: str | None, head: bytes, *, bare_name: bool = False
) -> str | ParseFailure:
    """`decide_media_type` where the promise is already known, from a name or a source's hint.

    Args:
        claimed: The supported type that is promised.
        head: The first `HEAD_BYTES` bytes.
        bare_name: The name has no extension, so nothing speaks against text.
    """
    if not head:
        return ParseFailure("empty", "the file has no bytes")
    if _is_pdf(head, claimed):
        return PDF
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return ZIP
    textual = looks_like_text(head)
    for signature, kind in _FOREIGN:
        if head.startswith(signature) and not (textual and signature in _TEXT_SIGNATURES):
            return _refuse_foreign(claimed, kind)
    if not textual:
        return _refuse_binary(claimed)
    is_html = bool(_HTML_START.search(_without_bom(head)))
    if claimed in (PDF, DOCX, ODT):
        kind = "HTML" if is_html else "plain text"
        return ParseFailure("type_mismatch", f"the name promises {claimed}, the bytes are {kind}")
    if claimed is not None:
        return claimed
    if bare_name:
        return HTML if is_html else PLAIN
    return ParseFailure("unsupported_type", "text under a name that promises no supported type")


def looks_like_text(head: bytes) -> bool:
    """Whether first bytes can be text: no NUL unless UTF-16 says so, hardly any control code."""
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return True
    if b"\x00" in head:
        return False
    controls = sum(1 for byte in head if byte < 32 and byte not in b"\t\n\r\x0b\x0c\x1b")
    return controls <= 0.02 * len(head)


def _is_pdf(head: bytes, claimed: str | None) -> bool:
    if _without_bom(head).lstrip().startswith(b"%PDF-"):
        return True
    # Readers accept a header within the first KiB; other text may merely mention it there.
    return claimed == PDF and b"%PDF-" in head[:1024]


def _without_bom(head: bytes) -> bytes:
    for bom in _BOMS:
        if head.startswith(bom):
            return head[len(bom) :].replace(b"\x00", b"") if len(bom) == 2 else head[len(bom) :]
    return head


def _refuse_foreign(claimed: str | None, kind: str) -> ParseFailure:
    if claimed is None:
        return ParseFailure("unsupported_type", kind)
    return ParseFailure("type_mismatch", f"the name promises {claimed}, the bytes are {kind}")


def _refuse_binary(claimed: str | None) -> ParseFailure:
    if claimed is None:
        return ParseFailure("unsupported_type", "unknown binary content")
    if claimed in (HTML, PLAIN):
        return ParseFailure("not_a_document", "binary content under a name that promises text")
    return ParseFailure("unreadable", f"no {claimed} signature in the first bytes")
