"""What a workload is to the pipeline: its digested files, its rules and its answer format.

Belongs here: the types that every workload fills, and nothing of any one workload.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import polars as pl

from resources.providers.baseline import RequestPage

Severity = Literal["note", "review"]
"""`note` is kept and shown; `review` sends the record to a person."""

FINDING_SCHEMA = {
    "row": pl.Int64,
    "rule": pl.String,
    "rule_version": pl.Int64,
    "severity": pl.String,
    "field": pl.String,
    "note": pl.String,
}
"""What a rule reports: `row` is the record's row in the shard; `note` holds no document text."""


class AnswerInvalid(ValueError):
    """An answer that is JSON but not of the output schema; the message names the place only."""


class AnswerMalformed(ValueError):
    """An answer that is not JSON."""


@dataclass(frozen=True)
class Shard:
    """What the rules of a workload see of a slice of a batch.

    Attributes:
        records: one row a record: row, record_no, reference, language (of the parsed text, null
            where unknown), languages (blank-separated).
        values: the workload's own frame of decoded answers, one row a record.
        items: the members of a list field, one row each.
        evidence: row, field, item, page, quote: one row a quote.
        uncertain: row, field: fields that the answer itself calls uncertain.
        page_texts: reads the pages that quotes name: (row, page) pairs → row, page, text.
    """

    records: pl.DataFrame
    values: pl.DataFrame
    items: pl.DataFrame
    evidence: pl.DataFrame
    uncertain: pl.DataFrame
    page_texts: Callable[[pl.DataFrame], pl.DataFrame]


@dataclass(frozen=True)
class Rule:
    """One acceptance rule; a small module makes it.

    Attributes:
        id: as specs declare it and findings name it.
        version: grows when the rule judges otherwise than before.
        severity: what a finding of it does to a record.
        check: shard → findings with columns row, field, note; a record may have several.
    """

    id: str
    version: int
    severity: Severity
    check: Callable[[Shard], pl.DataFrame]


@dataclass(frozen=True)
class Decoded:
    """A shard's answers as columns.

    Attributes:
        values: the workload's own columns plus `row`.
        items: the members of a list field, in the workload's own columns plus `row` and `item`.
        evidence: row, field, item, page, quote.
        content: row, content: the canonical JSON that is published.
        search: row, title, identifiers, description, language as plain text.
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
        expect_language: ISO 639-1 code of its body.
        expect_title: the title as printed, on one line.
        expect_identifiers: every identifier that it is about.
    """

    name: str
    pages: tuple[str, ...]
    expect_language: str
    expect_title: str
    expect_identifiers: tuple[str, ...]


FIRST_PROMPT = "1"
"""The prompt of the versions that name none."""


@dataclass(frozen=True)
class Workload:
    """One kind of extraction.

    Attributes:
        name: as specs call it.
        schema_version: the version of its output schema.
        prompts: name → the prompt template's bytes, digested by a processing version. `1` is
            always there; a template that is in use never changes.
        output_schema: the output schema's bytes, digested.
        thresholds: the thresholds file's bytes, digested.
        check_answer: the answer in its normal form, which `decode` takes; raises AnswerMalformed
            or AnswerInvalid.
        echoed: answers in the normal form → the reference by which each calls its document; null
            where it has none. Cheap, and for a whole column at once.
        identical_duplicates: what several equal result lines of one attempt mean. `count_once`:
            one result, told several times; `distrust`: a conflict, none is used.
        decode: answers of a shard → columns.
        rules: in the order they run.
        baseline: the built-in rules as a provider's answer, for a given model name.
        redaction: what is done to a text before it leaves the house; None: it is sent as it is.
        canary: the documents that a provider must answer well before the rest is sent.
        largest_canary: (budget in tokens, texts → tokens of each) → a canary document that fills
            the budget almost, markers included.
        wrong_in_canary: (canary document, answer in its normal form) → fields of the answer that
            are not what the document says.
    """

    name: str
    schema_version: int
    prompts: Mapping[str, bytes]
    output_schema: bytes
    thresholds: bytes
    check_answer: Callable[[str], str]
    echoed: Callable[[pl.Expr], pl.Expr]
    identical_duplicates: Literal["count_once", "distrust"]
    decode: Callable[[Sequence[str]], Decoded]
    rules: tuple[Rule, ...]
    baseline: Callable[[str, list[RequestPage]], bytes]
    redaction: Redaction | None
    canary: Callable[[], Sequence[CanaryDocument]]
    largest_canary: Callable[[int, Callable[[Sequence[str]], list[int]]], CanaryDocument]
    wrong_in_canary: Callable[[CanaryDocument, str], list[str]]

    @property
    def prompt(self) -> bytes:
        """The first prompt's bytes."""
        return self.prompts[FIRST_PROMPT]


def run_rules(workload: Workload, shard: Shard) -> pl.DataFrame:
    """The findings (`FINDING_SCHEMA`) of every rule of a workload on a shard, sorted."""
    parts = [pl.DataFrame(schema=FINDING_SCHEMA)]
    for rule in workload.rules:
        found = rule.check(shard)
        parts.append(
            found.select(
                "row",
                rule=pl.lit(rule.id),
                rule_version=pl.lit(rule.version, dtype=pl.Int64),
                severity=pl.lit(rule.severity),
                field="field",
                note="note",
            )
        )
    return pl.concat(parts).sort("row", "rule", "field", "note")
