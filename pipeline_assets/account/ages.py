"""How old what is open is: records since their last move, batches, reviews.

Belongs here: the set-based reads behind it, and their sums as distributions. Does not belong
here: who is waited for (`waits.py`) and how a distribution is made (`distribution.py`).

A record has no time of its own; its newest move has one, and a move has many records. So records
are counted by their newest move in the database, a range of record numbers at a time: what comes
back has a row a move, whatever the number of records.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import polars as pl
from sqlalchemy import Connection

from pipeline_assets.distribution import Distribution, distribution
from resources.ledger.batches import COMPLETE
from resources.ledger.engine import Ledger

RECORDS_AT_ONCE = 250_000
"""Record numbers that one statement sorts by their newest move."""
OUT_STATES = ("submitting", "quarantined", "submitted", "running")
"""States in which the provider has a batch, or may have it."""
ENDED_STATES = (*COMPLETE, "cancelled")

MOVED_SCHEMA = {"state": pl.String, "moved_at": pl.String, "records": pl.Int64}
BATCH_SCHEMA = {
    "batch_id": pl.String,
    "state": pl.String,
    "mode": pl.String,
    "records": pl.Int64,
    "prepared_at": pl.String,
    "submitted_at": pl.String,
    "next_poll_at": pl.String,
    "entered_at": pl.String,
}
REVIEW_SCHEMA = {
    "kind": pl.String,
    "who": pl.String,
    "opened_at": pl.String,
    "reviews": pl.Int64,
}

# `CROSS JOIN` keeps the order on SQLite, states first, and means nothing on PostgreSQL; the newest
# move is one look into the key of `move_members`.
_MOVED = """
SELECT n.state, m.moved_at, n.records FROM (
    SELECT k.state, k.move_no, COUNT(*) AS records FROM (
        SELECT s.state, (SELECT MAX(w.move_no) FROM move_members w
            WHERE w.record_no = s.record_no) AS move_no
        FROM record_state s CROSS JOIN records r
        WHERE r.record_no = s.record_no AND r.version_no = ? AND s.state IN ({states})
            AND s.record_no BETWEEN ? AND ?
    ) k GROUP BY k.state, k.move_no
) n JOIN moves m ON m.move_no = n.move_no
"""
_BATCHES = """
SELECT b.batch_id, b.state, b.mode, b.expected_records, b.prepared_at, b.submitted_at,
    b.next_poll_at, (SELECT MAX(m.moved_at) FROM moves m
        WHERE m.chain = 'batch:' || CAST(b.batch_no AS TEXT) AND m.machine = 'batch')
FROM batches b WHERE b.version_no = ? AND b.state NOT IN ({ended}) ORDER BY b.batch_no
"""


@dataclass(frozen=True)
class Ages:
    """The ages of what is open under a version, in seconds.

    Attributes:
        open_records: records that the pipeline itself moves on, since their last move; those of
            documents that changed since are among them.
        batches_out: batches that the provider has, since they were submitted.
        batches_open: batches that are neither complete nor cancelled, since they were prepared.
        reviews: open reviews that a finding asked for, since they were opened.
        quality_samples: open reviews of quality samples, since they were drawn.
    """

    open_records: Distribution
    batches_out: Distribution
    batches_open: Distribution
    reviews: Distribution
    quality_samples: Distribution


_NOTHING = distribution(pl.Series([], dtype=pl.Float64))
NO_AGES = Ages(_NOTHING, _NOTHING, _NOTHING, _NOTHING, _NOTHING)


def moved(
    connection: Connection, ledger: Ledger, version_no: int, states: Sequence[str]
) -> pl.DataFrame:
    """Records of a version in these states by state and time of their newest move.

    Returns:
        `MOVED_SCHEMA`, a row a state and move.
    """
    marks = ",".join("?" * len(states))
    parts = [
        ledger.dialect.fetch(
            connection,
            _MOVED.format(states=marks),
            MOVED_SCHEMA,
            (version_no, *states, first, last),
        )
        for first, last in _ranges(connection, ledger, version_no)
    ]
    return (
        pl.concat([pl.DataFrame(schema=MOVED_SCHEMA), *parts])
        .group_by("state", "moved_at")
        .agg(pl.col("records").sum())
    )


def open_batches(connection: Connection, ledger: Ledger, version_no: int) -> pl.DataFrame:
    """The batches of a version that are not over, oldest first (`BATCH_SCHEMA`)."""
    return ledger.dialect.fetch(
        connection,
        _BATCHES.format(ended=",".join("?" * len(ENDED_STATES))),
        BATCH_SCHEMA,
        (version_no, *ENDED_STATES),
    )


def open_reviews(connection: Connection, ledger: Ledger, version_no: int) -> pl.DataFrame:
    """The undecided reviews of a version by kind, person and time (`REVIEW_SCHEMA`)."""
    return ledger.dialect.fetch(
        connection,
        "SELECT kind, assigned_to, opened_at, COUNT(*) FROM reviews "
        "WHERE version_no = ? AND decision IS NULL GROUP BY kind, assigned_to, opened_at",
        REVIEW_SCHEMA,
        (version_no,),
    )


def ages_of(
    now: datetime, open_moves: pl.DataFrame, batches: pl.DataFrame, reviews: pl.DataFrame
) -> Ages:
    """Sum up what was read.

    Args:
        now: the time that ages count to.
        open_moves: `MOVED_SCHEMA` of the open records alone.
        batches: `BATCH_SCHEMA`.
        reviews: `REVIEW_SCHEMA`.
    """
    sent = batches.filter(pl.col("state").is_in(OUT_STATES) & pl.col("submitted_at").is_not_null())
    findings = reviews.filter(pl.col("kind") == "findings")
    sampled = reviews.filter(pl.col("kind") == "quality_sample")
    return Ages(
        open_records=distribution(
            seconds_since(open_moves["moved_at"], now), open_moves["records"]
        ),
        batches_out=distribution(seconds_since(sent["submitted_at"], now)),
        batches_open=distribution(seconds_since(batches["prepared_at"], now)),
        reviews=distribution(seconds_since(findings["opened_at"], now), findings["reviews"]),
        quality_samples=distribution(seconds_since(sampled["opened_at"], now), sampled["reviews"]),
    )


def seconds_since(moments: pl.Series, now: datetime) -> pl.Series:
    """Seconds from stored times (UTC text) to a time; null stays null."""
    then = moments.str.to_datetime("%Y-%m-%dT%H:%M:%S%.6fZ", time_unit="us")
    passed = pl.Series([now.astimezone(UTC).replace(tzinfo=None)], dtype=pl.Datetime("us"))
    return (passed.new_from_index(0, then.len()) - then).dt.total_microseconds() / 1_000_000


def _ranges(connection: Connection, ledger: Ledger, version_no: int) -> Iterator[tuple[int, int]]:
    first, last = ledger.dialect.fetch(
        connection,
        "SELECT MIN(record_no), MAX(record_no) FROM records WHERE version_no = ?",
        {"first": pl.Int64, "last": pl.Int64},
        (version_no,),
    ).row(0)
    if first is not None:
        for start in range(first, last + 1, RECORDS_AT_ONCE):
            yield start, min(start + RECORDS_AT_ONCE - 1, last)
