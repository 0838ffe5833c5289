"""What is told of a published value: where it comes from, as typed records.

Belongs here: the records, their plain form, and what cannot be told. Does not belong here: reading
them (`field_provenance.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

Origin = Literal["model", "built-in rules", "reviewer", "not told apart"]
"""Who gave a value. `not told apart`: a reviewer corrected the record, and the answer that they
corrected is not kept any more, so that it cannot be said which values are theirs."""
Standing = Literal["stands there", "does not stand there", "no such page", "not kept"]
"""Whether a quote stands on its page. `not kept`: where it stands was not kept with the answer."""


class NoSuchEntry(LookupError):
    """The document has no archive version of this number."""

    def __init__(self, document_id: str, wanted: int, known: Sequence[int]) -> None:
        told = ", ".join(str(number) for number in sorted(known)) or "none"
        super().__init__(
            f"{document_id} has no archive version {wanted}; it has {told}. `tallybook explain "
            f"{document_id!r}` shows them."
        )


class AnswerUnknown(LookupError):
    """The ledger has no judged answer that gave the values of an entry."""

    def __init__(self, record_id: str, archive_version: int) -> None:
        super().__init__(
            f"no judged answer of {record_id} has the values of archive version "
            f"{archive_version}, and one should: the ledger was changed past the pipeline. "
            "`tallybook audit` tells what else disagrees; restore the ledger from a backup."
        )


@dataclass(frozen=True)
class QuoteLook:
    """Somebody who wants to read the quotes: who they are, and why, for the record."""

    who: str
    why: str


@dataclass(frozen=True)
class Evidence:
    """Where a value was read.

    Attributes:
        page: 1-based number.
        standing: does its quote stand there?
        start: code-point offset of the quote in the page's parsed text; None where it is not known.
        end: likewise, exclusive.
        quote: the words, where somebody asked for them.
    """

    page: int
    standing: Standing
    start: int | None
    end: int | None
    quote: str | None = None


@dataclass(frozen=True)
class FieldFinding:
    """What a rule found about a field; the note holds no document text."""

    rule: str
    rule_version: int
    severity: str
    note: str


@dataclass(frozen=True)
class Reviewed:
    """A reviewer's decision to accept or correct.

    Attributes:
        review: its number.
        kind: `findings` or `quality_sample`.
        decision: accept or correct.
        reviewer: who.
        decided_at: when, UTC.
        reason: why.
        changed: did it change this field? None where that cannot be told.
    """

    review: int
    kind: str
    decision: str
    reviewer: str
    decided_at: str
    reason: str
    changed: bool | None = None


@dataclass(frozen=True)
class RawResult:
    """The line that the provider returned.

    Attributes:
        artifact: digest of the file that keeps it.
        line: its number in the file.
        offset: in bytes.
        length: in bytes.
        late: it came after the attempt had been given up.
        pruned_at: when the file was removed by policy; None while it is there.
    """

    artifact: str
    line: int
    offset: int
    length: int
    late: bool
    pruned_at: str | None


@dataclass(frozen=True)
class ReplayNamed:
    """The replay that an answer was asked for in."""

    replay_id: str
    reason: str
    note: str
    actor: str
    expression: str | None


@dataclass(frozen=True)
class Answer:
    """The answer that the values of an entry come from, and everything that it was made with.

    Attributes:
        record_id: the record.
        record_reason: why the record was made.
        source_checksum: of the document's bytes.
        processing_version: its key.
        spec_digest: of the version, as frozen.
        workload: what was extracted.
        schema_version: of the output schema.
        parser: version and settings that the document's text was read with.
        prompt: name of the prompt; None for built-in rules, which need none.
        prompt_digest: SHA-256 of it; None for built-in rules, and where the prompt that is
            installed is not proven to be the one that was used.
        attempt: number of the attempt at the record, from 1.
        recovery_path: `first`, `repeat`, or what was done differently.
        custom_id: what the request was called at the provider.
        request_digest: SHA-256 of its body.
        manifest_id: the frozen list that it was part of.
        manifest_digest: of that list.
        batch_id: the batch.
        provider: who answered.
        mode: batch, online or embedded.
        model: as it was asked for.
        model_revision: as the provider told it; None where it told none.
        provider_job_id: the provider's name of the job.
        submitted_at: when, UTC.
        values_digest: SHA-256 of the values that were judged.
        raw: the raw result; None for an answer whose line is not known.
        repairs: what was mended in the answer's form: rule, rule_version, before_digest,
            after_digest.
        replay: the replay that asked for it; None where nobody did.
    """

    record_id: str
    record_reason: str
    source_checksum: str
    processing_version: str
    spec_digest: str
    workload: str
    schema_version: int
    parser: str
    prompt: str | None
    prompt_digest: str | None
    attempt: int
    recovery_path: str
    custom_id: str
    request_digest: str
    manifest_id: str
    manifest_digest: str
    batch_id: str
    provider: str
    mode: str
    model: str
    model_revision: str | None
    provider_job_id: str | None
    submitted_at: str | None
    values_digest: str
    raw: RawResult | None
    repairs: tuple[Mapping[str, Any], ...]
    replay: ReplayNamed | None


@dataclass(frozen=True)
class Publication:
    """The archive entry, and the change that showed it.

    Attributes:
        archive_version: grows with each publication of the document.
        content_digest: SHA-256 of the values.
        shown_from: UTC.
        shown_until: UTC; None while it is the visible one.
        kind: of the change: publish, correction, promote, rollback, …; None before release 0.4.
        reason: why.
        actor: who.
        changed_at: when the change was made, UTC.
    """

    archive_version: int
    content_digest: str
    shown_from: str
    shown_until: str | None
    kind: str | None
    reason: str | None
    actor: str | None
    changed_at: str | None


@dataclass(frozen=True)
class Erased:
    """The tombstone of a document whose content was purged."""

    at: str
    reason: str
    actor: str


@dataclass(frozen=True)
class FieldProvenance:
    """One published value with everything that it comes from.

    Attributes:
        field: name of the field.
        label: what people call it.
        item: place in a list, from 0; None for a field that is no list, or a list without values.
        value: as published; None where it is absent.
        status: found, absent or uncertain.
        origin: who gave it.
        evidence: where it was read, in order.
        findings: what the rules found about the field.
        review: the decision of a reviewer that the values rest on; None where there was none.
        answer: the answer; the same for every field of an entry.
        publication: the entry; the same for every field of it.
    """

    field: str
    label: str
    item: int | None
    value: str | None
    status: str
    origin: Origin
    evidence: tuple[Evidence, ...]
    findings: tuple[FieldFinding, ...]
    review: Reviewed | None
    answer: Answer
    publication: Publication


@dataclass(frozen=True)
class DocumentProvenance:
    """Where what a document shows, or showed, comes from.

    Attributes:
        document_id: the document.
        answer: where the values come from.
        publication: the entry.
        fields: the values; none of a document that was erased.
        erased: the tombstone; None where it was not erased.
    """

    document_id: str
    answer: Answer
    publication: Publication
    fields: tuple[FieldProvenance, ...]
    erased: Erased | None

    def as_json(self) -> dict[str, Any]:
        """Plain values; what all fields share stands once."""
        fields = [asdict(field) for field in self.fields]
        for field in fields:
            del field["answer"], field["publication"]
        return {
            "document_id": self.document_id,
            "erased": None if self.erased is None else asdict(self.erased),
            "answer": asdict(self.answer),
            "publication": asdict(self.publication),
            "fields": fields,
        }
