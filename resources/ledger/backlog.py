"""Counting what a version has behind it and before it: recent results, and records that wait.

Belongs here: set-based counts that the circuit breaker and the backpressure decide on. Does not
belong here: those decisions (`pipeline_assets/recovery`), and the account of every record
(`pipeline_assets/account`).

A disposition has no time of its own. The move that completed its batch has one, so a span of
results is a span of moves, and batches are walked by it, newest first, until they hold enough:
what is read of `dispositions` are the ranges of a few batches, whatever the size of the ledger.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl
from sqlalchemy import Connection

from resources.ledger.batches import COMPLETE
from resources.ledger.engine import Ledger

NO_MOVE_YET = 2**62
"""Above every move number: a span that goes on."""

# A batch that a person cancelled counts for nothing in the walk, since most of its results are
# not counted either; those that came back before are.
_DONE = """
SELECT b.first_attempt_no AS first_no, b.last_attempt_no AS last_no, m.move_no,
    CASE WHEN b.error_class = ? THEN 1 ELSE 0 END AS stopped,
    CASE WHEN b.error_class = ? THEN 0 ELSE b.reconciled_records END AS records
FROM batches b JOIN moves m ON m.chain = 'batch:' || CAST(b.batch_no AS TEXT)
WHERE b.version_no = ? AND m.machine = 'batch' AND m.from_state = 'reconciling'
    AND m.to_state IN ({complete}) AND m.move_no > ? AND m.move_no <= ?
"""
_WINDOW = """
WITH done AS ({done}),
walked AS (SELECT done.*, SUM(records) OVER (ORDER BY move_no DESC) - records AS newer FROM done)
SELECT disposition, failure_class, COUNT(*) FROM (
    SELECT d.disposition, d.failure_class FROM walked w
    JOIN dispositions d ON d.attempt_no BETWEEN w.first_no AND w.last_no
    WHERE w.newer < ? AND NOT (w.stopped = 1 AND d.disposition = 'cancelled')
        AND (d.failure_class IS NULL OR d.failure_class NOT IN ({left_out}))
    ORDER BY w.move_no DESC, d.attempt_no DESC LIMIT ?
) counted GROUP BY disposition, failure_class
"""
_REACHED = """
WITH done AS ({done})
SELECT MIN(move_no) FROM (
    SELECT move_no, SUM(records) OVER (ORDER BY move_no) AS so_far FROM done
) walked WHERE so_far >= ?
"""
# States first: of a million published records none is looked up. `CROSS JOIN` keeps that order
# on SQLite, and means nothing on PostgreSQL.
_IN_STATES = """
SELECT s.state, COUNT(*) FROM record_state s CROSS JOIN records r
WHERE r.record_no = s.record_no AND r.version_no = ? AND s.state IN ({states}) GROUP BY s.state
"""


@dataclass(frozen=True)
class Span:
    """Which results of a version are counted.

    Attributes:
        version_no: the version.
        after: only batches completed by a later move than this; 0 for all.
        until: and by this move at the latest.
        stopped: error class of batches that a person cancelled, whose cancelled results are not
            counted.
        left_out: failure classes that are not counted.
    """

    version_no: int
    after: int
    until: int
    stopped: str
    left_out: Sequence[str]


def count_results(connection: Connection, ledger: Ledger, span: Span, most: int) -> pl.DataFrame:
    """The last `most` results of a span by disposition and failure class.

    Results of classes that are left out do not count as results, but as room in their batch: a
    window that reaches into several batches may then hold fewer than `most`.

    Returns:
        disposition, failure_class (null for a success), results; in no order.
    """
    sql = _WINDOW.format(done=_done(), left_out=_marks(span.left_out))
    return ledger.dialect.fetch(
        connection,
        sql,
        {"disposition": pl.String, "failure_class": pl.String, "results": pl.Int64},
        (*_done_values(span), most, *span.left_out, most),
    )


def move_that_reached(
    connection: Connection, ledger: Ledger, span: Span, results: int
) -> int | None:
    """The move that completed the batch with which a span first held so many results."""
    found = ledger.dialect.fetch(
        connection,
        _REACHED.format(done=_done()),
        {"move_no": pl.Int64},
        (*_done_values(span), results),
    ).item()
    return None if found is None else int(found)


def count_in_states(
    connection: Connection, ledger: Ledger, version_no: int, states: Sequence[str]
) -> dict[str, int]:
    """How many records of a version are in each of the states; one without any is 0."""
    found = ledger.dialect.fetch(
        connection,
        _IN_STATES.format(states=_marks(states)),
        {"state": pl.String, "records": pl.Int64},
        (version_no, *states),
    )
    return dict.fromkeys(states, 0) | dict(found.iter_rows())


def _done() -> str:
    return _DONE.format(complete=_marks(COMPLETE))


def _done_values(span: Span) -> tuple[object, ...]:
    return (span.stopped, span.stopped, span.version_no, *COMPLETE, span.after, span.until)


def _marks(values: Sequence[str]) -> str:
    return ",".join("?" * len(values))
