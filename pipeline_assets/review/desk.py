"""What a reviewer sees of a review: values, findings, evidence in its page, and the page image.

Belongs here: putting it together, with the places of quotes as offsets in the page's text, so that
a terminal or a web page only has to draw it. Does not belong here: drawing (`cli/`), and decisions.

Page texts and images go through `resources/access.py`, which records who looked, and for which
review.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import polars as pl
from sqlalchemy import Connection, select

from pipeline_assets.review.errors import (
    NothingReviewed,
    ReviewErased,
    UnknownReview,
    ValuesDiffer,
)
from pipeline_assets.workloads.fields import Fields, parts_of, readable_fields
from pipeline_assets.workloads.registry import load_workload
from pipeline_assets.workloads.text_folding import find_quote
from pipeline_assets.workloads.workload import FIRST_ACCEPTANCE, Workload
from resources.access import read_page_texts, thumbnail_path
from resources.artifacts import ArtifactMissing
from resources.context import Context
from resources.contracts import STAGING, scan_frame
from resources.ledger.engine import Ledger
from resources.ledger.erasures import is_erased
from resources.ledger.review_queue import acts_of, causes_of, find_review, reviews_of_document
from resources.ledger.reviews import corrected_content_of
from resources.ledger.schema import parses, processing_versions
from resources.parser_settings import ParserSettings


@dataclass(frozen=True)
class Quote:
    """Words of a page that a value is taken from.

    Attributes:
        page: 1-based number.
        words: as the answer quotes them.
        start: code-point offset in the page's text; None where the page does not have the words.
        end: likewise, exclusive.
    """

    page: int
    words: str
    start: int | None
    end: int | None


@dataclass(frozen=True)
class Value:
    """One value of a field, with what people call it; a list has several of them, or none."""

    field: str
    label: str
    item: int
    value: str | None
    status: str
    evidence: tuple[Quote, ...]


@dataclass(frozen=True)
class Finding:
    """What a rule found."""

    rule: str
    severity: str
    field: str
    note: str


@dataclass(frozen=True)
class Page:
    """The text of a page; `origin` is text or ocr."""

    number: int
    origin: str
    text: str


@dataclass(frozen=True)
class Mark:
    """A stretch of a page's text (code points) that a field's evidence is."""

    start: int
    end: int
    field: str
    item: int


@dataclass(frozen=True)
class Sheet:
    """Everything that is on the desk for one review.

    Attributes:
        review: its row (`review_queue.REVIEW_SCHEMA`).
        content: what the model gave, as it would be published (JSON).
        corrected: what a reviewer put in its place; None where nobody did.
        fields: of the content, in the order that people read them.
        values: of the content, in the order of its fields.
        findings: what the rules found, in the order they found it.
        acts: every act on the review: act, who, reason, acted_at.
        pages: the document's pages, in order.
        image: file of the page image; None where it is not in the store.
    """

    review: Mapping[str, Any]
    content: str
    corrected: str | None
    fields: Fields
    values: tuple[Value, ...]
    findings: tuple[Finding, ...]
    acts: tuple[Mapping[str, Any], ...]
    pages: tuple[Page, ...]
    image: Path | None

    @property
    def number(self) -> int:
        """The review's number."""
        return int(self.review["review_no"])

    @property
    def doubted(self) -> frozenset[str]:
        """Fields that a finding is about which is more than a note."""
        return frozenset(found.field for found in self.findings if found.severity != "note")

    def page(self, number: int) -> Page | None:
        """The page of a number, if there is one."""
        return next((page for page in self.pages if page.number == number), None)

    def marks(self, number: int) -> list[Mark]:
        """Where evidence stands on a page, by place."""
        found = [
            Mark(quote.start, quote.end, value.field, value.item)
            for value in self.values
            for quote in value.evidence
            if quote.page == number and quote.start is not None and quote.end is not None
        ]
        return sorted(found, key=lambda mark: (mark.start, mark.end))

    def first_page(self) -> int:
        """Where to start reading: evidence of a doubted field, else any evidence, else page one."""
        known = {page.number for page in self.pages}
        doubted = self.doubted
        cited = [
            (value.field not in doubted, quote.page)
            for value in self.values
            for quote in value.evidence
            if quote.page in known
        ]
        if cited:
            return min(cited)[1]
        return min(known, default=1)


def lay_out(context: Context, review_no: int, who: str) -> Sheet:
    """Everything about a review, for a reviewer who looks at it; the look is recorded.

    Raises:
        UnknownReview: there is no such review.
        ReviewErased: its document was erased.
        ValuesDiffer: the staged values are not those that were judged.
        ArtifactMissing: the page texts or staged values are not in the store.
    """
    ledger = context.ledger
    with ledger.read() as connection:
        found = find_review(connection, ledger, review_no)
        if found.is_empty():
            raise UnknownReview([review_no])
        review = found.row(0, named=True)
        if is_erased(connection, review["record_no"]):
            raise ReviewErased(review_no, review["document_id"])
        causes = causes_of(connection, ledger, [review_no])
        acts = acts_of(connection, ledger, review_no)
        corrected = corrected_content_of(connection, review_no)
        staged = _staged_artifacts(connection, ledger, review["attempt_no"])
        workload = _workload_of(connection, review["version_no"])
        text_pack, thumbnail = _parse_of(connection, review)
    content = _content(context, staged, review)
    fields = readable_fields(context.settings, workload, msgspec.json.decode(content))
    why = f"review {review_no}"
    pages = () if text_pack is None else _pages(context, review["checksum"], text_pack, who, why)
    return Sheet(
        review=review,
        content=content,
        corrected=corrected,
        fields=fields,
        values=read_values(content, fields, pages),
        findings=tuple(
            Finding(*row) for row in causes.select("rule", "severity", "field", "note").rows()
        ),
        acts=tuple(acts.select("act", "who", "reason", "acted_at").to_dicts()),
        pages=pages,
        image=_image(context, thumbnail, who, why),
    )


