"""The documents that answers are made about: parsed once, with their gold labels.

Belongs here: reading labels, parsing, and keeping what was parsed. Does not belong here: answers
(`gold.py`, `tricks.py`). Nothing of a corpus is written anywhere but into the ignored state folder.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pypdfium2

from pipeline_assets.ingest.parsing.model import PDF, ParsedDocument, ParseLimits, ParseTask
from pipeline_assets.ingest.parsing.pool import ParserPool
from resources.parser_settings import PARSER_VERSION
from resources.settings import PROJECT
from tests.benchmarks.score_baseline import read_lines

CORPUS_VARIABLE = "TALLYBOOK_DEV_CORPUS"
DEFAULT_CORPUS = PROJECT.parent / "shared" / "corpus" / "dev"
SAMPLES = PROJECT / "data" / "manuals"
KEPT = PROJECT / "data" / "state" / "acceptance"
FORM = 1
"""Of what is kept; grows when `Document` changes."""
FULL = "full"
"""The text layer of a document that needs no text recognition."""


class CorpusMissing(FileNotFoundError):
    """There is no folder of labelled documents."""

    def __init__(self, folder: Path) -> None:
        super().__init__(
            f"no labelled documents at {folder}: expected labels.jsonl and files/ there. Name "
            f"another folder in {CORPUS_VARIABLE}."
        )


class Gold(msgspec.Struct, frozen=True):
    """What is right of a document.

    Attributes:
        title: as printed; None where none is printed.
        title_page: where it is seen; None where none is.
        identifiers: (as printed, the pages where its text may first stand).
        language: ISO 639-1 code of the body.
        languages: all of them where there are several.
        description: one or two English sentences; empty where there is none.
        text_layer: `full`, or what is wrong with it.
        ambiguous: a person may well answer otherwise.
    """

    title: str | None
    title_page: int | None
    identifiers: tuple[tuple[str, tuple[int, ...]], ...]
    language: str
    languages: tuple[str, ...]
    description: str
    text_layer: str
    ambiguous: bool = False


class Document(msgspec.Struct, frozen=True):
    """A parsed document.

    Attributes:
        name: its file's path; shown on a screen, never kept in a repository.
        checksum: of its bytes.
        media_type: by content.
        pages: page number and text.
        page_count: how many pages it says it has.
        language: of the parsed text; None where the text does not say.
        languages: further ones.
        metadata_title: the title in a PDF's metadata; empty where there is none.
        gold: what is right.
    """

    name: str
    checksum: str
    media_type: str
    pages: tuple[tuple[int, str], ...]
    page_count: int
    language: str | None
    languages: tuple[str, ...]
    metadata_title: str
    gold: Gold

    @property
    def text(self) -> str:
        """Every page's text."""
        return "\n".join(text for _, text in self.pages)


def corpus_folder() -> Path:
    """The folder of the development corpus.

    Raises:
        CorpusMissing: there is none.
    """
    folder = Path(os.environ.get(CORPUS_VARIABLE, DEFAULT_CORPUS))
    if not (folder / "labels.jsonl").is_file():
        raise CorpusMissing(folder)
    return folder


def load_corpus(folder: Path) -> list[Document]:
    """Every readable labelled document of a corpus, copies left out, in the order of the labels."""
    labels = folder / "labels.jsonl"
    rows = [
        row
        for row in read_lines(labels)
        if row.get("labelled") and row.get("readable") and "duplicate_of" not in row
    ]
    return _kept(labels.read_bytes(), folder, {row["file"]: _gold(row) for row in rows})


def load_samples() -> list[Document]:
    """The sample manuals of this repository that a faultless run publishes."""
    truth = SAMPLES.parent / "truth.jsonl"
    rows = [row for row in read_lines(truth) if row["expected"] == "published"]
    return _kept(truth.read_bytes(), SAMPLES, {row["file"]: _truth(row) for row in rows})


def _truth(row: Mapping[str, Any]) -> Gold:
    return Gold(
        title=row["title"],
        title_page=1,
        identifiers=tuple((value, (1,)) for value in row["product_identifiers"]),
        language=row["language"],
        languages=(),
        description="",
        text_layer=FULL,
    )


def _gold(label: Mapping[str, Any]) -> Gold:
    first = dict(label.get("identifier_pages") or {})
    text_pages = dict(label.get("identifier_text_pages") or {})
    return Gold(
        title=label.get("title"),
        title_page=label.get("title_page"),
        identifiers=tuple(
            (value, tuple(pages[value] for pages in (text_pages, first) if value in pages))
            for value in label.get("product_identifiers") or ()
        ),
        language=label["language"],
        languages=tuple(label.get("languages") or ()),
        description=label["description"],
        text_layer=label.get("text_layer") or FULL,
        ambiguous=bool(label.get("ambiguous")),
    )


def _kept(labels: bytes, folder: Path, golds: Mapping[str, Gold]) -> list[Document]:
    """Parsed documents, from an earlier parse by the same parser where there is one."""
    parser = Path(__file__).parents[2] / "pipeline_assets" / "ingest" / "parsing"
    state = hashlib.sha256(f"{FORM} {PARSER_VERSION} {folder}".encode() + labels)
    for module in sorted(parser.rglob("*.py")):
        state.update(module.read_bytes())
    place = KEPT / f"parsed-{state.hexdigest()[:24]}.json"
    if place.is_file():
        return msgspec.json.decode(place.read_bytes(), type=list[Document])
    found = _parse(folder, golds)
    KEPT.mkdir(parents=True, exist_ok=True, mode=0o700)
    fresh = place.with_suffix(f".{os.getpid()}")
    fresh.touch(mode=0o600)
    fresh.write_bytes(msgspec.json.encode(found))
    fresh.replace(place)
    return found


def _parse(folder: Path, golds: Mapping[str, Gold]) -> list[Document]:
    tasks = [ParseTask(key=name, path=folder / name) for name in golds]
    parsed: dict[str, Document] = {}
    with ParserPool(2, ParseLimits()) as pool:
        for report in pool.parse_many(tasks):
            outcome = report.outcome
            if not isinstance(outcome, ParsedDocument):
                continue
            parsed[report.key] = Document(
                name=report.key,
                checksum=hashlib.sha256((folder / report.key).read_bytes()).hexdigest(),
                media_type=outcome.media_type,
                pages=tuple((page.number, page.text) for page in outcome.pages),
                page_count=outcome.page_count,
                language=outcome.language,
                languages=outcome.languages,
                metadata_title=_metadata_title(folder / report.key, outcome.media_type),
                gold=golds[report.key],
            )
    return [parsed[name] for name in golds if name in parsed]


def _metadata_title(path: Path, media_type: str) -> str:
    if media_type != PDF:
        return ""
    document = pypdfium2.PdfDocument(path)
    try:
        return document.get_metadata_dict().get("Title", "").strip()
    finally:
        document.close()


def with_full_text(documents: Iterable[Document]) -> list[Document]:
    """Those whose text needs no recognition and of which people agree what is right."""
    return [
        document
        for document in documents
        if document.gold.text_layer == FULL and not document.gold.ambiguous
    ]


def smallest_first(documents: Sequence[Document]) -> list[Document]:
    """By length of text, then by name."""
    return sorted(documents, key=lambda document: (len(document.text), document.name))
