"""Reconciliation: a pure, set-based full outer join of manifest and observed lines.

Belongs here: the decision alone, over frames. Does not belong here: reading lines (`observe.py`)
and writing outcomes (`collect_batches.py`).

Every attempt of the manifest gets exactly one disposition, a missing one too. Every line gets
its attempt or an anomaly, a strange one too: nothing is dropped.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from pipeline_assets.failures import Verdict, unanswered
from resources.record_ids import split_custom_id

MISSING = unanswered("completed", None, None)


@dataclass(frozen=True)
class Reconciliation:
    """What a batch's lines mean.

    Attributes:
        dispositions: one row an attempt: attempt_no, record_no, disposition, failure_class,
            diagnostics, result_file_no, line, model_revision, input_tokens, output_tokens,
            cached_tokens.
        lines: one row a line: result_file_no, line, attempt_no, line_offset, line_length, anomaly.
        answers: attempt_no, record_no, answer of every success.
        anomalies: kind → count.
    """

    dispositions: pl.DataFrame
    lines: pl.DataFrame
    answers: pl.DataFrame
    anomalies: dict[str, int]


def reconcile(
    expected: pl.DataFrame,
    observed: pl.DataFrame,
    batch_key: str,
    first_attempt_no: int,
    without_line: Verdict = MISSING,
) -> Reconciliation:
    """Match the lines of a batch with its attempts.

    Args:
        expected: attempt_no, record_no of the manifest's share, contiguous attempt numbers.
        observed: lines (`observe.OBSERVED_SCHEMA`).
        batch_key: what the custom ids of this batch start with.
        first_attempt_no: the attempt of index 0.
        without_line: what a missing line means, by how the job ended.

    An attempt with several lines of equal bytes counts once; with different bytes neither is
    trusted (`duplicate_conflict`).
    """
    lines = _assign(expected, observed, batch_key, first_attempt_no)
    chosen = lines.filter(pl.col("anomaly").is_null()).select(
        "attempt_no",
        "disposition",
        "failure_class",
        "diagnostics",
        "result_file_no",
        "line",
        "answer",
        "model_revision",
        "input_tokens",
        "output_tokens",
        "cached_tokens",
    )
    conflicts = lines.filter(pl.col("anomaly") == "duplicate_conflict")["attempt_no"].unique()
    joined = expected.select("attempt_no", "record_no").join(
        chosen, on="attempt_no", how="left", maintain_order="left"
    )
    conflicting = pl.col("attempt_no").is_in(conflicts.implode())
    missing = pl.col("disposition").is_null() & ~conflicting
    decided = joined.with_columns(
        disposition=pl.when(conflicting)
        .then(pl.lit("permanent_failure"))
        .when(missing)
        .then(pl.lit(without_line.disposition))
        .otherwise("disposition"),
        failure_class=pl.when(conflicting)
        .then(pl.lit("duplicate_conflict"))
        .when(missing)
        .then(pl.lit(without_line.failure_class))
        .otherwise("failure_class"),
        diagnostics=pl.when(conflicting)
        .then(pl.lit("several lines with different bytes; neither is trusted"))
        .when(missing)
        .then(pl.lit(without_line.diagnostics))
        .otherwise("diagnostics"),
    )
    answers = decided.filter(pl.col("disposition") == "succeeded").select(
        "attempt_no", "record_no", "answer"
    )
    found = lines.filter(pl.col("anomaly").is_not_null())["anomaly"].value_counts()
    counts: dict[str, int] = dict(found.iter_rows())
    lost = decided.filter(pl.col("line").is_null() & ~conflicting).height
    if lost:
        counts["missing_result"] = lost
    return Reconciliation(
        dispositions=decided.drop("answer"),
        lines=lines.select(
            "result_file_no", "line", "attempt_no", "line_offset", "line_length", "anomaly"
        ),
        answers=answers,
        anomalies=dict(sorted(counts.items())),
    )


def _assign(
    expected: pl.DataFrame, observed: pl.DataFrame, batch_key: str, first_attempt_no: int
) -> pl.DataFrame:
    """Give every line its attempt, or the anomaly that keeps it from having one."""
    name = split_custom_id(pl.col("custom_id"))
    lines = observed.with_columns(
        attempt_no=pl.when(name.struct.field("batch_key") == batch_key).then(
            name.struct.field("index") + first_attempt_no
        )
    )
    known = pl.col("attempt_no").is_in(expected["attempt_no"].implode())
    lines = lines.with_columns(attempt_no=pl.when(known).then("attempt_no"))
    lines = _mark_repeats(lines)
    return lines.with_columns(
        anomaly=pl.when(pl.col("disposition").is_null())
        .then(pl.lit("malformed_line"))
        .when(pl.col("attempt_no").is_null())
        .then(pl.lit("unknown_id"))
        .when(pl.col("bodies") > 1)
        .then(pl.lit("duplicate_conflict"))
        .when(~pl.col("first"))
        .then(pl.lit("duplicate_identical"))
    )


def _mark_repeats(lines: pl.DataFrame) -> pl.DataFrame:
    """Add `bodies`, how many different lines an attempt has, and `first`, is it the first one?

    Windows over every line cost more than the rest of the reconciliation, and nearly always no
    attempt has two lines: only those that do are looked at.
    """
    repeated = lines.filter(pl.col("attempt_no").is_not_null()).filter(
        pl.col("attempt_no").is_duplicated()
    )
    marks = repeated.select(
        "result_file_no",
        "line",
        bodies=pl.col("body").n_unique().over("attempt_no"),
        first=pl.struct("result_file_no", "line").rank("ordinal").over("attempt_no") == 1,
    )
    return lines.join(
        marks, on=["result_file_no", "line"], how="left", maintain_order="left"
    ).with_columns(pl.col("bodies").fill_null(1), pl.col("first").fill_null(value=True))
