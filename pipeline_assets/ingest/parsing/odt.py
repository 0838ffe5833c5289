"""Reads ODT: the first page style's header, then body text, tables and text boxes in order.

Straight from the zip and its XML, so that inflation is bounded. Comments, tracked deletions and
footnotes are left out.
"""

from __future__ import annotations

import zipfile
from collections.abc import Collection
from typing import Final

import lxml.etree as etree

from pipeline_assets.ingest.parsing.containers import open_container, parse_xml, read_part
from pipeline_assets.ingest.parsing.flow import Flow, with_header
from pipeline_assets.ingest.parsing.model import ParseFailure
from pipeline_assets.ingest.parsing.reading import ReadContext, Reading, Refused

_NS: Final = "urn:oasis:names:tc:opendocument:xmlns:"
_TEXT: Final = f"{{{_NS}text:1.0}}"
_OFFICE: Final = f"{{{_NS}office:1.0}}"
_STYLE: Final = f"{{{_NS}style:1.0}}"
_TABLE: Final = f"{{{_NS}table:1.0}}"
_FO: Final = f"{{{_NS}xsl-fo-compatible:1.0}}"
_MANIFEST: Final = f"{{{_NS}manifest:1.0}}"
_LEFT_OUT: Final = frozenset(
    {_TEXT + "tracked-changes", _TEXT + "note", _OFFICE + "annotation", _OFFICE + "forms"}
)
_PARAGRAPHS: Final = frozenset({_TEXT + "p", _TEXT + "h"})
_MAX_SPACES: Final = 100


def read_odt(data: bytes, context: ReadContext) -> Reading:
    """Text of an ODT file, divided at page breaks, explicit ones and those of the last layout.

    Raises:
        Refused: unreadable, encrypted or too_large.
    """
    with open_container(data) as container:
        _refuse_encrypted(container)
        root = parse_xml(read_part(container, "content.xml"))
        body = root.find(f"{_OFFICE}body/{_OFFICE}text")
        if body is None:
            raise Refused(ParseFailure("unreadable", "content.xml has no text body"))
        flow = Flow(context.limits)
        _write(body, flow, _styles_that_break(root))
        pages = with_header(flow.pages(), _first_header(container, context))
    return Reading([(page, "text") for page in pages], len(pages))


def _refuse_encrypted(container: zipfile.ZipFile) -> None:
    manifest = read_part(container, "META-INF/manifest.xml")
    if manifest and parse_xml(manifest).find(f".//{_MANIFEST}encryption-data") is not None:
        raise Refused(ParseFailure("encrypted", "the container's parts need a password"))


def _write(root: etree._Element, flow: Flow, breaking: Collection[str]) -> None:
    """Depth-first without recursion; text stands before, inside and after elements."""
    walker = etree.iterwalk(root, events=("start", "end", "comment", "pi"))
    for event, element in walker:
        if event == "start" and element.tag in _LEFT_OUT:
            # Its end is still reported, and with it the text that follows it.
            walker.skip_subtree()
        elif event == "start":
            if element.tag in _PARAGRAPHS and element.get(_TEXT + "style-name", "") in breaking:
                flow.break_page()
            _write_start(element, flow)
        else:
            _write_end(element, flow)
            if element is not root and _in_paragraph(element):
                flow.write(_flat(element.tail))


def _write_start(element: etree._Element, flow: Flow) -> None:
    tag = element.tag
    if tag == _TEXT + "soft-page-break":
        flow.break_page()
    elif tag == _TEXT + "line-break":
        flow.write("\n")
    elif tag == _TEXT + "tab":
        flow.write("\t")
    elif tag == _TEXT + "s":
        count = element.get(_TEXT + "c", "1")
        flow.write(" " * (min(int(count), _MAX_SPACES) if count.isdecimal() else 1))
    if tag in _PARAGRAPHS or _in_paragraph(element):
        flow.write(_flat(element.text))


def _write_end(element: etree._Element, flow: Flow) -> None:
    if element.tag in _PARAGRAPHS:
        flow.write(" " if _in_cell(element) else "\n")
    elif element.tag == _TABLE + "table-cell":
        flow.write("\t")
    elif element.tag == _TABLE + "table-row":
        flow.write("\n")


def _flat(text: str | None) -> str:
    """White space in the XML is layout of the file, not of the text."""
    return (text or "").replace("\n", " ")


def _in_paragraph(element: etree._Element) -> bool:
    """Whether the element's tail is text: its parent is a paragraph or a span in one."""
    parent = element.getparent()
    return (
        parent is not None
        and isinstance(parent.tag, str)
        and parent.tag.startswith(_TEXT)
        and parent.tag not in (_TEXT + "list", _TEXT + "list-item", _TEXT + "section")
    )


def _in_cell(element: etree._Element) -> bool:
    parent = element.getparent()
    return parent is not None and parent.tag == _TABLE + "table-cell"


def _styles_that_break(root: etree._Element) -> frozenset[str]:
    return frozenset(
        style.get(_STYLE + "name", "")
        for style in root.iterfind(f"{_OFFICE}automatic-styles/{_STYLE}style")
        for properties in style.iterfind(_STYLE + "paragraph-properties")
        if properties.get(_FO + "break-before") == "page" or style.get(_STYLE + "master-page-name")
    )


def _first_header(container: zipfile.ZipFile, context: ReadContext) -> str:
    content = read_part(container, "styles.xml")
    if not content:
        return ""
    for header in parse_xml(content).iterfind(
        f"{_OFFICE}master-styles/{_STYLE}master-page/{_STYLE}header"
    ):
        flow = Flow(context.limits)
        _write(header, flow, ())
        return "\n".join(flow.pages())
    return ""
