"""Every reader through `parse_document`: what good, odd and hostile bytes give."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, field

import docx
import pypdfium2
import pytest
from docx.enum.text import WD_BREAK
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from reportlab.lib.pdfencrypt import StandardEncryption
from reportlab.lib.utils import ImageReader
from reportlab.pdfgen.canvas import Canvas

from pipeline_assets.ingest.parsing.document import parse_document
from pipeline_assets.ingest.parsing.model import (
    DOCX,
    HTML,
    NO_OCR_DETAIL,
    ODT,
    PDF,
    PLAIN,
    ParsedDocument,
    ParseFailure,
    ParseLimits,
    ParseOutcome,
)
from pipeline_assets.ingest.parsing.ocr import OcrText
from pipeline_assets.ingest.parsing.pdf import was_repaired
from pipeline_assets.ingest.parsing.reading import PictureText, ReadContext
from pipeline_assets.ingest.parsing.rendering import MAX_PIXELS, render_scale
from pipeline_assets.ingest.parsing.selftest import KNOWN_TEXT, known_pdf

SMALL = ParseLimits(max_pages=5, max_text_chars=5_000, ocr_pages=2)


@dataclass
class FakeOcr:
    """Says the same of every picture and remembers how it was asked."""

    answer: OcrText
    asked: list[tuple[str | None, tuple[str, ...]]] = field(default_factory=list)

    def read(
        self,
        image: Image.Image,
        *,
        script: str | None,
        languages: Sequence[str],
        seconds: float,
    ) -> OcrText:
        self.asked.append((script, tuple(languages)))
        return self.answer


def parse(
    data: bytes,
    claimed: str | None,
    *,
    limits: ParseLimits = SMALL,
    ocr: PictureText | None = None,
    render: bool = True,
    seconds: float = 60.0,
) -> ParseOutcome:
    context = ReadContext(limits, render, lambda: None, ocr, lambda: seconds)
    return parse_document(data, context, claimed=claimed)


def parsed(data: bytes, claimed: str | None, **options: object) -> ParsedDocument:
    outcome = parse(data, claimed, **options)  # pyright: ignore[reportArgumentType]
    assert isinstance(outcome, ParsedDocument), outcome
    return outcome


def refused(data: bytes, claimed: str | None, **options: object) -> str:
    outcome = parse(data, claimed, **options)  # pyright: ignore[reportArgumentType]
    assert isinstance(outcome, ParseFailure), outcome
    return outcome.reason


def pdf(
    *pages: str | None,
    size: tuple[float, float] = (300, 400),
    password: tuple[str, str] | None = None,
) -> bytes:
    """A PDF; a page of None is a picture without text."""
    out = io.BytesIO()
    encryption = StandardEncryption(password[0], ownerPassword=password[1]) if password else None
    canvas = Canvas(out, pagesize=size, invariant=1, encrypt=encryption)
    for page in pages:
        if page is None:
            picture = Image.new("L", (60, 60), 255)
            picture.paste(0, (10, 10, 50, 40))
            canvas.drawImage(ImageReader(picture), 50, 50, 200, 200)
        else:
            for row, line in enumerate(page.split("\n")):
                canvas.drawString(20, size[1] - 40 - 14 * row, line)
        canvas.showPage()
    canvas.save()
    return out.getvalue()


def zipped(**members: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as container:
        for name, content in members.items():
            container.writestr(name, content)
    return out.getvalue()


# --- PDF


def test_pdf_pages_with_offsets_and_thumbnail() -> None:
    document = parsed(pdf("First page", "Second page\nof two"), PDF)
    assert [page.text for page in document.pages] == ["First page", "Second page\nof two"]
    assert [page.offset for page in document.pages] == [0, 11]
    assert {page.origin for page in document.pages} == {"text"}
    assert (document.page_count, document.partial, document.notes) == (2, False, ())
    assert document.thumbnail is not None
    assert max(Image.open(io.BytesIO(document.thumbnail)).size) <= SMALL.thumbnail_px


def test_parsing_twice_gives_the_same_bytes() -> None:
    data = pdf("Some text of a page", None)
    assert parse(data, PDF) == parse(data, PDF)


def test_the_known_page_of_the_self_test_is_sound() -> None:
    assert not was_repaired(known_pdf())
    assert parsed(known_pdf(), PDF).text == KNOWN_TEXT


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        pytest.param(pdf("secret", password=("user", "owner")), "encrypted", id="user password"),
        pytest.param(b"%PDF-1.7\nnothing usable", "unreadable", id="no objects"),
        pytest.param(pdf("cut " * 50)[:300], "unreadable", id="cut short"),
        pytest.param(pdf("", ""), "no_text", id="blank pages"),
        pytest.param(pdf(*["many words on this line"] * 4, "x" * 5_000), "too_large", id="long"),
    ],
)
def test_pdf_that_has_no_pages_to_give(data: bytes, reason: str) -> None:
    assert refused(data, PDF) == reason


def test_pdf_with_an_empty_user_password_is_read() -> None:
    assert parsed(pdf("public", password=("", "owner")), PDF).text == "public"


def test_pdf_with_a_damaged_cross_reference_says_so() -> None:
    data = pdf("still here")
    moved = data.replace(b"startxref\n", b"startxref\n9")
    document = parsed(moved, PDF)
    assert (document.text, document.notes, document.partial) == ("still here", ("repaired",), False)
    cut = parsed(data[: data.rindex(b"startxref")], PDF)
    assert (cut.text, cut.notes, cut.partial) == ("still here", ("repaired",), True)


def test_pdf_pages_beyond_the_bound_are_counted_and_not_read() -> None:
    document = parsed(pdf("one", "two", "three", "four", "five", "six", "seven", "eight"), PDF)
    assert (document.page_count, len(document.pages), document.partial) == (8, 5, True)
    assert document.notes == ("pages_bounded",)


@pytest.mark.parametrize(
    "box",
    [
        pytest.param(b"[0 0 0 0]", id="no area"),
        pytest.param(b"[0 0 300 0]", id="no height"),
        pytest.param(b"[0 0 2147483647 2147483647]", id="absurd"),
        pytest.param(b"[0 0 1 14400000]", id="a line"),
        pytest.param(b"[a b c d]", id="no numbers"),
    ],
)
def test_pdf_with_an_odd_page_size_keeps_its_text(box: bytes) -> None:
    data = known_pdf().replace(b"[0 0 300 200]", box)
    assert KNOWN_TEXT in parsed(data, PDF).text


# PDFium gives page sizes in single precision.
@given(st.floats(width=32, allow_nan=False), st.floats(width=32, allow_nan=False))
def test_rendering_is_bounded(width: float, height: float) -> None:
    scale = render_scale(width, height, 200 / 72)
    assert 0 <= scale <= 200 / 72
    if scale:
        assert width * scale * height * scale <= MAX_PIXELS * 1.001


def test_attachments_stay_closed() -> None:
    document = pypdfium2.PdfDocument(pdf("cover letter"))
    attachment = document.new_attachment("inside.txt")
    attachment.set_data(b"attached words")
    out = io.BytesIO()
    document.save(out)
    document.close()
    result = parsed(out.getvalue(), PDF)
    assert "attachments_ignored" in result.notes
    assert "attached" not in result.text


def test_a_download_stamp_is_left_out() -> None:
    stamp = "Downloaded from www.example.org manual archive"
    words = ["Installation", "Operation", "Maintenance", "Disposal"]
    document = parsed(pdf(*(f"{word}\n{stamp}" for word in words)), PDF)
    assert [page.text for page in document.pages] == words
    assert document.notes == ("watermark_removed",)


# --- OCR of PDF pages


def test_pictures_are_read_and_blank_pages_are_not() -> None:
    ocr = FakeOcr(OcrText("Read from a picture"))
    document = parsed(pdf("Own text", None, ""), PDF, ocr=ocr)
    assert [(page.text, page.origin) for page in document.pages] == [
        ("Own text", "text"),
        ("Read from a picture", "ocr"),
        ("", "none"),
    ]
    assert (document.notes, document.partial, len(ocr.asked)) == (("ocr",), False, 1)


def test_ocr_is_bounded_by_pages() -> None:
    ocr = FakeOcr(OcrText("Words"))
    document = parsed(pdf(None, None, None), PDF, ocr=ocr)
    assert [page.origin for page in document.pages] == ["ocr", "ocr", "none"]
    assert (document.notes, document.partial) == (("ocr", "ocr_bounded"), True)


def test_ocr_is_bounded_by_time() -> None:
    document = parsed(pdf("Own text", None), PDF, ocr=FakeOcr(OcrText("Words")), seconds=0.5)
    assert (document.notes, document.partial) == (("ocr_time_bounded",), True)


def test_a_stamp_alone_is_no_text() -> None:
    class ReadsStampToo(FakeOcr):
        def read(self, image: Image.Image, **_: object) -> OcrText:  # pyright: ignore[reportIncompatibleMethodOverride]
            return OcrText("Timing diagram\nTHIS MATERIAL IS  COPYRIGHTED")

    pages = ["This Material Is Copyrighted"] * 3
    limits = ParseLimits(ocr_pages=5)
    document = parsed(pdf(*pages), PDF, ocr=ReadsStampToo(OcrText("")), limits=limits)
    assert [(page.text, page.origin) for page in document.pages] == [("Timing diagram", "ocr")] * 3
    assert document.notes == ("ocr", "watermark_removed")


def test_the_text_so_far_tells_how_to_read_the_next_picture() -> None:
    ocr = FakeOcr(OcrText("", script_supported=False))
    text = "Vor dem Anschluss an das Stromnetz\nbitte die Spannung genau prüfen\n" * 3
    document = parsed(pdf(text, None), PDF, ocr=ocr)
    assert ocr.asked == [("Latin", ("de",))]
    assert (document.notes, document.partial) == (("ocr_script_unsupported",), True)


def test_without_ocr_a_picture_is_missing_text_not_no_text() -> None:
    document = parsed(pdf("Own text", None), PDF)
    assert (document.notes, document.partial) == (("ocr_unavailable",), True)
    assert parse(pdf(None), PDF) == ParseFailure("no_text", NO_OCR_DETAIL)


def test_without_rendering_the_text_is_still_there() -> None:
    ocr = FakeOcr(OcrText("Words"))
    document = parsed(pdf("Own text", None), PDF, ocr=ocr, render=False)
    assert (document.text, document.thumbnail, document.partial) == ("Own text\f", None, True)
    assert (document.notes, ocr.asked) == (("render_failed",), [])


@settings(max_examples=60)
@given(st.data())
def test_damaged_pdf_has_one_outcome(data: st.DataObject) -> None:
    good = pdf("Words of a page", "More words")
    raw = bytearray(good)
    for _ in range(data.draw(st.integers(1, 8))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    end = data.draw(st.integers(20, len(raw)))
    outcome = parse(bytes(raw[:end]), PDF)
    assert isinstance(outcome, ParsedDocument | ParseFailure)


# --- DOCX


def word(build: object = None, header: str = "") -> bytes:
    document = docx.Document()
    if header:
        document.sections[0].header.paragraphs[0].text = header
    document.add_paragraph("Opening words")
    if callable(build):
        build(document)
    out = io.BytesIO()
    document.save(out)
    return out.getvalue()


def test_docx_header_breaks_and_tables() -> None:
    def build(document: docx.document.Document) -> None:  # pyright: ignore[reportAttributeAccessIssue]
        table = document.add_table(rows=1, cols=2)
        table.rows[0].cells[0].text = "Weight"
        table.rows[0].cells[1].text = "2 kg"
        document.add_paragraph("Before").add_run().add_break(WD_BREAK.PAGE)
        document.add_paragraph("After\tthe break")

    document = parsed(word(build, header="Title in the header"), DOCX)
    assert [page.text for page in document.pages] == [
        "Title in the header\nOpening words\nWeight 2 kg\nBefore",
        "After the break",
    ]
    assert document.media_type == DOCX
    assert document.thumbnail is not None


W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
MC = 'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"'


def raw_docx(body: str, doctype: str = "") -> bytes:
    xml = f'<?xml version="1.0"?>{doctype}<w:document {W} {MC}><w:body>{body}</w:body></w:document>'
    return zipped(**{"[Content_Types].xml": b"<Types/>", "word/document.xml": xml.encode()})


@pytest.mark.parametrize(
    ("body", "pages"),
    [
        pytest.param(
            "<w:p><w:r><mc:AlternateContent><mc:Choice><w:txbxContent><w:p><w:r><w:t>Boxed</w:t>"
            "</w:r></w:p></w:txbxContent></mc:Choice><mc:Fallback><w:t>Boxed</w:t></mc:Fallback>"
            "</mc:AlternateContent></w:r></w:p>",
            ["Boxed"],
            id="text box once",
        ),
        pytest.param(
            "<w:p><w:del><w:r><w:delText>gone</w:delText></w:r></w:del><w:ins><w:r><w:t>here</w:t>"
            "</w:r></w:ins><w:r><w:instrText>PAGEREF</w:instrText></w:r></w:p>",
            ["here"],
            id="deleted text and field codes",
        ),
        pytest.param(
            '<w:p><w:r><w:t>one</w:t><w:br w:type="page"/></w:r><w:r><w:lastRenderedPageBreak/>'
            "<w:t>two</w:t></w:r></w:p>",
            ["one", "two"],
            id="one break told twice",
        ),
        pytest.param(
            "<w:p><w:pPr><w:tabs><w:tab/></w:tabs></w:pPr><w:r><w:t>A</w:t><w:noBreakHyphen/>"
            "<w:t>1</w:t><w:br/><w:t>b</w:t></w:r></w:p><w:p><w:pPr><w:pageBreakBefore/></w:pPr>"
            "<w:r><w:t>c</w:t></w:r></w:p>",
            ["A-1\nb", "c"],
            id="tab stops, hyphen, page before",
        ),
    ],
)
def test_docx_markup(body: str, pages: list[str]) -> None:
    assert [page.text for page in parsed(raw_docx(body), DOCX).pages] == pages


LAUGHS = (
    '<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;"><!ENTITY c SYSTEM "file:///etc/passwd">]>'
)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        pytest.param(raw_docx("<w:p><w:r><w:t>" + "x" * 5_001 + "</w:t></w:r></w:p>"), "too_large",
                     id="text"),
        pytest.param(raw_docx(" " * (49 * 2**20)), "too_large", id="zip bomb"),
        pytest.param(raw_docx("<w:p>" * 300 + "</w:p>" * 300), "unreadable", id="deep"),
        pytest.param(raw_docx("<w:p>"), "unreadable", id="not well formed"),
        pytest.param(raw_docx(""), "no_text", id="no text"),
        pytest.param(word()[:-40], "unreadable", id="cut short"),
        pytest.param(zipped(**{"a.txt": b"x"}), "type_mismatch", id="another zip"),
        pytest.param(
            b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + "EncryptedPackage".encode("utf-16-le"),
            "encrypted",
            id="password",
        ),
    ],
)  # fmt: skip
def test_docx_that_has_no_pages_to_give(data: bytes, reason: str) -> None:
    assert refused(data, DOCX) == reason


def test_entities_are_neither_expanded_nor_fetched() -> None:
    body = "<w:p><w:r><w:t>safe</w:t></w:r><w:r><w:t>&b;&c;</w:t></w:r></w:p>"
    assert parsed(raw_docx(body, LAUGHS), DOCX).text == "safe"


# --- ODT

ODF = "urn:oasis:names:tc:opendocument:xmlns:"
NAMES = (
    " ".join(
        f'xmlns:{name}="{ODF}{name}:1.0"' for name in ("office", "text", "table", "style", "draw")
    )
    + f' xmlns:fo="{ODF}xsl-fo-compatible:1.0"'
)


def raw_odt(body: str, header: str = "", manifest: str = "") -> bytes:
    content = (
        f"<office:document-content {NAMES}><office:automatic-styles>"
        '<style:style style:name="P1"><style:paragraph-properties fo:break-before="page"/>'
        "</style:style></office:automatic-styles>"
        f"<office:body><office:text>{body}</office:text></office:body></office:document-content>"
    )
    styles = (
        f"<office:document-styles {NAMES}><office:master-styles><style:master-page><style:header>"
        f"<text:p>{header}</text:p></style:header></style:master-page></office:master-styles>"
        "</office:document-styles>"
    )
    members = {"mimetype": ODT.encode(), "content.xml": content.encode()}
    if header:
        members["styles.xml"] = styles.encode()
    if manifest:
        members["META-INF/manifest.xml"] = manifest.encode()
    return zipped(**members)


@pytest.mark.parametrize(
    ("data", "pages"),
    [
        pytest.param(
            raw_odt(
                "<text:h>Head</text:h><text:p>a<text:s text:c='3'/>b<text:tab/><text:span>c"
                "</text:span>d<text:line-break/>e</text:p>"
            ),
            ["Head\na b cd\ne"],
            id="inline marks",
        ),
        pytest.param(
            raw_odt(
                "<text:p>one</text:p><text:p text:style-name='P1'>two</text:p>"
                "<text:p>end<text:soft-page-break/>three</text:p>"
            ),
            ["one", "two\nend", "three"],
            id="page breaks",
        ),
        pytest.param(
            raw_odt(
                "<table:table><table:table-row><table:table-cell><text:p>Weight</text:p>"
                "</table:table-cell><table:table-cell><text:p>2 kg</text:p></table:table-cell>"
                "</table:table-row></table:table>",
                header="Running head",
            ),
            ["Running head\nWeight 2 kg"],
            id="table and header",
        ),
        pytest.param(
            raw_odt(
                "<text:tracked-changes><text:p>gone</text:p></text:tracked-changes><text:p>a"
                "<office:annotation><text:p>comment</text:p></office:annotation>b</text:p>"
                "<text:p><draw:frame><draw:text-box><text:p>Boxed</text:p></draw:text-box>"
                "</draw:frame></text:p>"
            ),
            ["ab\nBoxed"],
            id="what is left out and what is not",
        ),
    ],
)
def test_odt(data: bytes, pages: list[str]) -> None:
    document = parsed(data, ODT)
    assert [page.text for page in document.pages] == pages
    assert document.media_type == ODT


def test_odt_with_a_password() -> None:
    manifest = (
        f'<m:manifest xmlns:m="{ODF}manifest:1.0"><m:file-entry><m:encryption-data/>'
        "</m:file-entry></m:manifest>"
    )
    assert refused(raw_odt("", manifest=manifest), ODT) == "encrypted"


def test_a_zip_under_no_supported_name() -> None:
    assert refused(zipped(**{"a.txt": b"x"}), None) == "unsupported_type"
    assert parsed(word(), None).notes == ("extension_ignored",)


# --- HTML


@pytest.mark.parametrize(
    ("source", "text"),
    [
        pytest.param(
            "<title>Window</title><body><h1>Head</h1><p>a <b>b</b>\n c<br>d</p>",
            "Head\n\na b c\nd",
            id="heading stands for the title",
        ),
        pytest.param(
            "<title>Only  title</title><body><h2>Part</h2>", "Only title\n\nPart", id="no h1"
        ),
        pytest.param(
            "<body><nav>menu</nav><script>x()</script><style>p{}</style><p hidden>h</p>text",
            "text",
            id="what is not seen",
        ),
        pytest.param(
            "<table><tr><td>Weight<td>2&nbsp;kg<tr><td>Size</table>",
            "Weight 2 kg\n\nSize",
            id="table rows",
        ),
        pytest.param("<pre>a\n  b</pre>", "a\nb", id="preformatted lines"),
        pytest.param("<p>open<div>never closed<ul><li>x<li>y", "open\n\nnever closed\n\nx\n\ny",
                     id="unclosed"),
    ],
)  # fmt: skip
def test_html(source: str, text: str) -> None:
    assert parsed(source.encode(), HTML).text == text


def test_html_in_a_declared_charset() -> None:
    data = '<meta charset="ISO-8859-1"><h1>Référence</h1>'.encode("latin-1")
    assert parsed(data, HTML).text == "Référence"


def test_html_nested_deeper_than_python_recurses() -> None:
    depth = 20_000
    data = ("<div>" * depth + "bottom" + "</div>" * depth).encode()
    limits = ParseLimits()
    assert parsed(data, HTML, limits=limits).text == "bottom"


@given(st.text())
def test_any_html_has_one_outcome(source: str) -> None:
    assert isinstance(parse(source.encode("utf-8", "replace"), HTML), ParsedDocument | ParseFailure)


# --- plain text


@pytest.mark.parametrize(
    ("data", "pages", "notes"),
    [
        pytest.param(b"one\ftwo\n\f\n", ["one", "two"], (), id="form feeds"),
        pytest.param("Größe".encode("utf-16"), ["Größe"], (), id="utf-16"),
        pytest.param("Größe".encode("cp1252"), ["Größe"], ("charset_guessed",), id="Windows-1252"),
    ],
)
def test_plain(data: bytes, pages: list[str], notes: tuple[str, ...]) -> None:
    document = parsed(data, PLAIN)
    assert ([page.text for page in document.pages], document.notes) == (pages, notes)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        pytest.param(b"", "empty", id="empty"),
        pytest.param(b" \n\f\n ", "no_text", id="white space"),
        pytest.param(bytes(range(256)) * 4, "not_a_document", id="noise"),
        pytest.param(b"text " * 850 + b"\x01\x02\x03" * 50, "not_a_document", id="late noise"),
        pytest.param(b"x" * 5_001, "too_large", id="long"),
    ],
)
def test_plain_that_has_no_pages_to_give(data: bytes, reason: str) -> None:
    assert refused(data, PLAIN) == reason


@given(st.binary(max_size=3_000), st.sampled_from([PDF, DOCX, ODT, HTML, PLAIN, None]))
def test_any_bytes_have_one_outcome(data: bytes, claimed: str | None) -> None:
    assert isinstance(parse(data, claimed), ParsedDocument | ParseFailure)
