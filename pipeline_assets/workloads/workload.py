"""What a workload is to the pipeline: its digested files, its rules and its answer format.

Belongs here: the types that every workload fills, and nothing of any one workload.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import polars as pl

from pipeline_assets.workloads.column_registry import ColumnRule
from resources.catalogue import PRODUCT_SCHEMA
from resources.providers.baseline import RequestPage

Severity = Literal["note", "review", "recover"]
"""`note` is kept and shown; `review` sends the record to a person; `recover` says that the answer
is another document's (class `misrouted`), so that its record is asked again, once."""

Family = Literal[
    "form",
    "evidence",
    "identifiers",
    "language",
    "title",
    "description",
    "values",
    "reference",
    "batch",
]
"""What a rule looks at; numbers are shown by family. `title`, `identifiers`, `description` and
`language` are fields of that role (`PublishedField.search`), `values` any other field."""

FINDING_SCHEMA = {
    "row": pl.Int64,
    "rule": pl.String,
    "rule_version": pl.Int64,
    "severity": pl.String,
    "field": pl.String,
    "note": pl.String,
}
"""What a rule reports: `row` is the record's row in the shard; `note` holds no document text."""


PLACE_SCHEMA = {
    "row": pl.Int64,
    "field": pl.String,
    "item": pl.Int64,
    "quote_no": pl.Int64,
    "page": pl.Int64,
    "quote": pl.String,
    "has_page": pl.Boolean,
    "start": pl.Int64,
    "end": pl.Int64,
}
"""Where each quote stands: one row a quote, in the order of the evidence. `quote_no` counts from 0
within (row, field, item); `start` and `end` are code points of the page's text, null where the
page does not have the quote or (`has_page` false) does not exist."""


class AnswerInvalid(ValueError):
    """An answer that is JSON but not of the output schema; the message names the place only."""


class AnswerMalformed(ValueError):
    """An answer that is not JSON."""


def _no_documents(_rows: pl.Series) -> Iterator[pl.DataFrame]:
    return iter(())


@dataclass(frozen=True)
class Shard:
    """What the rules of a workload see of a slice of a batch.

    Attributes:
        records: one row a record: row, record_no, reference, document_id, checksum, language (of
            the parsed text, null where unknown), languages (blank-separated), page_count.
        values: the workload's own frame of decoded answers, one row a record.
        items: the members of a list field, one row each.
        evidence: row, field, item, page, quote: one row a quote.
        uncertain: row, field: fields that the answer itself calls uncertain.
        page_texts: reads the pages that quotes name: (row, page) pairs → row, page, text.
        document_texts: reads whole documents, a few at a time: rows → frames of row, page, text
            (every page of a row is in one frame). For what the quoted pages do not show; slow.
        places: where each quote stands (`PLACE_SCHEMA`); empty for rules that do not ask.
        catalogue: the known products: identifier (folded), maker, name; empty where there is none.
    """

    records: pl.DataFrame
    values: pl.DataFrame
    items: pl.DataFrame
    evidence: pl.DataFrame
    uncertain: pl.DataFrame
    page_texts: Callable[[pl.DataFrame], pl.DataFrame]
    document_texts: Callable[[pl.Series], Iterator[pl.DataFrame]] = _no_documents
    places: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=PLACE_SCHEMA))
    catalogue: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=PRODUCT_SCHEMA))


@dataclass(frozen=True)
class Rule:
    """One acceptance rule; a small module makes it.

    Attributes:
        id: as specs declare it and findings name it.
        version: grows when the rule judges otherwise than before.
        severity: what a finding of it does to a record, unless the finding says otherwise.
        check: shard → findings with columns row, field, note and, where they differ, severity; a
            record may have several.
        family: what it looks at.
    """

    id: str
    version: int
    severity: Severity
    check: Callable[[Shard], pl.DataFrame]
    family: Family = "form"


@dataclass(frozen=True)
class BatchView:
    """What the rules of a batch see of it, once every answer was judged by itself.

    Attributes:
        answers: one row an answer, in the order of the batch: row (from 0), document_id,
            checksum, language (of the parsed text), title, identifiers (blank-separated),
            description (the values of the fields of these roles; null where absent, and where the
            workload has no such field), values_digest, quotes (how many it has), astray (how
            many of them do not stand on their page).
        astray: the quotes that do not stand on their page: row, field, item, page, quote.
        page_texts: reads pages of any document of the batch: (row, page) pairs → row, page, text.
        document_texts: reads whole documents, a few at a time: rows → frames of row, page, text.
    """

    answers: pl.DataFrame
    astray: pl.DataFrame
    page_texts: Callable[[pl.DataFrame], pl.DataFrame]
    document_texts: Callable[[pl.Series], Iterator[pl.DataFrame]]


