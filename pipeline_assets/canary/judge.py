"""Judging a canary's answers: not only their form, but whether they are right.

Belongs here: the pure verdict on result lines, against documents whose answers are known. Does
not belong here: fetching lines and storing the verdict (`run.py`), the rules (`workloads`).

A provider may return valid JSON with values moved one field on, all null, or of another document;
such answers parse. So every valid document has to come back with the values that it was written
for, through the same rules as any record, and the broken request has to come back refused.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import polars as pl

from pipeline_assets.failures import Verdict, classify
from pipeline_assets.workloads.evidence_places import find_places
from pipeline_assets.workloads.workload import (
    Acceptance,
    CanaryDocument,
    Shard,
    Workload,
    run_rules,
)
from resources.providers.port import MalformedLine, ResultReader

BROKEN = "broken request"
REFUSED_CLASSES = frozenset({"invalid_request", "unsupported"})


@dataclass(frozen=True)
class AskedDocument:
    """A document of a canary as it was asked about.

    Attributes:
        custom_id: of its request.
        reference: that the answer must echo.
        document: with what is expected; None for the broken request.
    """

    custom_id: str
    reference: str
    document: CanaryDocument | None

    @property
    def name(self) -> str:
        """How findings call it."""
        return BROKEN if self.document is None else self.document.name


class CanaryFinding(msgspec.Struct, frozen=True):
    """What is wrong with one answer: the document, what was looked at, closed wording."""

    document: str
    check: str
    note: str


def judge_canary(
    workload: Workload,
    acceptance: Acceptance,
    reader: ResultReader,
    asked: Sequence[AskedDocument],
    lines: Sequence[bytes],
) -> list[CanaryFinding]:
    """Every fault of a canary's answers; empty if it passed.

    The rules of a whole batch are left out: a canary is a handful of documents.

    Args:
        workload: its answer format.
        acceptance: the rules, and the repairs of an answer's form.
        reader: reads the provider's result lines.
        asked: every request, the broken one too.
        lines: every line of every result file.
    """
    verdicts, findings = _read(workload, acceptance, reader, asked, lines)
    good: list[tuple[AskedDocument, str]] = []
    for entry in asked:
        verdict = verdicts.get(entry.custom_id)
        if verdict is None:
            findings.append(CanaryFinding(entry.name, "missing", "no line came back for it"))
        elif entry.document is None:
            findings += _judge_broken(verdict)
        elif verdict.answer is None:
            findings.append(
                CanaryFinding(entry.name, str(verdict.failure_class), verdict.diagnostics)
            )
        else:
            good.append((entry, verdict.answer))
    if good:
        findings += _judge_values(workload, good)
        findings += _judge_rules(workload, acceptance, good)
    return sorted(set(findings), key=lambda f: (f.document, f.check, f.note))


def _read(
    workload: Workload,
    acceptance: Acceptance,
    reader: ResultReader,
    asked: Sequence[AskedDocument],
    lines: Sequence[bytes],
) -> tuple[dict[str, Verdict], list[CanaryFinding]]:
    known = {entry.custom_id: entry.name for entry in asked}
    verdicts: dict[str, Verdict] = {}
    marks: dict[str, str] = {}
    findings: list[CanaryFinding] = []
    for line in lines:
        try:
            result = reader.read_line(line)
        except MalformedLine as error:
            findings.append(CanaryFinding("result file", "malformed_line", str(error)))
            continue
        name = result.custom_id
        if name is None or name not in known:
            findings.append(CanaryFinding("result file", "unknown_id", "a line nobody asked for"))
            continue
        mark = hashlib.sha256(line).hexdigest()
        if marks.setdefault(name, mark) != mark:
            findings.append(CanaryFinding(known[name], "duplicate_conflict", "two different lines"))
        # Mended as any answer of the version: it is asked whether such answers will be usable.
        verdicts[name] = classify(result, workload.check_answer, acceptance.repairs)
    return verdicts, findings


def _judge_broken(verdict: Verdict) -> list[CanaryFinding]:
    if verdict.failure_class in REFUSED_CLASSES:
        return []
    found = verdict.failure_class or verdict.disposition
    return [CanaryFinding(BROKEN, "not_refused", f"expected invalid_request, found {found}")]


def _judge_values(
    workload: Workload, good: Sequence[tuple[AskedDocument, str]]
) -> list[CanaryFinding]:
    return [
        CanaryFinding(entry.name, "value", f"{field} is not what the document says")
        for entry, answer in good
        if entry.document is not None
        for field in workload.wrong_in_canary(entry.document, answer)
    ]


def _judge_rules(
    workload: Workload, acceptance: Acceptance, good: Sequence[tuple[AskedDocument, str]]
) -> list[CanaryFinding]:
    decoded = workload.decode([answer for _, answer in good])
    entries = [entry for entry, _ in good]
    documents = [entry.document for entry in entries if entry.document is not None]
    rows = list(range(len(entries)))
    records = pl.DataFrame(
        {
            "row": rows,
            "record_no": rows,
            "reference": [entry.reference for entry in entries],
            "document_id": [f"canary/{document.name}" for document in documents],
            "checksum": [
                hashlib.sha256(document.name.encode()).hexdigest() for document in documents
            ],
            "language": [document.language for document in documents],
            "languages": [""] * len(documents),
            "page_count": [len(document.pages) for document in documents],
        },
        schema={
            "row": pl.Int64,
            "record_no": pl.Int64,
            "reference": pl.String,
            "document_id": pl.String,
            "checksum": pl.String,
            "language": pl.String,
            "languages": pl.String,
            "page_count": pl.Int64,
        },
    )
    pages = pl.DataFrame(
        [
            (row, number, text)
            for row, document in enumerate(documents)
            for number, text in enumerate(document.pages, start=1)
        ],
        schema={"row": pl.Int64, "page": pl.Int64, "text": pl.String},
        orient="row",
    )
    quoted = pages.join(
        decoded.evidence.select("row", "page").unique(), on=["row", "page"], how="semi"
    )
    shard = Shard(
        records=records,
        values=decoded.values,
        items=decoded.items,
        evidence=decoded.evidence,
        uncertain=decoded.uncertain,
        page_texts=lambda wanted: pages.join(wanted, on=["row", "page"], how="semi"),
        document_texts=lambda wanted: iter([pages.filter(pl.col("row").is_in(wanted.implode()))]),
        places=find_places(decoded.evidence, quoted),
    )
    found = run_rules(acceptance.rules, shard).filter(pl.col("severity") != "note")
    return [
        CanaryFinding(entries[row].name, f"rule {rule}", field)
        for row, rule, field in found.select("row", "rule", "field").iter_rows()
    ]
