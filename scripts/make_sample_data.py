"""Makes the sample data: `data/manuals`, `data/truth.jsonl` and `data/catalogue.csv`.

The texts are in `scripts/sample_texts`, one file for each manual; here is only how they become
files. All makers and products are invented. The result is the same each time: no clock, no random
numbers, no system fonts. Only what libraries decide may differ between their releases: how
compressors pack the same bytes, and the pixels of drawn letters.

Run `python scripts/make_sample_data.py [FOLDER]`; FOLDER is `data` beside this folder by default.
"""

from __future__ import annotations

import csv
import html
import io
import json
import shutil
import sys
import textwrap
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any

import docx
import yaml
from docx.enum.text import WD_BREAK
from PIL import Image, ImageDraw, ImageFont
from reportlab.lib.pagesizes import A4
from reportlab.lib.pdfencrypt import StandardEncryption
from reportlab.lib.utils import ImageReader, simpleSplit
from reportlab.pdfgen.canvas import Canvas

REPOSITORY = Path(__file__).resolve().parent.parent
TEXTS = REPOSITORY / "scripts" / "sample_texts"
MADE_AT = datetime(2025, 1, 15, 12, 0, 0)
ZIP_DATE = (2025, 1, 15, 12, 0, 0)

EMPTY_FILE = "empty-upload.pdf"
PICTURE_FILE = "product-photo.png"
#: What opens the encrypted sample; a secret of nobody, so it may stand here.
SAMPLE_PASSWORD = "sample"  # noqa: S105

