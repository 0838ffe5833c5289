"""Which records are traced, decided after the fact: they are known to have failed or been slow.

Belongs here: the choice, over a frame of episodes (`life.py`). Does not belong here: reading them
(`ended.py`).
"""

from __future__ import annotations

import hashlib

import polars as pl

from resources.ledger.frames import PolarsType

ENDED: dict[str, PolarsType] = {
    # The episode: its record, its first and last move.
    "record_no": pl.Int64,
    "first_move": pl.Int64,
    "last_move": pl.Int64,
    # From the first to the last of it, never negative.
    "microseconds": pl.Int64,
    # False for a record that only went from one end to another.
    "worked": pl.Boolean,
    "failing": pl.Boolean,
    # In [0, 1), of the record's id.
    "sample": pl.Float64,
}
SLOWEST_PERCENT = 1


def sample_of(record_id: str) -> float:
    """A number in [0, 1) that is the record's own, the same on every machine."""
    # 53 bits are what a float holds exactly, so that no id comes to 1.
    return (int.from_bytes(hashlib.sha256(record_id.encode()).digest()[:8]) >> 11) / 2**53


def choose(ended: pl.DataFrame, share: float) -> pl.DataFrame:
    """The episodes that are told.

    Every failing one; of those that were worked on, the slowest hundredth by rank, rounded up (of
    two that took as long the one with the smaller record number: records move by sets, so thousands
    may tie); of the rest those whose sample is below the share.

    Args:
        ended: columns as `ENDED`.
        share: of the rest, from 0 to 1.

    Returns:
        record_no, first_move, last_move, why (`failing`, `slow`, `sampled`), by record and move.
    """
    worked = ended.filter(pl.col("worked"))
    slowest = (
        worked.sort(["microseconds", "record_no", "first_move"], descending=[True, False, False])
        .head(-(-worked.height * SLOWEST_PERCENT // 100))
        .select("record_no", "first_move", slow=pl.lit(value=True))
    )
    return (
        ended.join(slowest, on=["record_no", "first_move"], how="left")
        .with_columns(
            pl.when(pl.col("failing"))
            .then(pl.lit("failing"))
            .when(pl.col("slow"))
            .then(pl.lit("slow"))
            .when(pl.col("sample") < share)
            .then(pl.lit("sampled"))
            .alias("why")
        )
        .filter(pl.col("why").is_not_null())
        .select("record_no", "first_move", "last_move", "why")
        .sort("record_no", "first_move")
    )
