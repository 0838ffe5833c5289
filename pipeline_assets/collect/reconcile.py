"""Reconciliation: a pure, set-based full outer join of manifest and observed lines.

Belongs here: the decision alone, over frames. Does not belong here: reading lines (`observe.py`),
writing outcomes (`collect_batches.py`), and what becomes of a late result.

Every attempt of the manifest gets exactly one disposition, a missing one too. Every line gets
its attempt or an anomaly, a strange one too: nothing is dropped. Neither the order of the lines
nor that of the files changes what is decided; of equal lines the one counts that stands first by
file and line.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import polars as pl

from pipeline_assets.failures import Verdict, unanswered
from resources.record_ids import split_custom_id

LineAnomaly = Literal[
    "malformed_line",
    "unknown_id",
    "duplicate_conflict",
    "duplicate_identical",
    "misrouted",
    "late_result",
]
"""What keeps a line from being, as it stands, the result of an attempt of the batch. A line has
at most one: what makes it least usable, in this order."""

MISSING = unanswered("completed", None, None)
MISROUTED = Verdict(
    "retryable_failure", "misrouted", "the answer echoes the reference of another document"
)
DIFFERENT = "several lines with different bytes; neither is trusted"
DISTRUSTED = "several equal lines, and this workload trusts no repeated answer"

_RESULT = (
    "disposition",
    "failure_class",
    "diagnostics",
    "answer",
    "model_revision",
    "input_tokens",
    "output_tokens",
    "cached_tokens",
)

REPAIRED_SCHEMA = {
    "result_file_no": pl.Int64,
    "line": pl.Int64,
    "ordinal": pl.Int64,
    "rule": pl.String,
    "rule_version": pl.Int64,
    "before_digest": pl.String,
    "after_digest": pl.String,
}
"""One row a repair of a line's answer; `ordinal` counts from 0 within the line."""


@dataclass(frozen=True)
class Reconciliation:
    """What a batch's lines mean.

    Attributes:
        dispositions: one row an attempt: attempt_no, record_no, disposition, failure_class,
            diagnostics, result_file_no, line, model_revision, input_tokens, output_tokens,
            cached_tokens. A misrouted line is named and counted too: it is evidence, and paid.
        lines: one row a line, by file and line: result_file_no, line, attempt_no, line_offset,
            line_length, anomaly (`LineAnomaly`; null for a plain result).
        answers: attempt_no, record_no, answer of every success.
        late: results of earlier attempts, by file and line, one an attempt at most:
            result_file_no, line, attempt_no, record_no, disposition, failure_class, diagnostics,
            answer, model_revision, input_tokens, output_tokens, cached_tokens. Conflicting lines
            are not among them, and a misrouted one has no answer.
        anomalies: kind → lines; and `missing_result` → attempts.
        repairs: what was mended in the form of answers (`REPAIRED_SCHEMA`), of any line.
    """

    dispositions: pl.DataFrame
    lines: pl.DataFrame
    answers: pl.DataFrame
    late: pl.DataFrame
    anomalies: dict[str, int]
    repairs: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=REPAIRED_SCHEMA))


def reconcile(
    expected: pl.DataFrame,
    observed: pl.DataFrame,
    batch_key: str,
    first_attempt_no: int,
    without_line: Verdict = MISSING,
    *,
    earlier: pl.DataFrame | None = None,
    count_identical_once: bool = True,
) -> Reconciliation:
    """Match the lines of a batch with its attempts.

    Args:
        expected: attempt_no, record_no of the manifest's share, contiguous attempt numbers; and
            `reference`, what the request called the document. Without that column no answer to
            these attempts is taken for misrouted.
        observed: lines (`observe.OBSERVED_SCHEMA`, of which `repairs` decides nothing).
        batch_key: what the custom ids of this batch start with.
        first_attempt_no: the attempt of index 0.
        without_line: what a missing line means, by how the job ended.
        earlier: custom_id, attempt_no, record_no, reference of attempts in other batches whose
            results may still come in; every custom id once.
        count_identical_once: several lines of equal bytes are one result; else they are a
            conflict like different ones.

    An attempt with several lines of different bytes trusts neither (`duplicate_conflict`). A
    success that echoes the reference of another document of `expected` or `earlier` is none
    (`misrouted`); one that echoes what nobody here is called stays one, and acceptance sends it
    to a person.
    """
    lines = _assign(expected, observed, batch_key, first_attempt_no, earlier)
    lines = _mark_repeats(lines, count_identical_once)
    lines = _mark_misrouted(lines, expected, earlier)
    lines = lines.with_columns(anomaly=_anomaly()).sort("result_file_no", "line")
    decided = _decide(expected, lines, without_line)
    counts: dict[str, int] = dict(lines["anomaly"].drop_nulls().value_counts().iter_rows())
    lost = decided.filter(pl.col("line").is_null() & pl.col("conflict").is_null()).height
    if lost:
        counts["missing_result"] = lost
    return Reconciliation(
        dispositions=decided.drop("answer", "conflict"),
        lines=lines.select(
            "result_file_no", "line", "attempt_no", "line_offset", "line_length", "anomaly"
        ),
        answers=decided.filter(pl.col("disposition") == "succeeded").select(
            "attempt_no", "record_no", "answer"
        ),
        late=lines.filter("late", "counts").select(
            "result_file_no", "line", "attempt_no", "record_no", *_RESULT
        ),
        anomalies=dict(sorted(counts.items())),
    )