@dataclass(frozen=True)
class BatchFindings:
    """What a rule of a batch found.

    Attributes:
        found: row, field, note and, where they differ, severity.
        pattern: one sentence for an operator, without document text, where the batch as a whole
            went wrong; None where it did not.
    """

    found: pl.DataFrame
    pattern: str | None = None


@dataclass(frozen=True)
class BatchRule:
    """An acceptance rule that needs the whole batch.

    Attributes:
        id: as specs declare it and findings name it.
        version: grows when the rule judges otherwise than before.
        severity: what a finding of it does to a record, unless the finding says otherwise.
        check: batch → findings.
        family: what it looks at.
    """

    id: str
    version: int
    severity: Severity
    check: Callable[[BatchView], BatchFindings]
    family: Family = "batch"


@dataclass(frozen=True)
class Repair:
    """A deterministic repair of an answer's form; never of its facts.

    Attributes:
        id: as specs declare it.
        version: grows when it repairs otherwise than before.
        mend: an answer's text → the repaired text, or None where it has nothing to repair.
    """

    id: str
    version: int
    mend: Callable[[str], str | None]


@dataclass(frozen=True)
class Acceptance:
    """One set of rules with its thresholds; a spec names it.

    Attributes:
        thresholds: the thresholds file's bytes, digested by a processing version.
        rules: in the order they run.
        batch_rules: run when every answer of a batch was judged by itself.
        repairs: in the order they are tried.
        places: are the places of quotes looked for and kept?
        columns: the columns of the decoded values with their limits.
    """

    thresholds: bytes
    rules: tuple[Rule, ...]
    batch_rules: tuple[BatchRule, ...] = ()
    repairs: tuple[Repair, ...] = ()
    places: bool = False
    columns: tuple[ColumnRule, ...] = ()


@dataclass(frozen=True)
class Decoded:
    """A shard's answers as columns.

    Attributes:
        values: the workload's own columns plus `row`.
        items: the members of a list field, in the workload's own columns plus `row` and `item`.
        evidence: row, field, item, page, quote.
        content: row, content: the canonical JSON that is published.
        search: row, and title, identifiers, description, language as plain text, by the role of
            the fields (`PublishedField.search`); roles that no field has may be left out.
        uncertain: row, field: fields that the answer itself calls uncertain.
    """

    values: pl.DataFrame
    items: pl.DataFrame
    evidence: pl.DataFrame
    content: pl.DataFrame
    search: pl.DataFrame
    uncertain: pl.DataFrame


@dataclass(frozen=True)
class Redaction:
    """A step that takes out of a page what must not leave the house.

    Attributes:
        id: as specs declare it.
        version: grows when the step replaces otherwise than before.
        redact: a page's text → the text to send, and how many places were replaced.
    """

    id: str
    version: int
    redact: Callable[[str], tuple[str, int]]


@dataclass(frozen=True)
class CanaryDocument:
    """A document of our own whose right answer is known; no archive's text is in it.

    Attributes:
        name: names it in reports.
        pages: the text of its pages, from page 1 on.
        language: ISO 639-1 code of its body, as the parser would tell it.
        expect: field → its right values; what they are held against is the workload's to say
            (`Workload.wrong_in_canary`), and so is what a field that is not named has to hold.
    """

    name: str
    pages: tuple[str, ...]
    language: str
    expect: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class CorrectedValue:
    """A value that a reviewer gives.

    Attributes:
        value: the value, as it is to be published.
        evidence: (page, quote) pairs that stand on those pages; empty where the reviewer alone
            vouches for it, as for a title that text recognition did not read.
    """

    value: str
    evidence: tuple[tuple[int, str], ...] = ()


class CorrectionRefused(ValueError):
    """A corrected field that could not be published; the message quotes no value."""

    def __init__(self, field: str, why: str) -> None:
        self.field = field
        self.why = why
        super().__init__(f"{field}: {why}")


@dataclass(frozen=True)
class PublishedField:
    """A member of the content that is published: `{value, status, evidence}`, or a list of them.

    Attributes:
        name: the member's name.
        label: what people read, capitalised.
        many: is it a list?
        search: where the search finds its values; None: it is not searched. `title` and
            `identifiers` weigh more than `description`; `language` is shown beside a hit.
    """

    name: str
    label: str
    many: bool = False
    search: Literal["title", "identifiers", "description", "language"] | None = None


