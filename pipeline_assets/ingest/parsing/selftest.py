"""Proves that a worker can read at all, before it judges anybody's document.

A missing picture library or OCR model would otherwise turn good documents into failures.
"""

from __future__ import annotations

import zlib
from typing import Final

from PIL import Image, ImageDraw, ImageFont

from pipeline_assets.ingest.parsing.document import parse_document
from pipeline_assets.ingest.parsing.model import PDF, ParsedDocument, ParseLimits
from pipeline_assets.ingest.parsing.ocr import OcrBroken, OcrEngine, installed
from pipeline_assets.ingest.parsing.reading import ReadContext

KNOWN_TEXT: Final = "Known page 123"


class SelfTestError(RuntimeError):
    """A reader does not read what it must; no document may be judged. Says what to repair."""


def known_pdf() -> bytes:
    """A PDF of one page with `KNOWN_TEXT`, made here byte by byte."""
    content = zlib.compress(f"BT /F1 24 Tf 40 100 Td ({KNOWN_TEXT}) Tj ET".encode())
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 200]/Contents 4 0 R"
        b"/Resources<</Font<</F1 5 0 R>>>>>>",
        b"<</Filter/FlateDecode/Length %d>>stream\n%b\nendstream" % (len(content), content),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ]
    out = bytearray(b"%PDF-1.4\n")
    positions: list[int] = []
    for number, body in enumerate(objects, start=1):
        positions.append(len(out))
        out += b"%d 0 obj\n%b\nendobj\n" % (number, body)
    xref = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % position for position in positions)
    out += b"trailer\n<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, xref)
    return bytes(out)


def known_picture() -> Image.Image:
    """`KNOWN_TEXT` drawn in black on white."""
    image = Image.new("L", (600, 160), 255)
    font = ImageFont.load_default(size=48)
    ImageDraw.Draw(image).text((60, 50), KNOWN_TEXT, font=font, fill=0)
    return image


def run_self_test(limits: ParseLimits) -> OcrEngine | None:
    """Parses the known PDF and reads the known picture.

    Returns:
        The OCR engine, ready; None when the extra `ocr` is not installed.

    Raises:
        SelfTestError: Something that is installed does not work.
    """
    context = ReadContext(limits, True, lambda: None, None, lambda: 0.0)
    outcome = parse_document(known_pdf(), context, claimed=PDF)
    if not isinstance(outcome, ParsedDocument) or outcome.text != KNOWN_TEXT:
        raise SelfTestError("PDFium does not read a known page; reinstall pypdfium2")
    if not outcome.thumbnail:
        raise SelfTestError("PDFium and Pillow draw no picture of a known page; reinstall both")
    if not installed():
        return None
    try:
        engine = OcrEngine()
        found = engine.read(
            known_picture(), script="Latin", languages=("en",), seconds=limits.cpu_seconds
        ).text
    except OcrBroken as error:
        raise SelfTestError(str(error)) from error
    if " ".join(found.split()) != KNOWN_TEXT:
        raise SelfTestError("OCR does not read a known picture; reinstall tallybook[ocr]")
    return engine
