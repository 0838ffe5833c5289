"""Reads HTML: visible text in document order as one page. Nothing is fetched or executed."""

from __future__ import annotations

import re
from typing import Final

from selectolax.lexbor import LexborHTMLParser, LexborNode

from pipeline_assets.ingest.parsing.charset import decode
from pipeline_assets.ingest.parsing.reading import ReadContext, Reading, guard_text_size

_DECLARATION_BYTES: Final = 2048
_DECLARED: Final = re.compile(
    rb"<meta[^>]+charset\s*=\s*[\"']?\s*([\w.:-]+)|<\?xml[^>]+encoding\s*=\s*[\"']([\w.:-]+)", re.I
)
_LEFT_OUT: Final = frozenset(
    "head script style nav noscript template svg math iframe object select datalist canvas".split()
)
_BLOCKS: Final = frozenset(
    "address article aside blockquote body caption center dd details div dl dt fieldset figcaption "
    "figure footer form h1 h2 h3 h4 h5 h6 header hr legend li main ol p pre section summary table "
    "tbody tfoot thead tr ul".split()
)
_CELLS: Final = frozenset({"td", "th"})
_WHITE_SPACE: Final = re.compile(r"[ \t\r\n\f]+")


def read_html(data: bytes, context: ReadContext) -> Reading:
    """Text of an HTML page; its `<title>` goes first when the body prints no first heading.

    Raises:
        Refused: too_large.
    """
    found = _DECLARED.search(data[:_DECLARATION_BYTES])
    declared = (found[1] or found[2]).decode("ascii", "replace") if found else None
    source, guessed = decode(data, declared)
    guard_text_size(len(source), context.limits)
    tree = LexborHTMLParser(source)
    text, has_heading = _visible_text(tree.body)
    title = tree.css_first("head title")
    if title is not None and not has_heading:
        text = f"{_WHITE_SPACE.sub(' ', title.text()).strip()}\n{text}"
    reading = Reading([(text, "text")], 1)
    if guessed:
        reading.notes.add("charset_guessed")
    return reading


def _visible_text(body: LexborNode | None) -> tuple[str, bool]:
    """Text of the body, and whether it has a first-level heading with text.

    The walk keeps its own stack: pages may nest deeper than Python recurses.
    """
    pieces: list[str] = []
    has_heading = False
    # Entries: a node to enter, or text to write when its element ends.
    stack: list[LexborNode | str] = [body] if body is not None else []
    preformatted = 0
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            preformatted -= item == _END_OF_PRE
            pieces.append("\n" if item == _END_OF_PRE else item)
            continue
        if item.is_text_node:
            raw = item.text_content or ""
            pieces.append(raw if preformatted else _WHITE_SPACE.sub(" ", raw))
            continue
        tag = item.tag
        if not item.is_element_node or tag in _LEFT_OUT or "hidden" in item.attributes:
            continue
        if tag == "br":
            pieces.append("\n")
            continue
        if tag == "pre":
            preformatted += 1
            pieces.append("\n")
            stack.append(_END_OF_PRE)
        elif tag in _BLOCKS:
            pieces.append("\n")
            stack.append("\n")
        elif tag in _CELLS:
            stack.append("\t")
        has_heading |= tag == "h1" and bool(item.text().strip())
        children: list[LexborNode] = []
        child = item.child
        while child is not None:
            children.append(child)
            child = child.next
        stack.extend(reversed(children))
    return "".join(pieces), has_heading


_END_OF_PRE: Final = "\n\x00"
"""Marks the end of preformatted text on the stack; text nodes cannot hold a NUL."""
