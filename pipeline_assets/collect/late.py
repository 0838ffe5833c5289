"""Late results: which of them becomes its record's answer.

Belongs here: the pure decision. Does not belong here: telling that a line is late
(`reconcile.py`) and writing (`settle.py`).

The first valid result wins. A line that comes in for an attempt that was given up counts if
nothing else has answered the record; whatever is not used is recorded, and its cost counts.
"""

from __future__ import annotations

import polars as pl

USABLE = ("submitted", "retry_wait", "dead_letter")
"""States in which a record still wants an answer. A prepared record's next request is frozen and
goes out; it is answered by that."""

LATE_SCHEMA = {
    "result_file_no": pl.Int64,
    "line": pl.Int64,
    "attempt_no": pl.Int64,
    "record_no": pl.Int64,
    "disposition": pl.String,
    "failure_class": pl.String,
    "diagnostics": pl.String,
    "answer": pl.String,
    "model_revision": pl.String,
    "input_tokens": pl.Int64,
    "output_tokens": pl.Int64,
    "cached_tokens": pl.Int64,
}


def choose_late(late: pl.DataFrame, standing: pl.DataFrame, answered: pl.Series) -> pl.DataFrame:
    """Add `used` and the record's `state` to late results.

    Args:
        late: `LATE_SCHEMA`.
        standing: record_no, state, judged_attempt_no (the newest judged attempt, null for none).
        answered: records that a result of their present attempt answers in this very collection.

    A record gets at most one: that of the earliest attempt, then the first by file and line.
    """
    joined = late.join(standing, on="record_no", how="left", maintain_order="left")
    usable = (
        (pl.col("disposition") == "succeeded")
        & pl.col("answer").is_not_null()
        & pl.col("state").is_in(USABLE)
        & ~pl.col("record_no").is_in(answered.implode())
        & (
            pl.col("judged_attempt_no").is_null()
            | (pl.col("judged_attempt_no") < pl.col("attempt_no"))
        )
    ).fill_null(value=False)
    order = pl.struct("attempt_no", "result_file_no", "line")
    return (
        joined.with_columns(usable=usable)
        .with_columns(
            used=pl.col("usable") & (order.rank("ordinal").over("record_no", "usable") == 1)
        )
        .drop("usable", "judged_attempt_no")
    )
