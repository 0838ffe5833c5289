"""Judging a batch's answers: rules, findings, outcome. Pure but for reading page texts.

Belongs here: running an acceptance's rules over slices of a batch and over the batch as a whole,
and deciding each record's outcome. Does not belong here: storing (`judge_batches.py`), reading
texts (`texts.py`), the rules (`workloads`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import polars as pl

from pipeline_assets.accept.texts import Texts
from pipeline_assets.workloads.evidence_places import find_places
from pipeline_assets.workloads.workload import (
    PLACE_SCHEMA,
    Acceptance,
    BatchView,
    Decoded,
    Shard,
    Workload,
    named_findings,
    run_rules,
)
from resources.contracts import PLACES, STAGING
from resources.ledger.archive_content import AS_THEY_ARE, SEARCH_COLUMNS, TOKENS
from resources.ledger.judgements import FINDING_SCHEMA as KEPT_FINDING_SCHEMA
from resources.ledger.search_text import tokens
from resources.record_ids import reference

ACCEPTED, AWAITING_REVIEW, RECOVERY = "accepted", "awaiting_review", "recovery"


@dataclass(frozen=True)
class Judged:
    """A judged batch, or set of late answers.

    Attributes:
        staging: one row a record (`contracts.STAGING`).
        findings: row-less findings: record_no, attempt_no, rule, rule_version, severity, field,
            note.
        places: where the quotes stand (`contracts.PLACES`); empty where that was not asked.
        patterns: what is wrong with the batch as a whole, a sentence each.
    """

    staging: pl.DataFrame
    findings: pl.DataFrame
    places: pl.DataFrame
    patterns: tuple[str, ...] = ()


@dataclass(frozen=True)
class OpenSlice:
    """A slice of a batch, read and decoded, ready to be judged.

    Attributes:
        collected: attempt_no, record_no of its records, in order.
        decoded: their answers as columns.
        pages: row, page, text of every page that a quote names.
        search: row and the tokens that search looks in.
        texts: reads further texts of the slice's documents.
    """

    collected: pl.DataFrame
    decoded: Decoded
    pages: pl.DataFrame
    search: pl.DataFrame
    texts: Texts


@dataclass(frozen=True)
class JudgedSlice:
    """A slice whose answers were judged one by one; the batch's own rules are to come.

    Attributes:
        staged: attempt_no, record_no and the other columns of `contracts.STAGING` but `outcome`.
        findings: `workload.FINDING_SCHEMA`.
        answers: what the rules of the batch see of each answer.
        places: `PLACE_SCHEMA`.
    """

    staged: pl.DataFrame
    findings: pl.DataFrame
    answers: pl.DataFrame
    places: pl.DataFrame


def open_slice(workload: Workload, collected: pl.DataFrame, texts: Texts) -> OpenSlice:
    """Decode a slice's answers and read what its quotes name; judges nothing.

    Args:
        workload: its columns.
        collected: attempt_no, record_no, answer.
        texts: of the same records, by their row in `collected`.
    """
    decoded = workload.decode(collected["answer"].to_list())
    decoded = replace(decoded, search=_every_role(decoded.search))
    search = decoded.search.with_columns(
        *(tokens(pl.col(name)) for name in TOKENS), pl.col(AS_THEY_ARE).fill_null("")
    )
    pages = texts.pages(decoded.evidence.select("row", "page").unique())
    return OpenSlice(collected.drop("answer"), decoded, pages, search, texts)


def judge_slice(
    acceptance: Acceptance, opened: OpenSlice, facts: pl.DataFrame, catalogue: pl.DataFrame
) -> JudgedSlice:
    """Judge each answer of a slice by itself.

    Args:
        acceptance: the rules.
        opened: the slice.
        facts: record_no, record_id, document_id, checksum, language, languages, page_count of
            the same records.
        catalogue: the known products (`catalogue.PRODUCT_SCHEMA`).
    """
    decoded = opened.decoded
    rows = opened.collected.select("attempt_no", "record_no").with_row_index("row")
    rows = rows.with_columns(pl.col("row").cast(pl.Int64)).join(
        facts, on="record_no", how="left", maintain_order="left"
    )
    records = rows.with_columns(
        reference=pl.Series([reference(name) for name in rows["record_id"]], dtype=pl.String),
        languages=pl.col("languages").fill_null(""),
    )
    places = (
        find_places(decoded.evidence, opened.pages)
        if acceptance.places
        else pl.DataFrame(schema=PLACE_SCHEMA)
    )
    shard = Shard(
        records=records,
        values=decoded.values,
        items=decoded.items,
        evidence=decoded.evidence,
        uncertain=decoded.uncertain,
        page_texts=lambda wanted: opened.pages.join(wanted, on=["row", "page"], how="semi"),
        document_texts=opened.texts.documents,
        places=places,
        catalogue=catalogue,
    )
    digests = [hashlib.sha256(text.encode()).hexdigest() for text in decoded.content["content"]]
    staged = (
        rows.select("row", "attempt_no", "record_no")
        .with_columns(values_digest=pl.Series(digests, dtype=pl.String))
        .join(decoded.content, on="row", maintain_order="left")
        .join(opened.search, on="row", maintain_order="left")
    )
    return JudgedSlice(
        staged=staged,
        findings=run_rules(acceptance.rules, shard),
        answers=_answers(records, decoded, places, digests),
        # Of quotes that stand, the words are needed no more.
        places=places.with_columns(quote=pl.when(pl.col("start").is_null()).then("quote")),
    )


def conclude(acceptance: Acceptance, slices: Sequence[JudgedSlice], texts: Texts) -> Judged:
    """Judge the batch as a whole and decide each record's outcome.

    A record with a finding of severity `recover` is asked again, one with `review` waits for a
    person, one with neither is accepted.

    Args:
        acceptance: the rules.
        slices: every slice of the batch, in order.
        texts: of the batch's records, by their row in the batch.
    """
    if not slices:
        return Judged(STAGING.empty(), pl.DataFrame(schema=KEPT_FINDING_SCHEMA), PLACES.empty())
    staged = _numbered(part.staged for part in slices)
    findings = _numbered_like(slices, [part.findings for part in slices])
    places = _numbered_like(slices, [part.places for part in slices])
    found = [findings]
    patterns: list[str] = []
    if acceptance.batch_rules and not staged.is_empty():
        view = BatchView(
            answers=_numbered(part.answers for part in slices),
            astray=places.filter(pl.col("start").is_null()).select(
                "row", "field", "item", "page", "quote"
            ),
            page_texts=texts.pages,
            document_texts=texts.documents,
        )
        for rule in acceptance.batch_rules:
            result = rule.check(view)
            found.append(named_findings(rule, result.found))
            if result.pattern is not None:
                patterns.append(result.pattern)
    findings = pl.concat(found).sort("row", "rule", "field", "note")
    staging = staged.with_columns(outcome=_outcome(findings))
    numbers = staged.select("row", "attempt_no", "record_no")
    return Judged(
        staging=STAGING.conform(staging.drop("row")),
        findings=findings.join(numbers, on="row", maintain_order="left").select(
            list(KEPT_FINDING_SCHEMA)
        ),
        places=PLACES.conform(
            places.drop("quote")
            .join(numbers.select("row", "attempt_no"), on="row", maintain_order="left")
            .drop("row")
        ),
        patterns=tuple(patterns),
    )


def _every_role(search: pl.DataFrame) -> pl.DataFrame:
    """The plain text by role, null for the roles that no field of the workload has."""
    return search.with_columns(
        pl.lit(None, dtype=pl.String).alias(role)
        for role in SEARCH_COLUMNS
        if role not in search.columns
    ).select("row", *SEARCH_COLUMNS)


def _answers(
    records: pl.DataFrame, decoded: Decoded, places: pl.DataFrame, digests: list[str]
) -> pl.DataFrame:
    counted = places.group_by("row").agg(
        quotes=pl.len().cast(pl.Int64), astray=pl.col("start").is_null().sum().cast(pl.Int64)
    )
    return (
        records.select("row", "document_id", "checksum", text_language="language")
        .with_columns(values_digest=pl.Series(digests, dtype=pl.String))
        .join(
            decoded.search.select("row", *TOKENS),
            on="row",
            how="left",
            maintain_order="left",
        )
        .rename({"text_language": "language"})
        .join(counted, on="row", how="left", maintain_order="left")
        .with_columns(pl.col("quotes", "astray").fill_null(0))
    )


def _outcome(findings: pl.DataFrame) -> pl.Expr:
    def rows(severity: str) -> pl.Expr:
        return pl.col("row").is_in(
            findings.filter(pl.col("severity") == severity)["row"].unique().implode()
        )

    return (
        pl.when(rows("recover"))
        .then(pl.lit(RECOVERY))
        .when(rows("review"))
        .then(pl.lit(AWAITING_REVIEW))
        .otherwise(pl.lit(ACCEPTED))
    )


def _numbered(parts: Iterable[pl.DataFrame]) -> pl.DataFrame:
    """Frames with one row a record, their rows numbered through."""
    return (
        pl.concat(list(parts))
        .drop("row")
        .with_row_index("row")
        .with_columns(pl.col("row").cast(pl.Int64))
    )


def _numbered_like(slices: Sequence[JudgedSlice], parts: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Frames that name rows of their slice, naming rows of the batch."""
    first = 0
    shifted = []
    for judged, part in zip(slices, parts, strict=True):
        shifted.append(part.with_columns(pl.col("row") + first))
        first += judged.staged.height
    return pl.concat(shifted)
