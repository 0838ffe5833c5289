"""Reading the lives of a handful of records from the ledger.

Belongs here: the queries. Nothing that a person or a model wrote is read: no reason, no note, no
title, no finding.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl
from sqlalchemy import Connection

from pipeline_assets.tracing.life import (
    Attempt,
    BatchStep,
    Delivery,
    Life,
    Review,
    Step,
    microseconds,
)
from resources.ledger.dialect import Dialect
from resources.ledger.frames import PolarsType
from resources.ledger.numbers import is_one_of

RECORDS_AT_ONCE = 500
"""Lives that are held at a time: some megabytes."""

_INT, _TEXT = pl.Int64, pl.String
_Rows = list[dict[str, Any]]


def lives_of(connection: Connection, dialect: Dialect, numbers: pl.Series) -> Iterator[Life]:
    """The lives of these records, by number, `RECORDS_AT_ONCE` held at a time."""
    wanted = numbers.unique().sort()
    for start in range(0, wanted.len(), RECORDS_AT_ONCE):
        yield from _Reader(connection, dialect).read(wanted.slice(start, RECORDS_AT_ONCE))


class _Reader:
    """Asks the same tables about a few records at a time."""

    def __init__(self, connection: Connection, dialect: Dialect) -> None:
        self._connection = connection
        self._dialect = dialect

    def read(self, numbers: pl.Series) -> Iterator[Life]:
        """Yield the lives of these records, by number."""
        steps = self._by_record(_steps_query(numbers), _STEP_SCHEMA)
        attempts = self._by_record(_attempts_query(numbers), _ATTEMPT_SCHEMA)
        reviews = self._by_record(_reviews_query(numbers), _REVIEW_SCHEMA)
        deliveries = self._by_record(_deliveries_query(numbers), _DELIVERY_SCHEMA)
        batches = {row["batch_no"] for rows in attempts.values() for row in rows}
        batch_steps = self._batch_steps(sorted(batches))
        for row in self._rows(_records_query(numbers), _RECORD_SCHEMA):
            number = row["record_no"]
            own = tuple(_attempt(one) for one in attempts.get(number, []))
            yield Life(
                record_no=number,
                record_id=row["record_id"],
                version=row["version"],
                steps=tuple(_step(one) for one in steps.get(number, [])),
                attempts=own,
                batch_steps={one.batch_no: batch_steps.get(one.batch_no, ()) for one in own},
                reviews=tuple(_review(one) for one in reviews.get(number, [])),
                deliveries=tuple(_delivery(one) for one in deliveries.get(number, [])),
            )

    def _batch_steps(self, batches: list[int]) -> dict[int, tuple[BatchStep, ...]]:
        if not batches:
            return {}
        # By chain, which has an index; a batch's chain has the moves of its records too.
        chains = ",".join(f"'batch:{number}'" for number in batches)
        rows = self._rows(
            "SELECT subject_no, move_no, moved_at, to_state FROM moves "  # noqa: S608
            f"WHERE chain IN ({chains}) "
            "AND machine = 'batch' ORDER BY move_no",
            {"batch_no": _INT, "move_no": _INT, "moved_at": _TEXT, "to_state": _TEXT},
        )
        found: dict[int, tuple[BatchStep, ...]] = {}
        for row in rows:
            step = BatchStep(row["move_no"], microseconds(row["moved_at"]), row["to_state"])
            found[row["batch_no"]] = (*found.get(row["batch_no"], ()), step)
        return found

    def _by_record(self, sql: str, schema: Mapping[str, PolarsType]) -> dict[int, _Rows]:
        found: dict[int, _Rows] = {}
        for row in self._rows(sql, schema):
            found.setdefault(row["record_no"], []).append(row)
        return found

    def _rows(self, sql: str, schema: Mapping[str, PolarsType]) -> _Rows:
        return self._dialect.fetch(self._connection, sql, schema).to_dicts()


_RECORD_SCHEMA = {"record_no": _INT, "record_id": _TEXT, "version": _TEXT}
_STEP_SCHEMA = {
    "record_no": _INT,
    "move_no": _INT,
    "moved_at": _TEXT,
    "from_state": _TEXT,
    "to_state": _TEXT,
    "chain": _TEXT,
}
_ATTEMPT_SCHEMA = {
    "record_no": _INT,
    "ordinal": _INT,
    "recovery_path": _TEXT,
    "batch_no": _INT,
    "batch_id": _TEXT,
    "provider": _TEXT,
    "mode": _TEXT,
    "model": _TEXT,
    "provider_job_id": _TEXT,
    "disposition": _TEXT,
    "failure_class": _TEXT,
    "model_revision": _TEXT,
    "input_tokens": _INT,
    "output_tokens": _INT,
}
_REVIEW_SCHEMA = {
    "record_no": _INT,
    "kind": _TEXT,
    "decision": _TEXT,
    "opened_at": _TEXT,
    "taken_at": _TEXT,
}
_DELIVERY_SCHEMA = {
    "record_no": _INT,
    "operation": _TEXT,
    "promotion": _INT,
    "disposition": _TEXT,
    "delivered_at": _TEXT,
}


def _records_query(numbers: pl.Series) -> str:
    return (
        "SELECT r.record_no, r.record_id, v.key FROM records r "  # noqa: S608
        "JOIN processing_versions v ON v.version_no = r.version_no "
        f"WHERE {is_one_of('r.record_no', numbers)} ORDER BY r.record_no"
    )


def _steps_query(numbers: pl.Series) -> str:
    return (
        "SELECT n.record_no, n.move_no, m.moved_at, m.from_state, m.to_state, m.chain "  # noqa: S608
        "FROM move_members n JOIN moves m ON m.move_no = n.move_no "
        f"WHERE {is_one_of('n.record_no', numbers)} ORDER BY n.record_no, n.move_no"
    )


def _attempts_query(numbers: pl.Series) -> str:
    return (
        "SELECT a.record_no, a.ordinal, a.recovery_path, a.batch_no, b.batch_id, "  # noqa: S608
        "b.provider, b.mode, b.model, b.provider_job_id, d.disposition, d.failure_class, "
        "d.model_revision, d.input_tokens, d.output_tokens FROM attempts a "
        "JOIN batches b ON b.batch_no = a.batch_no "
        "LEFT JOIN dispositions d ON d.attempt_no = a.attempt_no "
        f"WHERE {is_one_of('a.record_no', numbers)} ORDER BY a.record_no, a.attempt_no"
    )


def _reviews_query(numbers: pl.Series) -> str:
    return (
        "SELECT record_no, kind, decision, opened_at, taken_at FROM reviews "  # noqa: S608
        f"WHERE {is_one_of('record_no', numbers)} ORDER BY record_no, review_no"
    )


def _deliveries_query(numbers: pl.Series) -> str:
    return (
        "SELECT record_no, operation, promotion, disposition, delivered_at "  # noqa: S608
        f"FROM deliveries WHERE {is_one_of('record_no', numbers)} "
        "ORDER BY record_no, delivered_at, entry_no"
    )


def _step(row: Mapping[str, Any]) -> Step:
    chain: str = row["chain"]
    number = chain.removeprefix("batch:")
    return Step(
        move_no=row["move_no"],
        at=microseconds(row["moved_at"]),
        from_state=row["from_state"],
        to_state=row["to_state"],
        batch_no=int(number) if number != chain else None,
    )


def _attempt(row: Mapping[str, Any]) -> Attempt:
    return Attempt(**{name: row[name] for name in _ATTEMPT_SCHEMA if name != "record_no"})


def _review(row: Mapping[str, Any]) -> Review:
    taken = row["taken_at"]
    return Review(
        kind=row["kind"],
        decision=row["decision"],
        opened_at=microseconds(row["opened_at"]),
        taken_at=None if taken is None else microseconds(taken),
    )


def _delivery(row: Mapping[str, Any]) -> Delivery:
    return Delivery(
        operation=row["operation"],
        promotion=row["promotion"],
        disposition=row["disposition"],
        at=microseconds(row["delivered_at"]),
    )
