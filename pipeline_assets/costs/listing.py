"""Charges one by one: an attempt a line, or a record a line; together they are the whole.

Belongs here: walking over them with memory bounded by shard. Does not belong here: printing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from itertools import groupby
from operator import itemgetter
from typing import Any

import polars as pl
from sqlalchemy import Connection

from pipeline_assets.costs.canaries import canary_charges
from pipeline_assets.costs.charges import (
    NOTHING,
    SHARD_ATTEMPTS,
    ChargedJob,
    jobs_of_version,
    listed,
    shards,
)
from pipeline_assets.costs.rates import JobRates, rates_of_jobs
from pipeline_assets.costs.repeats import repeats_of
from pipeline_assets.costs.totals import Sum, charge_of, charges_of_version
from pipeline_assets.known_version import known_version
from resources.context import Context

SHARD_RECORDS = SHARD_ATTEMPTS // 4


@dataclass(frozen=True)
class AttemptCost:
    """What one attempt was charged; a canary has no batch, no record and no attempt.

    Attributes:
        batch: the batch's name, or the canary's number as `canary N`.
        record: the record's id; None for a canary.
        attempt: the attempt's number; None for a canary.
        path: what the attempt did differently.
        failure_class: of its disposition; empty for a success, or before there is one.
        answers: lines that were paid, or may have been.
        input: tokens read, cached ones included.
        cached: of them, read from a cache.
        output: tokens written.
        usd: the known amount, in US dollars.
        unknown: why a part of the amount is not known; empty where all of it is.
        basis: where the price comes from.
    """

    batch: str
    record: str | None
    attempt: int | None
    path: str
    failure_class: str
    answers: int
    input: int
    cached: int
    output: int
    usd: Decimal
    unknown: tuple[str, ...]
    basis: str

    def as_json(self) -> dict[str, Any]:
        """The same as plain JSON values; the amount is text."""
        return vars(self) | {"usd": format(self.usd, "f"), "unknown": list(self.unknown)}


@dataclass(frozen=True)
class RecordCost:
    """What one record was charged over all its attempts under the version."""

    record: str
    attempts: int
    input: int
    cached: int
    output: int
    usd: Decimal
    unknown: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """The same as plain JSON values; the amount is text."""
        return vars(self) | {"usd": format(self.usd, "f"), "unknown": list(self.unknown)}


def attempt_costs(context: Context, key: str) -> Iterator[AttemptCost]:
    """Every attempt of a version and every canary, by batch and attempt, from one moment.

    The known amounts add up to `CostAccount.provider_usd`.

    Raises:
        VersionNeverUsed: the ledger does not have the version.
    """
    version_no = known_version(context, key).version_no
    with context.ledger.read() as connection:
        jobs = jobs_of_version(connection, version_no)
        rates = rates_of_jobs(connection, "batch", jobs, context.clock)
        repeats = repeats_of(connection, context, version_no)
        for part, _ in shards(jobs, dict.fromkeys(rates, ())):
            found = listed(connection, context.ledger, version_no, part[0].no, part[-1].no, repeats)
            for _, rows in groupby(found.iter_rows(named=True), key=itemgetter("attempt_no")):
                yield _attempt(list(rows), rates)
        yield from _canaries(connection, context, version_no)


def record_costs(context: Context, key: str) -> Iterator[RecordCost]:
    """Every record of a version that has an attempt, by number, from one moment.

    Raises:
        VersionNeverUsed: the ledger does not have the version.
    """
    version_no = known_version(context, key).version_no
    with context.ledger.read() as connection:
        jobs = jobs_of_version(connection, version_no)
        rates = rates_of_jobs(connection, "batch", jobs, context.clock)
        repeats = repeats_of(connection, context, version_no)
        first, last = _records(connection, context, version_no)
        for start in range(first, last + 1, SHARD_RECORDS):
            end = min(last, start + SHARD_RECORDS - 1)
            found = listed(
                connection, context.ledger, version_no, start, end, repeats, by_record=True
            )
            for _, rows in groupby(found.iter_rows(named=True), key=itemgetter("record_no")):
                yield _record(list(rows), rates)


def batch_costs(context: Context, key: str) -> Iterator[tuple[ChargedJob, JobRates, Sum]]:
    """Every batch of a version with its sum, oldest first.

    Raises:
        VersionNeverUsed: the ledger does not have the version.
    """
    version_no = known_version(context, key).version_no
    with context.ledger.read() as connection:
        jobs = jobs_of_version(connection, version_no)
        rates = rates_of_jobs(connection, "batch", jobs, context.clock)
        sums = {job.no: Sum() for job in jobs}
        for row, charge in charges_of_version(connection, context, version_no, jobs, rates):
            sums[row["batch_no"]].add(charge)
    for job in jobs:
        yield job, rates[job.no], sums[job.no]


def _attempt(rows: list[dict[str, Any]], rates: dict[int, JobRates]) -> AttemptCost:
    total, head = _sum(rows, rates), rows[0]
    return AttemptCost(
        head["batch_id"],
        head["record_id"],
        head["attempt_no"],
        head["path"],
        head["class"],
        sum(row["kind"] != NOTHING for row in rows),
        total.input,
        total.cached,
        total.output,
        total.usd,
        tuple(sorted(total.unknown)),
        rates[head["batch_no"]].price.basis,
    )


def _record(rows: list[dict[str, Any]], rates: dict[int, JobRates]) -> RecordCost:
    total = _sum(rows, rates)
    return RecordCost(
        rows[0]["record_id"],
        len({row["attempt_no"] for row in rows}),
        total.input,
        total.cached,
        total.output,
        total.usd,
        tuple(sorted(total.unknown)),
    )


def _sum(rows: Iterable[dict[str, Any]], rates: dict[int, JobRates]) -> Sum:
    total = Sum()
    for row in rows:
        total.add(charge_of(row, rates[row["batch_no"]]))
    return total


def _canaries(connection: Connection, context: Context, version_no: int) -> Iterator[AttemptCost]:
    for one in canary_charges(connection, context, version_no):
        yield AttemptCost(
            f"canary {one.canary_no}",
            None,
            None,
            "canary",
            "",
            one.rows,
            one.input,
            one.cached,
            one.output,
            one.usd or Decimal(0),
            () if one.reason is None else (one.reason,),
            one.rates.price.basis,
        )


def _records(connection: Connection, context: Context, version_no: int) -> tuple[int, int]:
    first, last = context.ledger.dialect.fetch(
        connection,
        "SELECT MIN(record_no), MAX(record_no) FROM records WHERE version_no = ?",
        {"first": pl.Int64, "last": pl.Int64},
        (version_no,),
    ).row(0)
    return (1, 0) if first is None else (first, last)
