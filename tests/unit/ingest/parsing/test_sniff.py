"""The table of names and first bytes."""

from __future__ import annotations

import pytest

from pipeline_assets.ingest.parsing import sniff
from pipeline_assets.ingest.parsing.model import DOCX, HTML, ODT, PDF, PLAIN, ParseFailure

PDF_HEAD = b"%PDF-1.7\n%\xe2\xe3\xcf\xd3"
PNG_HEAD = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"
HTML_HEAD = b"<!DOCTYPE html>\n<html><head>"
TEXT_HEAD = "Grüße, plain text\n".encode()
NOISE = bytes(range(256))


@pytest.mark.parametrize(
    ("name", "head", "expected"),
    [
        pytest.param("a.pdf", PDF_HEAD, PDF, id="pdf"),
        pytest.param("A.PDF ", PDF_HEAD, PDF, id="upper case, trailing space"),
        pytest.param("a.txt", PDF_HEAD, PDF, id="pdf under a text name"),
        pytest.param("a", PDF_HEAD, PDF, id="pdf without extension"),
        pytest.param("a.docx", PDF_HEAD, PDF, id="pdf under another supported name"),
        pytest.param("a.pdf", b"\n\njunk\n" + PDF_HEAD, PDF, id="junk before the header"),
        pytest.param("a.txt", b"junk " + PDF_HEAD, PLAIN, id="text with a PDF header inside"),
        pytest.param("a.txt", b"The header %PDF-1.7 starts it", PLAIN, id="text about PDF"),
        pytest.param("a.pdf", PNG_HEAD, "type_mismatch", id="png as pdf"),
        pytest.param("a.pdf", HTML_HEAD, "type_mismatch", id="html as pdf"),
        pytest.param("a.pdf", b"../other/file.pdf", "type_mismatch", id="text as pdf"),
        pytest.param("a.pdf", NOISE, "unreadable", id="noise as pdf"),
        pytest.param("a.pdf", b"", "empty", id="no bytes"),
        pytest.param("a.png", PNG_HEAD, "unsupported_type", id="png"),
        pytest.param("a.doc", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "unsupported_type", id="doc"),
        pytest.param("a.docx", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "type_mismatch", id="doc as x"),
        pytest.param("a.docx", b"PK\x03\x04rest", sniff.ZIP, id="docx is a zip to look into"),
        pytest.param("a.pdf", b"PK\x03\x04rest", sniff.ZIP, id="zip under any name"),
        pytest.param("a.docx", TEXT_HEAD, "type_mismatch", id="text as docx"),
        pytest.param("a.odt", HTML_HEAD, "type_mismatch", id="html as odt"),
        pytest.param("a.html", HTML_HEAD, HTML, id="html"),
        pytest.param("a.htm", b"just words", HTML, id="html fragment by name"),
        pytest.param("a.txt", HTML_HEAD, PLAIN, id="html source saved as text"),
        pytest.param("README", TEXT_HEAD, PLAIN, id="text without extension"),
        pytest.param(".hidden", TEXT_HEAD, PLAIN, id="hidden file without extension"),
        pytest.param("page", b"<!-- c --> <HTML>", HTML, id="html without extension"),
        pytest.param("a.csv", TEXT_HEAD, "unsupported_type", id="text of an unknown kind"),
        pytest.param("a.txt", b"BMW and MZ are names", PLAIN, id="words like a signature"),
        pytest.param("a.txt", NOISE, "not_a_document", id="noise as text"),
        pytest.param("a.html", NOISE, "not_a_document", id="noise as html"),
        pytest.param("a", NOISE, "unsupported_type", id="noise without a name"),
        pytest.param("a.txt", "hé".encode("utf-16"), PLAIN, id="utf-16 text"),
        pytest.param("a.bin", b"\x7fELF\x02\x01", "unsupported_type", id="executable"),
    ],
)
def test_decide_media_type(name: str, head: bytes, expected: str) -> None:
    decided = sniff.decide_media_type(name, head)
    assert (decided.reason if isinstance(decided, ParseFailure) else decided) == expected


@pytest.mark.parametrize(
    ("name", "claimed"),
    [
        ("manual.PDF", PDF),
        ("manual.docx", DOCX),
        ("manual.odt", ODT),
        ("double.pdf.txt", PLAIN),
        ("no extension", None),
        ("archive.zip", None),
        ("pdf", None),
    ],
)
def test_claimed_media_type(name: str, claimed: str | None) -> None:
    assert sniff.claimed_media_type(name) == claimed
