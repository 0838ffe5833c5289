"""Judging a slice of answers: rules, findings, outcome. Pure but for reading page texts.

Belongs here: running a workload's rules over a slice and deciding each record's outcome. Does
not belong here: storing (`judge_batches.py`), the rules (`workloads`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass

import polars as pl

from pipeline_assets.workloads.workload import Decoded, Shard, Workload, run_rules
from resources.ledger.search_text import tokens
from resources.record_ids import reference


@dataclass(frozen=True)
class Judged:
    """A judged slice.

    Attributes:
        staging: one row a record (`contracts.STAGING`).
        findings: row-less findings: record_no, attempt_no, rule, rule_version, severity, field,
            note.
    """

    staging: pl.DataFrame
    findings: pl.DataFrame


@dataclass(frozen=True)
class OpenSlice:
    """A slice of a batch, read and decoded, ready to be judged.

    Attributes:
        collected: attempt_no, record_no of its records, in order.
        decoded: their answers as columns.
        pages: row, page, text of every page that a quote names.
        search: row and the tokens that search looks in.
    """

    collected: pl.DataFrame
    decoded: Decoded
    pages: pl.DataFrame
    search: pl.DataFrame


def open_slice(
    workload: Workload,
    collected: pl.DataFrame,
    page_texts: Callable[[pl.DataFrame], pl.DataFrame],
) -> OpenSlice:
    """Decode a slice's answers and read what its quotes name; judges nothing.

    Args:
        workload: its columns.
        collected: attempt_no, record_no, answer.
        page_texts: (row, page) pairs → row, page, text.
    """
    decoded = workload.decode(collected["answer"].to_list())
    search = decoded.search.with_columns(
        *(tokens(pl.col(name)) for name in ("title", "identifiers", "description")),
        pl.col("language").fill_null(""),
    )
    pages = page_texts(decoded.evidence.select("row", "page").unique())
    return OpenSlice(collected.drop("answer"), decoded, pages, search)


def judge(
    workload: Workload,
    collected: pl.DataFrame,
    facts: pl.DataFrame,
    page_texts: Callable[[pl.DataFrame], pl.DataFrame],
) -> Judged:
    """Open and judge a slice: see `open_slice` and `judge_slice`."""
    return judge_slice(workload, open_slice(workload, collected, page_texts), facts)


def judge_slice(workload: Workload, opened: OpenSlice, facts: pl.DataFrame) -> Judged:
    """Judge a slice of a batch's answers.

    Args:
        workload: its rules.
        opened: the slice.
        facts: record_no, record_id, language, languages of the same records.

    A record with a finding of severity `review` waits for a person; one without is accepted.
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
    shard = Shard(
        records=records,
        values=decoded.values,
        items=decoded.items,
        evidence=decoded.evidence,
        uncertain=decoded.uncertain,
        page_texts=lambda wanted: opened.pages.join(wanted, on=["row", "page"], how="semi"),
    )
    found = run_rules(workload, shard)
    review = found.filter(pl.col("severity") == "review")["row"].unique()
    digests = [hashlib.sha256(text.encode()).hexdigest() for text in decoded.content["content"]]
    staging = (
        rows.select("row", "attempt_no", "record_no")
        .with_columns(
            outcome=pl.when(pl.col("row").is_in(review.implode()))
            .then(pl.lit("awaiting_review"))
            .otherwise(pl.lit("accepted")),
            values_digest=pl.Series(digests, dtype=pl.String),
        )
        .join(decoded.content, on="row", maintain_order="left")
        .join(opened.search, on="row", maintain_order="left")
    )
    findings = found.join(rows.select("row", "attempt_no", "record_no"), on="row")
    return Judged(staging.drop("row"), findings.drop("row"))