def _assign(
    expected: pl.DataFrame,
    observed: pl.DataFrame,
    batch_key: str,
    first_attempt_no: int,
    earlier: pl.DataFrame | None,
) -> pl.DataFrame:
    """Add what a line's id names: attempt_no, record_no, own, late.

    `own` is the reference of that attempt's document; `late` marks attempts of `earlier`. An id
    that names nothing known has null in the first three.
    """
    name = split_custom_id(pl.col("custom_id"))
    own = pl.col("reference") if "reference" in expected.columns else pl.lit(None, pl.String)
    known = expected.select("attempt_no", "record_no", own=own)
    lines = (
        observed.with_columns(
            attempt_no=pl.when(name.struct.field("batch_key") == batch_key).then(
                name.struct.field("index") + first_attempt_no
            )
        )
        .join(known, on="attempt_no", how="left", maintain_order="left")
        .with_columns(
            attempt_no=pl.when(pl.col("record_no").is_not_null()).then("attempt_no"), late=False
        )
    )
    if earlier is None or not lines["record_no"].has_nulls():
        return lines
    unknown = pl.col("record_no").is_null()
    named = lines.filter(unknown).select(observed.columns)
    named = named.join(
        earlier.select("custom_id", "attempt_no", "record_no", own="reference"),
        on="custom_id",
        how="left",
        validate="m:1",
    ).with_columns(late=pl.col("attempt_no").is_not_null())
    return pl.concat([lines.filter(~unknown), named])


def _mark_repeats(lines: pl.DataFrame, count_identical_once: bool) -> pl.DataFrame:
    """Add `counts`, may the line speak for its attempt, and `conflict`, why none of them may.

    Windows over every line cost more than the rest of the reconciliation, and nearly always no
    attempt has two lines: only those that do are looked at.
    """
    repeated = lines.filter(pl.col("attempt_no").is_not_null()).filter(
        pl.col("attempt_no").is_duplicated()
    )
    if repeated.is_empty():
        return lines.with_columns(
            counts=pl.col("attempt_no").is_not_null(), conflict=pl.lit(None, pl.String)
        )
    first = pl.struct("result_file_no", "line").rank("ordinal").over("attempt_no") == 1
    marks = repeated.select(
        "result_file_no",
        "line",
        first=first,
        conflict=pl.when(pl.col("body").n_unique().over("attempt_no") > 1)
        .then(pl.lit(DIFFERENT))
        .when(not count_identical_once)
        .then(pl.lit(DISTRUSTED)),
    )
    usable = pl.col("attempt_no").is_not_null() & pl.col("conflict").is_null()
    return (
        lines.join(marks, on=["result_file_no", "line"], how="left", maintain_order="left")
        .with_columns(counts=usable & pl.col("first").fill_null(value=True))
        .drop("first")
    )


def _mark_misrouted(
    lines: pl.DataFrame, expected: pl.DataFrame, earlier: pl.DataFrame | None
) -> pl.DataFrame:
    """Add `misrouted`, and give those lines the verdict `MISROUTED`."""
    strange = (pl.col("disposition") == "succeeded") & (pl.col("reference") != pl.col("own"))
    lines = lines.with_columns(misrouted=strange.fill_null(value=False))
    if not lines["misrouted"].any():
        return lines
    names = [
        frame["reference"]
        for frame in (expected, earlier)
        if frame is not None and "reference" in frame.columns
    ]
    lines = lines.with_columns(
        misrouted=pl.col("misrouted") & pl.col("reference").is_in(pl.concat(names).implode())
    )
    return lines.with_columns(
        pl.when("misrouted").then(pl.lit(value, pl.String)).otherwise(name).alias(name)
        for name, value in (
            ("disposition", MISROUTED.disposition),
            ("failure_class", MISROUTED.failure_class),
            ("diagnostics", MISROUTED.diagnostics),
            ("answer", MISROUTED.answer),
        )
    )


def _anomaly() -> pl.Expr:
    """A line's anomaly, in the order of `LineAnomaly`."""
    return (
        pl.when(pl.col("disposition").is_null())
        .then(pl.lit("malformed_line"))
        .when(pl.col("attempt_no").is_null())
        .then(pl.lit("unknown_id"))
        .when(pl.col("conflict").is_not_null())
        .then(pl.lit("duplicate_conflict"))
        .when(~pl.col("counts"))
        .then(pl.lit("duplicate_identical"))
        .when("misrouted")
        .then(pl.lit("misrouted"))
        .when("late")
        .then(pl.lit("late_result"))
    )


def _decide(expected: pl.DataFrame, lines: pl.DataFrame, without_line: Verdict) -> pl.DataFrame:
    """One row an attempt, in the order of `expected`; with its answer and `conflict` beside it."""
    chosen = lines.filter("counts").select(
        "attempt_no", *_RESULT[:3], "result_file_no", "line", *_RESULT[3:]
    )
    conflicts = lines.filter(pl.col("conflict").is_not_null()).select("attempt_no", "conflict")
    joined = expected.select("attempt_no", "record_no").join(
        chosen, on="attempt_no", how="left", maintain_order="left"
    )
    joined = joined.join(
        conflicts.unique("attempt_no"), on="attempt_no", how="left", maintain_order="left"
    )
    conflicting = pl.col("conflict").is_not_null()
    missing = pl.col("line").is_null()
    return joined.with_columns(
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
        .then("conflict")
        .when(missing)
        .then(pl.lit(without_line.diagnostics))
        .otherwise("diagnostics"),
    )