SCAN_DPI = 200
_MARGIN = 64.0


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and its paragraphs."""

    heading: str
    paragraphs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Manual:
    """The text of one manual and what is true about it."""

    file: str
    copies: tuple[str, ...]
    format: str
    language: str
    maker: str
    title_lines: tuple[str, ...]
    products: Mapping[str, str]
    expected: str
    running_head: str
    pages: tuple[tuple[Section, ...], ...]

    @property
    def title(self) -> str:
        """The printed title on one line."""
        return " ".join(self.title_lines)

    def sections(self) -> Iterator[Section]:
        """All sections, page by page."""
        for page in self.pages:
            yield from page


def read_manual(path: Path) -> Manual:
    """One file of `scripts/sample_texts`."""
    raw: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    products = {str(identifier): str(name) for identifier, name in raw["products"].items()}
    return Manual(
        file=raw["file"],
        copies=tuple(raw.get("copies", ())),
        format=raw["format"],
        language=raw["language"],
        maker=raw["maker"],
        title_lines=tuple(raw["title"]),
        products=MappingProxyType(products),
        expected=raw["expected"],
        running_head=raw.get("running_head", f"{next(iter(products))} {raw['title'][-1]}"),
        pages=tuple(
            tuple(Section(part["heading"], tuple(part["paragraphs"])) for part in page)
            for page in raw["pages"]
        ),
    )


def read_manuals() -> list[Manual]:
    """All manuals, in the order of their file names."""
    return sorted(map(read_manual, TEXTS.glob("*.yaml")), key=lambda manual: manual.file)


# Formats


def pdf(manual: Manual, encrypt: StandardEncryption | None = None) -> bytes:
    """A PDF with a text layer, in a font that every viewer has; uncompressed, so one form only."""
    buffer = io.BytesIO()
    canvas = Canvas(buffer, pagesize=A4, invariant=1, pageCompression=0, encrypt=encrypt)
    canvas.setTitle(manual.title)
    canvas.setAuthor(manual.maker)
    for number, page in enumerate(manual.pages, start=1):
        y = A4[1] - _MARGIN
        if number == 1:
            for line in manual.title_lines:
                y = _pdf_lines(canvas, line, y - 6, "Helvetica-Bold", 22)
            y = _pdf_lines(canvas, manual.maker, y - 4, "Helvetica", 11) - 24
        for section in page:
            y = _pdf_lines(canvas, section.heading, y, "Helvetica-Bold", 14)
            for paragraph in section.paragraphs:
                y = _pdf_lines(canvas, paragraph, y, "Helvetica", 11) - 6
            y -= 10
        _pdf_lines(canvas, f"{manual.running_head} - {number}", _MARGIN / 2, "Helvetica", 9)
        canvas.showPage()
    canvas.save()
    return buffer.getvalue()


def _pdf_lines(canvas: Canvas, text: str, y: float, font: str, size: int) -> float:
    """Draw a text in as many lines as it needs; returns the height of the next free line."""
    canvas.setFont(font, size)
    for line in simpleSplit(text, font, size, A4[0] - 2 * _MARGIN):
        canvas.drawString(_MARGIN, y, line)
        y -= size * 1.4
    return y


def encrypted_pdf(manual: Manual) -> bytes:
    """A PDF that opens with a password only."""
    return pdf(manual, StandardEncryption(SAMPLE_PASSWORD, ownerPassword="owner"))


def damaged_pdf(manual: Manual) -> bytes:
    """The start of a PDF, as a broken download leaves it: no page can be found in it."""
    return pdf(manual)[:400]


def scan(manual: Manual) -> bytes:
    """A PDF that holds pictures of its pages and no text layer, like a scanner makes it."""
    buffer = io.BytesIO()
    canvas = Canvas(buffer, pagesize=A4, invariant=1)
    for number, page in enumerate(manual.pages, start=1):
        picture = _drawn_page(manual, page, is_first=number == 1)
        canvas.drawImage(ImageReader(picture), 0, 0, *A4)
        canvas.showPage()
    canvas.save()
    return buffer.getvalue()


def _drawn_page(manual: Manual, page: tuple[Section, ...], *, is_first: bool) -> Image.Image:
    width, height = (round(side / 72 * SCAN_DPI) for side in A4)
    picture = Image.new("L", (width, height), color=255)
    draw = ImageDraw.Draw(picture)
    y = 150
    if is_first:
        for line in manual.title_lines:
            y = _drawn_lines(draw, line, y, 64)
        y = _drawn_lines(draw, manual.maker, y + 10, 34) + 60
    for section in page:
        y = _drawn_lines(draw, section.heading, y, 42)
        for paragraph in section.paragraphs:
            y = _drawn_lines(draw, paragraph, y, 32) + 14
        y += 26
    # Black and white without dither, as scanners store text; also the smallest form.
    return picture.convert("1", dither=Image.Dither.NONE)


def _drawn_lines(draw: ImageDraw.ImageDraw, text: str, y: int, size: int) -> int:
    font = ImageFont.load_default(size)
    for line in textwrap.wrap(text, width=round(2_600 / size)):
        draw.text((180, y), line, font=font, fill=0)
        y += round(size * 1.4)
    return y


def word_file(manual: Manual) -> bytes:
    """A DOCX file with one explicit page break for each page."""
    document = docx.Document()
    properties = document.core_properties
    properties.title, properties.author = manual.title, manual.maker
    properties.created = properties.modified = MADE_AT
    properties.last_modified_by = manual.maker
    for line in manual.title_lines:
        document.add_paragraph(line, style="Title")
    document.add_paragraph(manual.maker)
    for number, page in enumerate(manual.pages):
        if number:
            document.add_paragraph().add_run().add_break(WD_BREAK.PAGE)
        for section in page:
            document.add_paragraph(section.heading, style="Heading 1")
            for paragraph in section.paragraphs:
                document.add_paragraph(paragraph)
    buffer = io.BytesIO()
    document.save(buffer)
    with zipfile.ZipFile(buffer) as archive:
        return zipped({name: archive.read(name) for name in archive.namelist()})


def open_document(manual: Manual) -> bytes:
    """An OpenDocument text: the four parts that the format asks for, and no more."""
    office = "urn:oasis:names:tc:opendocument:xmlns"
    spaces = (
        f'xmlns:office="{office}:office:1.0" xmlns:text="{office}:text:1.0" '
        'xmlns:dc="http://purl.org/dc/elements/1.1/" office:version="1.2"'
    )
    body = [f"<text:p>{html.escape(line)}</text:p>" for line in manual.title_lines]
    body.append(f"<text:p>{html.escape(manual.maker)}</text:p>")
    for section in manual.sections():
        body.append(f'<text:h text:outline-level="1">{html.escape(section.heading)}</text:h>')
        body.extend(
            f"<text:p>{html.escape(paragraph)}</text:p>" for paragraph in section.paragraphs
        )
    content_type = "application/vnd.oasis.opendocument.text"
    entries = "".join(
        f'<manifest:file-entry manifest:full-path="{path}" manifest:media-type="{media_type}"/>'
        for path, media_type in {
            "/": content_type,
            "content.xml": "text/xml",
            "meta.xml": "text/xml",
        }.items()
    )
    parts = {
        "content.xml": f"<office:document-content {spaces}><office:body><office:text>"
        f"{''.join(body)}</office:text></office:body></office:document-content>",
        "meta.xml": f"<office:document-meta {spaces}><office:meta><dc:title>"
        f"{html.escape(manual.title)}</dc:title></office:meta></office:document-meta>",
        "META-INF/manifest.xml": f'<manifest:manifest xmlns:manifest="{office}:manifest:1.0" '
        f'manifest:version="1.2">{entries}</manifest:manifest>',
    }
    declaration = '<?xml version="1.0" encoding="UTF-8"?>\n'
    return zipped(
        {"mimetype": content_type.encode()}
        | {name: (declaration + text).encode() for name, text in parts.items()}
    )


def zipped(parts: Mapping[str, bytes]) -> bytes:
    """A zip file without the time of its making; `mimetype` is stored plain, as ODF demands."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in parts.items():
            entry = zipfile.ZipInfo(name, ZIP_DATE)
            plain = name == "mimetype"
            entry.compress_type = zipfile.ZIP_STORED if plain else zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
    return buffer.getvalue()


