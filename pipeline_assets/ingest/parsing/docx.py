"""Reads DOCX: the first section's header, then body text, tables and text boxes in order.

Straight from the zip and its XML, so that inflation is bounded. Footnotes, comments, deleted
text and field codes are left out.
"""

from __future__ import annotations

import posixpath
import zipfile
from typing import Final

import lxml.etree as etree

from pipeline_assets.ingest.parsing.containers import open_container, parse_xml, read_part
from pipeline_assets.ingest.parsing.flow import Flow, with_header
from pipeline_assets.ingest.parsing.model import ParseFailure
from pipeline_assets.ingest.parsing.reading import ReadContext, Reading, Refused

_W: Final = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_STRICT_W: Final = "http://purl.oclc.org/ooxml/wordprocessingml/main"
_R: Final = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
_STRICT_R: Final = "http://purl.oclc.org/ooxml/officeDocument/relationships"
_MC: Final = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
_LEFT_OUT: Final = frozenset(
    {_W + "del", _W + "moveFrom", _W + "instrText", _W + "delText", _MC + "Fallback"}
)
_BODY: Final = "word/document.xml"


def read_docx(data: bytes, context: ReadContext) -> Reading:
    """Text of a DOCX file, divided at page breaks, explicit ones and those of the last layout.

    Raises:
        Refused: unreadable, encrypted or too_large.
    """
    with open_container(data) as container:
        root = _parse(read_part(container, _BODY))
        body = root.find(_W + "body")
        if body is None:
            raise Refused(ParseFailure("unreadable", "word/document.xml has no body"))
        flow = Flow(context.limits)
        _write(body, flow)
        pages = with_header(flow.pages(), _first_header(container, body, context))
    return Reading([(page, "text") for page in pages], len(pages))


def _parse(content: bytes) -> etree._Element:
    """XML with the names of the strict variant turned into the usual ones."""
    usual = content.replace(_STRICT_W.encode(), _W[1:-1].encode())
    return parse_xml(usual.replace(_STRICT_R.encode(), _R[1:-1].encode()))


def _write(root: etree._Element, flow: Flow) -> None:
    """Depth-first without recursion: documents may nest as deep as the XML parser allows."""
    walker = etree.iterwalk(root, events=("start", "end"))
    for event, element in walker:
        if event == "end":
            _write_end(element, flow)
        elif element.tag in _LEFT_OUT:
            walker.skip_subtree()
        else:
            _write_start(element, flow)


def _write_start(element: etree._Element, flow: Flow) -> None:
    tag = element.tag
    if tag == _W + "t":
        flow.write(element.text or "")
    elif tag in (_W + "tab", _W + "ptab") and _in_run(element):
        flow.write("\t")
    elif tag in (_W + "br", _W + "cr"):
        _write_break(element, flow)
    elif tag == _W + "noBreakHyphen":
        flow.write("-")
    elif tag == _W + "lastRenderedPageBreak" or _asks_for_page(element):
        flow.break_page()
    elif tag == _W + "txbxContent":
        flow.write("\n")


def _write_end(element: etree._Element, flow: Flow) -> None:
    if element.tag == _W + "p":
        flow.write(" " if _in_cell(element) else "\n")
    elif element.tag == _W + "tc":
        flow.write("\t")
    elif element.tag == _W + "tr":
        flow.write("\n")


def _write_break(element: etree._Element, flow: Flow) -> None:
    if element.get(_W + "type") == "page":
        flow.break_page()
    else:
        flow.write("\n")


def _in_run(element: etree._Element) -> bool:
    """A tab character; the same name inside paragraph properties defines a tab stop."""
    parent = element.getparent()
    return parent is not None and parent.tag == _W + "r"


def _in_cell(element: etree._Element) -> bool:
    parent = element.getparent()
    return parent is not None and parent.tag == _W + "tc"


def _asks_for_page(element: etree._Element) -> bool:
    if element.tag != _W + "pageBreakBefore":
        return False
    return element.get(_W + "val") not in ("0", "false", "off")


def _first_header(container: zipfile.ZipFile, body: etree._Element, context: ReadContext) -> str:
    """Header text of the first section: of its first page, then of the others."""
    section = body.find(f".//{_W}sectPr")
    if section is None:
        return ""
    kinds = ("first", "default") if section.find(_W + "titlePg") is not None else ("default",)
    wanted = {
        reference.get(_W + "type", "default"): reference.get(_R + "id")
        for reference in section.findall(_W + "headerReference")
    }
    targets = _relations(container)
    flow = Flow(context.limits)
    for kind in kinds:
        name = targets.get(wanted.get(kind) or "")
        content = read_part(container, name) if name else b""
        if content:
            _write(_parse(content), flow)
    return "\n".join(flow.pages())


def _relations(container: zipfile.ZipFile) -> dict[str, str]:
    """Relation id to entry name; targets outside the container are not followed."""
    content = read_part(container, "word/_rels/document.xml.rels")
    if not content:
        return {}
    return {
        str(relation.get("Id")): posixpath.normpath(
            posixpath.join("/word", str(relation.get("Target")))
        ).lstrip("/")
        for relation in parse_xml(content)
        if isinstance(relation.tag, str) and relation.get("TargetMode") != "External"
    }
