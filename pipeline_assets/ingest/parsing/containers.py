"""Opens zip containers (DOCX, ODT) within bounds, and tells them apart.

Every byte that is inflated is counted, whatever the directory declares. XML is parsed without
entities, network or DTD. What the XML means belongs to `docx` and `odt`.
"""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Collection
from typing import Final

import lxml.etree as etree

from pipeline_assets.ingest.parsing.model import DOCX, MIB, ODT, ParseFailure
from pipeline_assets.ingest.parsing.reading import Refused

MAX_ENTRIES: Final = 20_000
MAX_PART_BYTES: Final = 48 * MIB
"""A tree takes up to ten times its XML: more than this cannot fit a worker's memory."""
_OLE_SIGNATURE: Final = b"\xd0\xcf\x11\xe0"
_OLE_ENCRYPTED: Final = "EncryptedPackage".encode("utf-16-le")


def is_encrypted_office_file(data: bytes) -> bool:
    """Whether an OLE file is a password-protected DOCX rather than an old binary format."""
    return data.startswith(_OLE_SIGNATURE) and _OLE_ENCRYPTED in data


def open_container(data: bytes) -> zipfile.ZipFile:
    """The zip directory.

    Raises:
        Refused: unreadable when the directory is damaged, too_large when it is absurd.
    """
    try:
        container = zipfile.ZipFile(io.BytesIO(data))
    except (zipfile.BadZipFile, ValueError, NotImplementedError, UnicodeDecodeError) as error:
        raise Refused(ParseFailure("unreadable", "the zip directory is damaged")) from error
    if len(container.infolist()) > MAX_ENTRIES:
        raise Refused(ParseFailure("too_large", f"more than {MAX_ENTRIES} files in the container"))
    return container


def decide_container_type(
    names: Collection[str], declared: bytes, claimed: str | None
) -> str | ParseFailure:
    """DOCX, ODT, or why another zip is refused.

    Args:
        names: Entries of the zip directory.
        declared: Content of the entry `mimetype`, empty without one.
        claimed: The supported type that the file's name promises.
    """
    if declared.strip() in (ODT.encode(), ODT.encode() + b"-template"):
        return ODT
    if "[Content_Types].xml" in names and "word/document.xml" in names:
        return DOCX
    if claimed is None:
        return ParseFailure("unsupported_type", "zip container of another kind")
    return ParseFailure(
        "type_mismatch", f"the name promises {claimed}, the bytes are a zip of another kind"
    )


def read_part(container: zipfile.ZipFile, name: str, limit: int = MAX_PART_BYTES) -> bytes:
    """One entry, inflated; empty when there is none of that name.

    Raises:
        Refused: too_large, encrypted or unreadable.
    """
    if name not in container.NameToInfo:
        return b""
    info = container.getinfo(name)
    if info.flag_bits & 1:
        raise Refused(ParseFailure("encrypted", "the container's entries need a password"))
    try:
        with container.open(info) as stream:
            content = stream.read(limit + 1)
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError) as error:
        raise Refused(ParseFailure("unreadable", "a part of the container is damaged")) from error
    if len(content) > limit:
        raise Refused(
            ParseFailure("too_large", f"a part of the container inflates beyond {limit} bytes")
        )
    return content


def parse_xml(content: bytes) -> etree._Element:
    """The root of a part's XML.

    Raises:
        Refused: unreadable when it is not well formed or nests absurdly.
    """
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False
    )
    try:
        return etree.fromstring(content, parser)
    except (etree.XMLSyntaxError, ValueError) as error:
        raise Refused(ParseFailure("unreadable", "a part's XML is not well formed")) from error
