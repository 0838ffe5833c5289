"""Invariant 1 read back from the ledger: every attempt of a complete batch has one disposition.

Belongs here: the query. Does not belong here: making dispositions (`collect_batches.py`) and
reporting the check (`checks.py`).
"""

from __future__ import annotations

import polars as pl

from resources.ledger.batches import COMPLETE
from resources.ledger.engine import Ledger

UNBALANCED_SCHEMA = {
    "batch_id": pl.String,
    "state": pl.String,
    "expected": pl.Int64,
    "attempts": pl.Int64,
    "dispositions": pl.Int64,
    "matched": pl.Int64,
}


def unbalanced_batches(ledger: Ledger, version_no: int) -> pl.DataFrame:
    """Batches of a version that are complete without adding up, and incidents.

    Returns:
        `UNBALANCED_SCHEMA`; `matched` counts attempts that have a disposition.
    """
    # The key of `dispositions` allows one an attempt, so counts decide: none is missing where
    # all attempts match, none is too many where there are no more dispositions than attempts.
    complete = ", ".join("?" for _ in COMPLETE)
    with ledger.read() as connection:
        found = ledger.dialect.fetch(
            connection,
            "SELECT b.batch_id, b.state, b.expected_records, "  # noqa: S608 - our own marks
            "(SELECT COUNT(*) FROM attempts a WHERE a.batch_no = b.batch_no "
            "AND a.attempt_no BETWEEN b.first_attempt_no AND b.last_attempt_no), "
            "(SELECT COUNT(*) FROM dispositions d "
            "WHERE d.attempt_no BETWEEN b.first_attempt_no AND b.last_attempt_no), "
            "(SELECT COUNT(*) FROM attempts a JOIN dispositions d ON d.attempt_no = a.attempt_no "
            "WHERE a.batch_no = b.batch_no "
            "AND a.attempt_no BETWEEN b.first_attempt_no AND b.last_attempt_no) "
            f"FROM batches b WHERE b.version_no = ? AND b.state IN (?, {complete}) "
            "ORDER BY b.batch_no",
            UNBALANCED_SCHEMA,
            (version_no, "incident", *COMPLETE),
        )
    balanced = (
        (pl.col("state") != "incident")
        & (pl.col("attempts") == pl.col("expected"))
        & (pl.col("dispositions") == pl.col("expected"))
        & (pl.col("matched") == pl.col("expected"))
    )
    return found.filter(~balanced)