def web_page(manual: Manual) -> bytes:
    """An HTML page."""
    parts = [f"<h1>{'<br>'.join(map(html.escape, manual.title_lines))}</h1>"]
    parts.append(f"<p>{html.escape(manual.maker)}</p>")
    for section in manual.sections():
        parts.append(f"<h2>{html.escape(section.heading)}</h2>")
        parts.extend(f"<p>{html.escape(paragraph)}</p>" for paragraph in section.paragraphs)
    lines = "\n".join(parts)
    return (
        f'<!DOCTYPE html>\n<html lang="{manual.language}">\n<head>\n<meta charset="utf-8">\n'
        f"<title>{html.escape(manual.title)}</title>\n</head>\n<body>\n{lines}\n</body>\n</html>\n"
    ).encode()


def plain_text(manual: Manual) -> bytes:
    """A UTF-8 text file."""
    parts = ["\n".join(manual.title_lines), manual.maker]
    for section in manual.sections():
        parts.append(section.heading)
        parts.extend(textwrap.fill(paragraph, 80) for paragraph in section.paragraphs)
    return ("\n\n".join(parts) + "\n").encode()


def picture() -> bytes:
    """A picture that got among the manuals."""
    image = Image.new("RGB", (160, 120), color=(236, 236, 230))
    draw = ImageDraw.Draw(image)
    draw.rectangle((40, 45, 120, 95), fill=(70, 110, 140))
    draw.ellipse((66, 55, 94, 83), fill=(236, 236, 230))
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return buffer.getvalue()


FORMATS: Mapping[str, Callable[[Manual], bytes]] = MappingProxyType(
    {
        "pdf": pdf,
        "encrypted_pdf": encrypted_pdf,
        "damaged_pdf": damaged_pdf,
        "scan": scan,
        "docx": word_file,
        "odt": open_document,
        "html": web_page,
        "text": plain_text,
    }
)


# The three outputs


def sample_files(manuals: list[Manual]) -> dict[str, bytes]:
    """Relative path in `data/manuals` and content of every sample."""
    files = {EMPTY_FILE: b"", PICTURE_FILE: picture()}
    for manual in manuals:
        content = FORMATS[manual.format](manual)
        files[manual.file] = content
        files.update(dict.fromkeys(manual.copies, content))
    return dict(sorted(files.items()))


def truth(manuals: list[Manual]) -> list[dict[str, object]]:
    """What a faultless run says about every sample; nulls where nothing can be said."""
    rows = [_excluded(EMPTY_FILE, "empty"), _excluded(PICTURE_FILE, "unsupported_type")]
    for manual in manuals:
        rows.extend(_excluded(copy, "duplicate_content") for copy in manual.copies)
        _, _, reason = manual.expected.partition("excluded:")
        rows.append(
            _excluded(manual.file, reason)
            if reason
            else {
                "file": manual.file,
                "title": manual.title,
                "product_identifiers": list(manual.products),
                "language": manual.language,
                "expected": manual.expected,
            }
        )
    return sorted(rows, key=lambda row: str(row["file"]))


def _excluded(file: str, reason: str) -> dict[str, object]:
    return {
        "file": file,
        "title": None,
        "product_identifiers": [],
        "language": None,
        "expected": f"excluded:{reason}",
    }


def catalogue(manuals: list[Manual]) -> str:
    """CSV of the known products: those of the samples, and others that no sample is about."""
    with (TEXTS / "other_products.csv").open(encoding="utf-8", newline="") as file:
        header, *others = csv.reader(file)
    known = [[key, m.maker, name] for m in manuals for key, name in m.products.items()]
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([header, *sorted([*known, *others])])
    return text.getvalue()


def make(folder: Path) -> int:
    """Write everything below `folder`, replacing its `manuals`; returns the number of samples."""
    manuals = read_manuals()
    files = sample_files(manuals)
    target = folder / "manuals"
    if target.exists():
        shutil.rmtree(target)
    for name, content in files.items():
        path = target / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in truth(manuals)]
    (folder / "truth.jsonl").write_text("".join(lines), encoding="utf-8")
    (folder / "catalogue.csv").write_text(catalogue(manuals), encoding="utf-8")
    return len(files)


def main(arguments: list[str]) -> int:
    """The command; returns its exit status."""
    if len(arguments) > 1 or any(argument.startswith("-") for argument in arguments):
        print("usage: make_sample_data.py [FOLDER]", file=sys.stderr)
        return 2
    folder = Path(arguments[0]) if arguments else REPOSITORY / "data"
    print(f"{make(folder)} samples in {folder / 'manuals'}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
