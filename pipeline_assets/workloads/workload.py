"""What a workload is to the pipeline: its digested files, its rules and its answer format.

Belongs here: the types that every workload fills, and nothing of any one workload.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
class Workload:
    """One kind of extraction.

    Attributes:
        name: as specs call it.
        schema_version: the version of its output schema.
        prompt: the prompt template's bytes, digested by a processing version.
        output_schema: the output schema's bytes, digested.
        thresholds: the thresholds file's bytes, digested.
        check_answer: the answer in its normal form, which `decode` takes; raises AnswerMalformed
            or AnswerInvalid.
        decode: answers of a shard → columns.
        rules: in the order they run.
        baseline: the built-in rules as a provider's answer, for a given model name.
    """

    name: str
    schema_version: int
    prompt: bytes
    output_schema: bytes
    thresholds: bytes
    check_answer: Callable[[str], str]
    decode: Callable[[Sequence[str]], Decoded]
    rules: tuple[Rule, ...]
    baseline: Callable[[str, list[RequestPage]], bytes]