@dataclass(frozen=True)
class Kept:
    """Whether a workload keeps one of the rules of admission.

    Attributes:
        holds: does it?
        because: one sentence that says how, or why not.
    """

    holds: bool
    because: str


@dataclass(frozen=True)
class Admission:
    """The three rules that work must keep to be done in batches; a workload declares all of them.

    Attributes:
        result_may_be_late: nobody needs the answer within the request that asks for it.
        stands_alone: every record has a stable identity and ends independently of the others.
        effect_can_be_retried: applying a result again does not double its effect.
    """

    result_may_be_late: Kept
    stands_alone: Kept
    effect_can_be_retried: Kept


FIRST_PROMPT = "1"
"""The prompt of the versions that name none."""
FIRST_ACCEPTANCE = "1"
"""The rules and thresholds of the versions that name none."""


@dataclass(frozen=True)
class Workload:
    """One kind of extraction.

    Attributes:
        name: as specs call it.
        schema_version: the version of its output schema.
        fields: the members of its published content, in the order that people read them.
        admission: how it keeps the three rules of admission.
        prompts: name → the prompt template's bytes, digested by a processing version. `1` is
            always there; a template that is in use never changes.
        output_schema: the output schema's bytes, digested.
        acceptances: name → rules and thresholds. `1` is always there; what is in use never changes.
        check_answer: the answer in its normal form, which `decode` takes; raises AnswerMalformed
            or AnswerInvalid.
        echoed: answers in the normal form → the reference by which each calls its document; null
            where it has none. Cheap, and for a whole column at once.
        identical_duplicates: what several equal result lines of one attempt mean. `count_once`:
            one result, told several times; `distrust`: a conflict, none is used.
        decode: answers of a shard → columns.
        baseline: the built-in rules as a provider's answer, for a given model name.
        redaction: what is done to a text before it leaves the house; None: it is sent as it is.
        canary: the documents that a provider must answer well before the rest is sent.
        largest_canary: (budget in tokens, texts → tokens of each) → a canary document that fills
            the budget almost, markers included.
        wrong_in_canary: (canary document, answer in its normal form) → fields of the answer that
            are not what the document says.
        correct: (content as published, field → the values that a reviewer puts in its place, the
            thresholds' bytes) → the content as it is published instead. No value means absent;
            fields that are not named stay as they are. Raises CorrectionRefused.
    """

    name: str
    schema_version: int
    fields: tuple[PublishedField, ...]
    admission: Admission
    prompts: Mapping[str, bytes]
    output_schema: bytes
    acceptances: Mapping[str, Acceptance]
    check_answer: Callable[[str], str]
    echoed: Callable[[pl.Expr], pl.Expr]
    identical_duplicates: Literal["count_once", "distrust"]
    decode: Callable[[Sequence[str]], Decoded]
    baseline: Callable[[str, list[RequestPage]], bytes]
    redaction: Redaction | None
    canary: Callable[[], Sequence[CanaryDocument]]
    largest_canary: Callable[[int, Callable[[Sequence[str]], list[int]]], CanaryDocument]
    wrong_in_canary: Callable[[CanaryDocument, str], list[str]]
    correct: Callable[[str, Mapping[str, tuple[CorrectedValue, ...]], bytes], str]

    @property
    def prompt(self) -> bytes:
        """The first prompt's bytes."""
        return self.prompts[FIRST_PROMPT]


def run_rules(rules: Sequence[Rule], shard: Shard) -> pl.DataFrame:
    """The findings (`FINDING_SCHEMA`) of rules on a shard, sorted."""
    parts = [named_findings(rule, rule.check(shard)) for rule in rules]
    return _sorted(parts)


def named_findings(rule: Rule | BatchRule, found: pl.DataFrame) -> pl.DataFrame:
    """A rule's own findings as `FINDING_SCHEMA`."""
    own = "severity" in found.columns
    return found.select(
        pl.col("row").cast(pl.Int64),
        rule=pl.lit(rule.id),
        rule_version=pl.lit(rule.version, dtype=pl.Int64),
        severity=pl.col("severity") if own else pl.lit(rule.severity),
        field="field",
        note="note",
    )


def _sorted(parts: Sequence[pl.DataFrame]) -> pl.DataFrame:
    return pl.concat([pl.DataFrame(schema=FINDING_SCHEMA), *parts]).sort(
        "row", "rule", "field", "note"
    )
