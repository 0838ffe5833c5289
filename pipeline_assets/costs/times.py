"""How long accepted items took, and what that time went to, from the journal.

Belongs here: each record's way from its first move to its first acceptance, divided into parts
that add up to the whole. Does not belong here: ages of what is still open (`account`), money.

Records move by sets, so many share one way: ways are counted, and time is worked out once a way.
The parts are: `queue`, from the frozen request until its provider is seen to run it (or, for one
that answers before anybody looks, until its results are there); `provider`, from there until the
results are there; `local`, everything of ours; `review`, waiting for a person, a reviewer or the
owner of a dead letter; `retry`, waiting for the time of another attempt.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from itertools import pairwise
from typing import Any, Literal, NamedTuple, get_args

import polars as pl
from sqlalchemy import Connection

from pipeline_assets.distribution import Distribution, distribution
from resources.clock import from_text
from resources.ledger.engine import Ledger
from resources.ledger.moves import batch_chain
from resources.ledger.numbers import is_one_of, parts_of

Part = Literal["queue", "provider", "local", "review", "retry"]
PARTS: tuple[Part, ...] = get_args(Part)
SHARD_RECORDS = 25_000
"""Records whose moves are in memory at once."""

_OF_STATE: Mapping[str, Part] = {
    "prepared": "queue",
    "retry_wait": "retry",
    "awaiting_review": "review",
    "dead_letter": "review",
}
"""State → what the time in it goes to; `submitted` is divided further, all others are ours."""
_BATCH_MOVES = (
    "SELECT v.subject_no, v.to_state, v.moved_at FROM moves v "
    "JOIN batches b ON b.batch_no = v.subject_no WHERE v.machine = 'batch' AND b.version_no = ? "
    "AND v.to_state IN ('running', 'results_available', 'reconciling') ORDER BY v.move_no"
)
_WAYS = (
    "SELECT w.way, COUNT(*) FROM (SELECT m.record_no, {together} AS way FROM move_members m "
    "JOIN records r ON r.record_no = m.record_no WHERE m.record_no BETWEEN ? AND ? "
    "AND r.version_no = ? GROUP BY m.record_no) w GROUP BY w.way"
)


class Move(NamedTuple):
    """A move of records as a way needs it."""

    chain: str
    to_state: str
    at: datetime


@dataclass(frozen=True)
class TimeAccount:
    """How long accepted items took.

    Attributes:
        records: items that were accepted at least once and are not rejected now.
        whole: from their first move to their first acceptance.
        parts: what that went to; the totals of all parts together are the total of `whole`.
    """

    records: int
    whole: Distribution
    parts: dict[Part, Distribution]

    def as_json(self) -> dict[str, Any]:
        """The same as plain JSON values; seconds."""
        return {
            "records": self.records,
            "whole": asdict(self.whole),
            "parts": {name: asdict(part) for name, part in self.parts.items()},
        }


def times_of_version(connection: Connection, ledger: Ledger, version_no: int) -> TimeAccount:
    """How long the accepted items of a version took, inside a transaction."""
    moves = _Moves(connection, ledger)
    seen = _seen(connection, ledger, version_no)
    took: Counter[tuple[float, ...]] = Counter()
    for ways in _ways(connection, ledger, version_no):
        moves.read(ways)
        for way, records in ways.items():
            parts = parts_of_way(moves.of(way), seen)
            if parts is not None:
                took[tuple(parts[name] for name in PARTS)] += records
    rows = list(took)
    weights = pl.Series([took[row] for row in rows], dtype=pl.Int64)
    return TimeAccount(
        records=sum(took.values()),
        whole=_summed([sum(row) for row in rows], weights),
        parts={name: _summed([row[at] for row in rows], weights) for at, name in enumerate(PARTS)},
    )


def parts_of_way(
    way: Sequence[Move], seen: Mapping[str, Sequence[tuple[str, datetime]]]
) -> dict[Part, float] | None:
    """What the time of one record's way went to, in seconds.

    Args:
        way: its moves, in order, the first one into `queued`.
        seen: chain of a batch → (state, when) of its job, in order.

    Returns:
        None for a record that was never accepted, or whose acceptance a reviewer took back.
    """
    if not way or way[-1].to_state == "rejected":
        return None
    parts: dict[Part, float] = dict.fromkeys(PARTS, 0.0)
    for before, after in pairwise(way):
        if before.to_state == "accepted":
            return parts
        if before.to_state == "submitted":
            _add_submitted(parts, before, after, seen.get(before.chain, ()))
        else:
            part = _OF_STATE.get(before.to_state, "local")
            parts[part] += _seconds(before.at, after.at)
    return parts if way[-1].to_state == "accepted" else None


def _add_submitted(
    parts: dict[Part, float], before: Move, after: Move, job: Sequence[tuple[str, datetime]]
) -> None:
    """Divide the time between hand-over and what came of it by what was seen of the job."""
    within = [(state, at) for state, at in job if before.at <= at <= after.at]
    done = next((at for state, at in within if state != "running"), after.at)
    running = next((at for state, at in within if state == "running" and at <= done), done)
    parts["queue"] += _seconds(before.at, running)
    parts["provider"] += _seconds(running, done)
    parts["local"] += _seconds(done, after.at)


class _Moves:
    """Moves of records, each read once."""

    def __init__(self, connection: Connection, ledger: Ledger) -> None:
        self._connection, self._ledger = connection, ledger
        self._known: dict[int, Move] = {}

    def of(self, way: Sequence[int]) -> list[Move]:
        """The moves of a way, in order; none where the journal lacks one of them.

        Only a damaged ledger has such a way. The audit names it, and what it took is not known.
        """
        found = [self._known.get(number) for number in way]
        return [] if None in found else [move for move in found if move is not None]

    def read(self, ways: Iterable[Sequence[int]]) -> None:
        """Read the moves of some ways that are not known yet."""
        wanted = {number for way in ways for number in way} - self._known.keys()
        for part in parts_of(pl.Series(list(wanted), dtype=pl.Int64)):
            found = self._ledger.dialect.fetch(
                self._connection,
                "SELECT move_no, chain, to_state, moved_at FROM moves "  # noqa: S608
                f"WHERE {is_one_of('move_no', part)}",
                {
                    "move_no": pl.Int64,
                    "chain": pl.String,
                    "to_state": pl.String,
                    "moved_at": pl.String,
                },
            )
            for number, chain, state, at in found.iter_rows():
                self._known[number] = Move(chain, state, from_text(at))


def _seen(
    connection: Connection, ledger: Ledger, version_no: int
) -> dict[str, list[tuple[str, datetime]]]:
    found = ledger.dialect.fetch(
        connection,
        _BATCH_MOVES,
        {"batch_no": pl.Int64, "state": pl.String, "at": pl.String},
        (version_no,),
    )
    seen: dict[str, list[tuple[str, datetime]]] = {}
    for batch_no, state, at in found.iter_rows():
        seen.setdefault(batch_chain(batch_no), []).append((state, from_text(at)))
    return seen


def _ways(
    connection: Connection, ledger: Ledger, version_no: int
) -> Iterator[Counter[tuple[int, ...]]]:
    """Ways of records, as the numbers of their moves, and how many records went each."""
    bounds = ledger.dialect.fetch(
        connection,
        "SELECT MIN(record_no), MAX(record_no) FROM records WHERE version_no = ?",
        {"first": pl.Int64, "last": pl.Int64},
        (version_no,),
    )
    first, last = bounds.row(0)
    if first is None:
        return
    for start in range(first, last + 1, SHARD_RECORDS):
        found = ledger.dialect.fetch(
            connection,
            _WAYS.format(together=ledger.dialect.joined("m.move_no")),
            {"way": pl.String, "records": pl.Int64},
            (start, min(start + SHARD_RECORDS - 1, last), version_no),
        )
        counted: Counter[tuple[int, ...]] = Counter()
        for way, records in found.iter_rows():
            counted[tuple(sorted(int(number) for number in way.split()))] += records
        yield counted


def _seconds(start: datetime, end: datetime) -> float:
    return max(0.0, (end - start).total_seconds())


def _summed(seconds: list[float], weights: pl.Series) -> Distribution:
    return distribution(pl.Series(seconds, dtype=pl.Float64), weights)
