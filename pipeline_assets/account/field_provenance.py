"""Where each published value of a document comes from: answer, evidence, findings, review, change.

Belongs here: putting together what the ledger and the staged frames say of one archive entry. Does
not belong here: the queries (`field_provenance_rows.py`), the provenance of a materialisation
(`pipeline_assets/provenance`), and how it is shown (`cli/show_provenance.py`).

Everything is read from the ledger's frozen spec and from artifacts, so that entries of versions
whose spec file or workload is gone are told as well. Words of a document are told on request only,
and through `resources/access.py`, which records who looked and why.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import msgspec
import polars as pl
from sqlalchemy import Connection

from pipeline_assets.account.documents import DocumentKey, find_document
from pipeline_assets.account.field_provenance_model import (
    Answer,
    AnswerUnknown,
    DocumentProvenance,
    Erased,
    FieldProvenance,
    NoSuchEntry,
    Origin,
    Publication,
    QuoteLook,
    RawResult,
    ReplayNamed,
    Reviewed,
)
from pipeline_assets.account.field_provenance_rows import (
    agreeing_reviews,
    entries_of_document,
    findings_of_attempt,
    frames_of_attempt,
    judged_answers,
    repairs_of_attempt,
    text_pack_of,
)
from pipeline_assets.account.field_provenance_values import (
    Given,
    Place,
    about_field,
    evidence_of,
    findings_about,
    members_of_field,
    origin_of,
    standing_of,
    with_words,
)
from pipeline_assets.account.frozen_prompt import PromptUsed, prompt_used
from pipeline_assets.account.published import (
    DocumentErased,
    NoText,
    NotPublished,
    NotPublishedThen,
)
from pipeline_assets.known_version import known_version, parser_key_of
from pipeline_assets.workloads.fields import readable_fields
from resources.access import read_page_texts
from resources.clock import to_text
from resources.context import Context
from resources.contracts import PLACES, STAGING, scan_frame
from resources.ledger.erasures import erasure_of
from resources.record_ids import custom_id

_BUILT_IN = "baseline"
"""The provider that is no model: rules of the workload itself."""


def field_provenance(
    context: Context,
    document_id: str,
    *,
    as_of: datetime | None = None,
    archive_version: int | None = None,
    look: QuoteLook | None = None,
) -> list[FieldProvenance]:
    """Every value of an archive entry with what it comes from, in the order of the fields.

    Args:
        context: the open resources.
        document_id: the document's id, or an ending that no other id has.
        as_of: of the entry that was visible at this (aware) time.
        archive_version: of this entry, whatever is visible; counts before `as_of`.
        look: who wants to read the quotes too; the access is recorded.

    Raises:
        DocumentErased: the values were erased; `document_provenance` tells what is left.
        see also `document_provenance`.
    """
    found = document_provenance(
        context, document_id, as_of=as_of, archive_version=archive_version, look=look
    )
    if found.erased is not None:
        raise DocumentErased(found.document_id, found.erased.at)
    return list(found.fields)


def document_provenance(
    context: Context,
    document: str,
    *,
    key: str | None = None,
    as_of: datetime | None = None,
    archive_version: int | None = None,
    look: QuoteLook | None = None,
) -> DocumentProvenance:
    """Where a document's visible, former or named archive entry comes from.

    Of an erased document the newest entry, or the named one, is told without its values.

    Args:
        context: the open resources.
        document: its id, or an ending that no other id has.
        key: only an entry of this processing version.
        as_of: the entry that was visible at this (aware) time.
        archive_version: this entry, whatever is visible; counts before `as_of`.
        look: who wants to read the quotes too; the access is recorded.

    Raises:
        UnknownDocument, AmbiguousDocument: no document, or several.
        MalformedVersionKey, VersionNeverUsed: there is no such version here.
        NotPublished, NotPublishedThen, NoSuchEntry: there is no such entry.
        AnswerUnknown: the ledger has no answer with the entry's values.
        NoText, ArtifactMissing: quotes are wanted, and the text is not kept.
    """
    found = find_document(context, document)
    wanted = _Wanted(
        None if key is None else known_version(context, key).key, as_of, archive_version
    )
    with context.ledger.read() as connection:
        begun = erasure_of(connection, found.document_no)
        erased = None if begun is None else Erased(begun.begun_at, begun.reason, begun.actor)
        entries = entries_of_document(connection, context.ledger, found.document_no)
        entry = _chosen(entries, wanted, found, erased=erased is not None)
        book = _Book(connection, context, entry)
        answer, publication = book.answer(), _publication(entry)
        fields = () if erased is not None else book.fields(answer, publication)
        pack = text_pack_of(connection, context.ledger, answer.source_checksum, answer.parser)
    if look is not None and erased is None:
        if pack is None:
            raise NoText(found.document_id)
        texts = read_page_texts(context, answer.source_checksum, pack, look.who, look.why)
        fields = with_words(fields, texts, msgspec.json.decode(entry["content"]))
    return DocumentProvenance(found.document_id, answer, publication, fields, erased)


class _Wanted(NamedTuple):
    key: str | None
    as_of: datetime | None
    archive_version: int | None


def _chosen(
    entries: pl.DataFrame, wanted: _Wanted, found: DocumentKey, *, erased: bool
) -> dict[str, Any]:
    """The entry that is meant."""
    known = entries["archive_version"].to_list()
    if wanted.key is not None:
        entries = entries.filter(pl.col("key") == wanted.key)
    if wanted.archive_version is not None:
        entries = entries.filter(pl.col("archive_version") == wanted.archive_version)
        if entries.is_empty():
            raise NoSuchEntry(found.document_id, wanted.archive_version, known)
    elif wanted.as_of is not None:
        at = to_text(wanted.as_of)
        ended = pl.col("valid_to").is_null() | (pl.col("valid_to") > at)
        entries = entries.filter((pl.col("valid_from") <= at) & ended)
        if entries.is_empty():
            raise NotPublishedThen(found.document_id, wanted.as_of, wanted.key)
    elif not erased:
        entries = entries.filter(pl.col("shown") == 1)
    if entries.is_empty():
        raise NotPublished(found.document_id, wanted.key)
    return entries.row(0, named=True)


def _publication(entry: Mapping[str, Any]) -> Publication:
    return Publication(
        archive_version=entry["archive_version"],
        content_digest=entry["content_digest"],
        shown_from=entry["valid_from"],
        shown_until=entry["valid_to"],
        kind=entry["change_kind"],
        reason=entry["change_reason"],
        actor=entry["change_actor"],
        changed_at=entry["changed_at"],
    )


class _Book:
    """Reads what belongs to one entry inside one transaction."""

    def __init__(self, connection: Connection, context: Context, entry: Mapping[str, Any]) -> None:
        self._connection = connection
        self._context = context
        self._entry = entry
        ledger, record = context.ledger, entry["record_no"]
        self._reviews = agreeing_reviews(connection, ledger, record)
        self._row = self._answer_row(judged_answers(connection, ledger, record))

    def _answer_row(self, answers: pl.DataFrame) -> dict[str, Any]:
        """The answer whose values, or whose corrected values, the entry shows.

        Of several equal answers the newest one that was asked for before the values were shown
        first: a later one that says the same again publishes nothing.
        """
        digest = self._entry["content_digest"]
        corrected = self._reviews.filter(pl.col("corrected_digest") == digest)["attempt_no"]
        own = answers.filter(
            (pl.col("values_digest") == digest) | pl.col("attempt_no").is_in(corrected.implode())
        )
        if own.is_empty():
            raise AnswerUnknown(self._entry["record_id"], self._entry["archive_version"])
        before = own.filter(pl.col("frozen_at") <= self._entry["first_shown"])
        # Clocks of several machines: the first answer cannot be later than what it gave.
        return (own.head(1) if before.is_empty() else before).row(-1, named=True)

    def answer(self) -> Answer:
        entry, row, context = self._entry, self._row, self._context
        spec = msgspec.json.decode(entry["spec"])
        prompt = (
            PromptUsed(None, None)
            if row["provider"] == _BUILT_IN
            else prompt_used(
                context.settings, entry["workload"], spec, entry["digest"], row["recovery_path"]
            )
        )
        return Answer(
            record_id=entry["record_id"],
            record_reason=entry["replay_reason"],
            source_checksum=entry["checksum"],
            processing_version=entry["key"],
            spec_digest=entry["digest"],
            workload=entry["workload"],
            schema_version=row["schema_version"],
            parser=parser_key_of(entry["spec"]),
            prompt=prompt.name,
            prompt_digest=prompt.digest,
            attempt=row["ordinal"],
            recovery_path=row["recovery_path"],
            custom_id=custom_id(row["batch_key"], row["attempt_no"] - row["first_attempt_no"]),
            request_digest=row["request_digest"],
            manifest_id=row["manifest_id"],
            manifest_digest=row["manifest_digest"],
            batch_id=row["batch_id"],
            provider=row["provider"],
            mode=row["mode"],
            model=row["model"],
            model_revision=row["model_revision" if row["late_line"] is None else "late_revision"],
            provider_job_id=row["provider_job_id"],
            submitted_at=row["submitted_at"],
            values_digest=row["values_digest"],
            raw=self._raw(),
            repairs=tuple(repairs_of_attempt(self._connection, context.ledger, row["attempt_no"])),
            replay=None
            if row["replay_id"] is None
            else ReplayNamed(
                row["replay_id"],
                row["replay_reason"],
                row["replay_note"],
                row["replay_actor"],
                row["replay_expression"],
            ),
        )

    def _raw(self) -> RawResult | None:
        row, artifacts = self._row, self._context.artifacts
        late = row["late_line"] is not None
        artifact = row["late_artifact" if late else "result_artifact"]
        if artifact is None:
            return None
        return RawResult(
            artifact=artifact,
            line=row["late_line" if late else "line"],
            offset=row["late_offset" if late else "line_offset"],
            length=row["late_length" if late else "line_length"],
            late=late,
            pruned_at=None
            if artifacts.has("result", artifact)
            else artifacts.pruned_at("result", artifact),
        )

    def fields(self, answer: Answer, publication: Publication) -> tuple[FieldProvenance, ...]:
        """Every value of the entry, by field."""
        ledger, entry, row = self._context.ledger, self._entry, self._row
        content: Mapping[str, Any] = msgspec.json.decode(entry["content"])
        frames = frames_of_attempt(self._connection, ledger, row["attempt_no"])
        given = self._given(content, [frame["staging"] for frame in frames])
        places = self._places([frame["places"] for frame in frames], given.content)
        found = findings_of_attempt(self._connection, ledger, entry["record_no"], row["attempt_no"])
        review = self._review()
        by: Origin = "built-in rules" if row["provider"] == _BUILT_IN else "model"
        return tuple(
            FieldProvenance(
                field=field.name,
                label=field.label,
                item=item,
                value=None if part is None else part["value"],
                status="absent" if part is None else part["status"],
                origin=origin_of(field, part, given, by),
                evidence=() if part is None else evidence_of(field, part, places),
                findings=findings_about(field, found),
                review=review and about_field(review, field, content, given),
                answer=answer,
                publication=publication,
            )
            for field in readable_fields(self._context.settings, entry["workload"], content)
            for item, part in members_of_field(content, field)
        )

    def _given(self, content: Mapping[str, Any], staged: Sequence[str]) -> Given:
        """What the answer gave: the content itself, or what a reviewer corrected."""
        digest = self._row["values_digest"]
        if digest == self._entry["content_digest"]:
            return Given(content, known=True)
        for artifact in staged:
            if not self._context.artifacts.has("frame", artifact):
                continue
            rows = (
                scan_frame(STAGING, self._context.artifacts.path("frame", artifact))
                .filter(pl.col("attempt_no") == self._row["attempt_no"])
                .select("content")
                .collect()
            )
            for text in rows["content"]:
                # Of the bytes: a digest that stands beside them proves nothing.
                if hashlib.sha256(text.encode()).hexdigest() == digest:
                    return Given(msgspec.json.decode(text), known=True)
        return Given({}, known=False)

    def _places(
        self, artifacts: Sequence[str | None], given: Mapping[str, Any]
    ) -> dict[tuple[str, int, str], Place]:
        """(field, page, quote) → where the answer's quote stands, as it was kept with it."""
        kept: dict[tuple[str, int, int], Place] = {}
        for artifact in artifacts:
            if artifact is None or not self._context.artifacts.has("frame", artifact):
                continue
            rows = (
                scan_frame(PLACES, self._context.artifacts.path("frame", artifact))
                .filter(pl.col("attempt_no") == self._row["attempt_no"])
                .collect()
            )
            for row in rows.iter_rows(named=True):
                place = (standing_of(row), row["start"], row["end"])
                kept[row["field"], row["item"], row["quote_no"]] = place
        return {
            (name, quote["page"], quote["quote"]): kept[name, item, number]
            for name, member in given.items()
            for item, part in enumerate(member if isinstance(member, list) else [member])
            for number, quote in enumerate(part["evidence"])
            if (name, item, number) in kept
        }

    def _review(self) -> Reviewed | None:
        """The decision that the entry's values rest on."""
        digest = self._entry["content_digest"]
        own = self._reviews.filter(pl.col("attempt_no") == self._row["attempt_no"])
        # What a reviewer decided after the values were shown is no reason why they are.
        if digest == self._row["values_digest"]:
            until = pl.col("decided_at") <= self._entry["valid_from"]
            own = own.filter((pl.col("decision") == "accept") & until)
        else:
            own = own.filter(pl.col("corrected_digest") == digest)
        if own.is_empty():
            return None
        row = own.row(-1, named=True)
        return Reviewed(
            review=row["review_no"],
            kind=row["kind"],
            decision=row["decision"],
            reviewer=row["reviewer"],
            decided_at=row["decided_at"],
            reason=row["reason"],
        )
