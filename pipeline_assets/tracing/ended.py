"""Reading which records of a version have ended since a move, a shard at a time.

Belongs here: the queries and the episodes as frames. Does not belong here: the choice among them
(`choose.py`), and what each went through (`lives.py`).
"""

from __future__ import annotations

import polars as pl
from sqlalchemy import Connection

from pipeline_assets.tracing.choose import ENDED, sample_of
from pipeline_assets.tracing.life import ENDS, FAILURES
from resources.ledger.dialect import Dialect
from resources.ledger.numbers import is_one_of, parts_of
from resources.ledger.transitions import START

_MOVES = (
    "SELECT move_no, chain, moved_at, from_state, to_state FROM moves "
    "WHERE machine = 'record' AND move_no <= ?"
)
_MOVE_SCHEMA = {
    "move_no": pl.Int64,
    "chain": pl.String,
    "moved_at": pl.String,
    "from_state": pl.String,
    "to_state": pl.String,
}
_WITHIN = "r.version_no = ? AND r.record_no BETWEEN ? AND ?"
_MEMBERS = (
    "SELECT n.record_no, n.move_no FROM records r JOIN move_members n "  # noqa: S608
    f"ON n.record_no = r.record_no WHERE {_WITHIN}"
)
_FAILED = (
    "SELECT DISTINCT a.record_no FROM records r JOIN attempts a "  # noqa: S608
    "ON a.record_no = r.record_no JOIN dispositions d ON d.attempt_no = a.attempt_no "
    f"WHERE {_WITHIN} AND d.disposition <> 'succeeded'"
)
_IDS = f"SELECT r.record_no, r.record_id FROM records r WHERE {_WITHIN}"  # noqa: S608
_RANGE = "SELECT MIN(record_no), MAX(record_no) FROM records WHERE version_no = ?"
_BATCHES_RANGE = (
    "SELECT MIN(a.record_no), MAX(a.record_no) FROM batches b JOIN attempts a "
    "ON a.attempt_no BETWEEN b.first_attempt_no AND b.last_attempt_no "
    "WHERE b.version_no = ? AND {only}"
)
_RANGE_SCHEMA = {"first": pl.Int64, "last": pl.Int64}


def ended_since(
    connection: Connection,
    dialect: Dialect,
    version_no: int,
    moves: tuple[int, int],
    shard: int,
    share: float,
) -> pl.DataFrame:
    """The episodes of a version's records whose last move lies in a range.

    Args:
        connection: inside a read transaction.
        dialect: the database's own way to fetch.
        version_no: whose records.
        moves: after the first of them, up to and with the second.
        shard: records that are read at a time.
        share: decides whether samples are needed at all; where not, they are 0.

    Returns:
        Columns as `choose.ENDED`.
    """
    after, up_to = moves
    journal = dialect.fetch(connection, _MOVES, _MOVE_SCHEMA, (up_to,)).with_columns(
        at=pl.col("moved_at").str.strptime(pl.Datetime("us"), "%Y-%m-%dT%H:%M:%S%.fZ").dt.epoch()
    )
    ends = journal.filter((pl.col("move_no") > after) & pl.col("to_state").is_in(list(ENDS)))
    first, last = _range(connection, dialect, version_no, ends["chain"])
    found = [pl.DataFrame(schema=ENDED)]
    for start in range(first, last + 1, shard):
        within = (version_no, start, min(last, start + shard - 1))
        members = dialect.fetch(
            connection, _MEMBERS, {"record_no": pl.Int64, "move_no": pl.Int64}, within
        )
        shown = _episodes(members.join(journal, on="move_no", how="inner")).filter(
            pl.col("last_move") > after
        )
        if not shown.is_empty():
            found.append(_judged(connection, dialect, shown, within, share))
    return pl.concat(found)


def _range(
    connection: Connection, dialect: Dialect, version_no: int, chains: pl.Series
) -> tuple[int, int]:
    """Where the records of these moves are; an empty range for none.

    A move on a batch's chain is of that batch's records, so a run over a few batches reads no more
    than them; a move on the version's chain may be of any.
    """
    if chains.is_empty():
        return 0, -1
    numbers = chains.str.extract(r"^batch:(\d+)$", 1).cast(pl.Int64)
    if numbers.null_count():
        return _whole(dialect.fetch(connection, _RANGE, _RANGE_SCHEMA, (version_no,)))
    ranges = [
        dialect.fetch(
            connection,
            _BATCHES_RANGE.format(only=is_one_of("b.batch_no", part)),
            _RANGE_SCHEMA,
            (version_no,),
        )
        for part in parts_of(numbers)
    ]
    return _whole(
        pl.concat(ranges).select(pl.col("first").min(), pl.col("last").max()),
    )


def _whole(found: pl.DataFrame) -> tuple[int, int]:
    first, last = found.row(0)
    return (0, -1) if first is None or last is None else (int(first), int(last))


def _episodes(steps: pl.DataFrame) -> pl.DataFrame:
    """The ended episodes of a shard; a clock that was set back makes none negative."""
    ends = list(ENDS)
    return (
        steps.sort("record_no", "move_no")
        .with_columns(
            episode=pl.col("from_state").is_in([START, *ends]).cum_sum().over("record_no"),
            # What the provider never answered because somebody stopped it did not go well either.
            bad=pl.col("to_state").is_in(list(FAILURES))
            | ((pl.col("from_state") == "submitted") & (pl.col("to_state") == "cancelled")),
        )
        .group_by("record_no", "episode", maintain_order=True)
        .agg(
            first_move=pl.col("move_no").first(),
            last_move=pl.col("move_no").last(),
            microseconds=pl.col("at").max() - pl.col("at").first(),
            worked=~pl.col("to_state").first().is_in(ends),
            failing=pl.col("bad").any(),
            end=pl.col("to_state").last(),
        )
        .filter(pl.col("end").is_in(ends))
    )


def _judged(
    connection: Connection,
    dialect: Dialect,
    shown: pl.DataFrame,
    within: tuple[int, int, int],
    share: float,
) -> pl.DataFrame:
    failed = dialect.fetch(connection, _FAILED, {"record_no": pl.Int64}, within)["record_no"]
    judged = shown.with_columns(
        failing=pl.col("failing") | pl.col("record_no").is_in(failed.implode()),
        sample=pl.lit(0.0),
    )
    if 0 < share < 1:
        ids = dialect.fetch(
            connection, _IDS, {"record_no": pl.Int64, "record_id": pl.String}, within
        ).join(judged.filter(~pl.col("failing")), on="record_no", how="semi")
        samples = ids.select(
            "record_no",
            sample=pl.Series([sample_of(text) for text in ids["record_id"]], dtype=pl.Float64),
        )
        judged = judged.drop("sample").join(samples, on="record_no", how="left")
        judged = judged.with_columns(pl.col("sample").fill_null(0.0))
    return judged.select(pl.col(name).cast(dtype) for name, dtype in ENDED.items())