def review_of_document(
    context: Context, document_no: int, document_id: str, version_no: int | None
) -> int:
    """The review of a document that waits, else its newest one.

    Raises:
        NothingReviewed: it never had one.
    """
    with context.ledger.read() as connection:
        found = reviews_of_document(connection, context.ledger, document_no, version_no)
    if found.is_empty():
        raise NothingReviewed(document_id)
    return int(found["review_no"][0])


def read_values(content: str, fields: Fields, pages: tuple[Page, ...] = ()) -> tuple[Value, ...]:
    """The values of published content (JSON), with their places."""
    texts = {page.number: page.text for page in pages}
    decoded = msgspec.json.decode(content)
    return tuple(
        Value(
            field.name,
            field.label,
            item,
            part["value"],
            part["status"],
            tuple(_quote(entry, texts) for entry in part["evidence"]),
        )
        for field in fields
        for item, part in enumerate(parts_of(decoded, field))
    )


def rules_of_version(context: Context, version_no: int) -> tuple[Workload, bytes]:
    """The workload of a version and its thresholds, as it was frozen.

    Raises:
        UnknownWorkload: its workload is not installed.
    """
    with context.ledger.read() as connection:
        row = connection.execute(
            select(processing_versions.c.workload, processing_versions.c.spec).where(
                processing_versions.c.version_no == version_no
            )
        ).one()
    workload = load_workload(row.workload, context.settings.workload_folder)
    name = msgspec.json.decode(row.spec).get("acceptance") or FIRST_ACCEPTANCE
    return workload, workload.acceptances[name].thresholds


def _quote(entry: Mapping[str, Any], texts: Mapping[int, str]) -> Quote:
    page, words = entry["page"], entry["quote"]
    place = find_quote(texts[page], words) if page in texts else None
    start, end = (None, None) if place is None else place
    return Quote(page, words, start, end)


def _workload_of(connection: Connection, version_no: int) -> str:
    found = select(processing_versions.c.workload).where(
        processing_versions.c.version_no == version_no
    )
    return connection.execute(found).scalar_one()


def _staged_artifacts(connection: Connection, ledger: Ledger, attempt_no: int) -> list[str]:
    """Where an attempt's values may be staged: with its batch, or with late answers."""
    found = ledger.dialect.fetch(
        connection,
        "SELECT b.staging_artifact FROM attempts a JOIN batches b ON b.batch_no = a.batch_no "
        "WHERE a.attempt_no = ? AND b.staging_artifact IS NOT NULL UNION ALL "
        "SELECT w.staging_artifact FROM late_results l "
        "JOIN late_answers w ON w.batch_no = l.batch_no "
        "WHERE l.attempt_no = ? AND l.used = 1 AND w.staging_artifact IS NOT NULL",
        {"artifact": pl.String},
        (attempt_no, attempt_no),
    )
    return found["artifact"].to_list()


def _content(context: Context, staged: list[str], review: Mapping[str, Any]) -> str:
    """The values that the review is about, by their digest: of the bytes, not beside them."""
    for artifact in staged:
        rows = (
            scan_frame(STAGING, context.artifacts.require("frame", artifact))
            .filter(pl.col("attempt_no") == review["attempt_no"])
            .select("content")
            .collect()
        )
        for content in rows["content"]:
            if hashlib.sha256(content.encode()).hexdigest() == review["values_digest"]:
                return str(content)
    raise ValuesDiffer(review["review_no"])


def _parse_of(connection: Connection, review: Mapping[str, Any]) -> tuple[str | None, str | None]:
    """Text pack and thumbnail of the bytes that the review is about."""
    spec = connection.execute(
        select(processing_versions.c.spec).where(
            processing_versions.c.version_no == review["version_no"]
        )
    ).scalar_one()
    key = ParserSettings(**msgspec.json.decode(spec)["parser"]).key
    row = connection.execute(
        select(parses.c.text_pack, parses.c.thumbnail).where(
            parses.c.checksum == review["checksum"], parses.c.parser_key == key
        )
    ).first()
    return (None, None) if row is None else (row.text_pack, row.thumbnail)


def _pages(context: Context, checksum: str, text_pack: str, who: str, why: str) -> tuple[Page, ...]:
    found = read_page_texts(context, checksum, text_pack, who, why)
    return tuple(Page(*row) for row in found.select("page", "origin", "text").iter_rows())


def _image(context: Context, thumbnail: str | None, who: str, why: str) -> Path | None:
    if thumbnail is None:
        return None
    try:
        return thumbnail_path(context, thumbnail, who, why)
    except ArtifactMissing:
        # The texts are enough to decide; `doctor` tells of the image and mends it.
        return None
