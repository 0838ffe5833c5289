"""What a job or a version has cost so far, exactly, from tokens that results report.

Belongs here: sums in money over groups of charges. Does not belong here: what is charged
(`charges.py`), rates (`rates.py`), and the account by accepted item (`account.py`).

Nothing that is not known counts as nought: it stands beside the sum, by its reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from sqlalchemy import Connection

from pipeline_assets.costs.canaries import DONE, canaries_of_version, canary_charges
from pipeline_assets.costs.charges import (
    IMPOSSIBLE,
    NOT_SETTLED,
    NOTHING,
    PRICE,
    TOKENS,
    WITHOUT_USAGE,
    ChargedJob,
    calls_without_answer,
    grouped,
    jobs_of_version,
    shards,
)
from pipeline_assets.costs.rates import JobRates, rates_of_jobs
from pipeline_assets.costs.repeats import repeats_of
from resources.context import Context
from resources.ledger.batches import COMPLETE
from resources.ledger.jobs import JobRow

ANSWERED = (TOKENS, WITHOUT_USAGE, IMPOSSIBLE)
"""Kinds of charges of which a line came back that is, or has to be, paid."""


@dataclass(frozen=True)
class JobCost:
    """The cost of a job's results.

    Attributes:
        amount: in US dollars, of the rows whose tokens are known; None where the price is unknown.
        basis: where the price comes from, or `unknown`.
        package: the price list and its version.
        rows: answers that are paid, late ones too.
        rows_without_usage: of them, answers that report no tokens; they are in no amount.
        input_tokens: known ones together.
        output_tokens: known ones together.
        note: what else has to be said of the price.
        frozen: is the price the one that was kept when the results came in?
    """

    amount: Decimal | None
    basis: str
    package: str
    rows: int
    rows_without_usage: int
    input_tokens: int
    output_tokens: int
    note: str
    frozen: bool = True


@dataclass
class Sum:
    """Charges added up.

    Attributes:
        rows: attempts, and answers beside their disposition.
        input: tokens read, cached ones included.
        cached: of them, read from a cache.
        output: tokens written.
        usd: the known amount in US dollars.
        unknown: reason → rows whose amount is not known.
    """

    rows: int = 0
    input: int = 0
    cached: int = 0
    output: int = 0
    usd: Decimal = Decimal(0)
    unknown: Counter[str] = field(default_factory=Counter)

    def add(self, charge: Charge) -> None:
        """Add a group of charges."""
        self.rows += charge.rows
        self.input += charge.input
        self.cached += charge.cached
        self.output += charge.output
        if charge.usd is not None:
            self.usd += charge.usd
        if charge.reason is not None:
            self.unknown[charge.reason] += charge.rows


@dataclass(frozen=True)
class Charge:
    """Charges of one kind with their amount.

    Attributes:
        rows: how many.
        input: tokens read.
        cached: of them, from a cache.
        output: tokens written.
        usd: the amount; None where it is not known.
        reason: why it is not known; None where it is.
    """

    rows: int
    input: int
    cached: int
    output: int
    usd: Decimal | None
    reason: str | None


@dataclass(frozen=True)
class SoFar:
    """What a version has cost, as a budget needs it.

    Attributes:
        usd: the known amount of settled results and judged canaries.
        unpriced: answers whose tokens are known and whose price is not.
        unsized: settled batch → attempts, answers and calls of it whose tokens nobody knows.
        unsized_canaries: the same of canaries.
        settled: batches whose results are in `usd`.
        first_open: no batch before this number is open.
        canaries: canaries that are.
    """

    usd: Decimal
    unpriced: int
    unsized: dict[int, int]
    unsized_canaries: dict[int, int]
    settled: frozenset[int]
    first_open: int
    canaries: frozenset[int]


def charge_of(row: dict[str, Any], rates: JobRates) -> Charge:
    """The charge of a group (`charges.CHARGE_SCHEMA`) or of one listed row."""
    kind, rows = str(row["kind"]), int(row.get("rows", 1))
    if kind == NOTHING:
        return Charge(rows, 0, 0, 0, Decimal(0), None)
    if kind != TOKENS:
        return Charge(rows, 0, 0, 0, None, kind)
    read, written, cached = int(row["input"]), int(row["output"]), int(row["cached"] or 0)
    usd = rates.amount(read, written, cached, int(row.get("longest", read)))
    return Charge(rows, read, cached, written, usd, None if usd is not None else PRICE)


def charges_of_version(
    connection: Connection,
    context: Context,
    version_no: int,
    jobs: Sequence[ChargedJob],
    rates: dict[int, JobRates],
    parser_key: str | None = None,
) -> Iterator[tuple[dict[str, Any], Charge]]:
    """Every group of charges of some batches of a version, with its amount."""
    steps = {job.no: rates[job.no].steps for job in jobs}
    repeats = repeats_of(connection, context, version_no)
    for part, bounds in shards(jobs, steps):
        found = grouped(connection, context.ledger, version_no, part, bounds, repeats, parser_key)
        for row in found.iter_rows(named=True):
            yield row, charge_of(row, rates[row["batch_no"]])


def so_far(connection: Connection, context: Context, version_no: int) -> SoFar:
    """What a version has cost up to now."""
    jobs = [job for job in jobs_of_version(connection, version_no) if job.mode != "embedded"]
    rates = rates_of_jobs(connection, "batch", jobs, context.clock)
    settled = [job for job in jobs if job.state in (*COMPLETE, "cancelled")]
    total = Sum()
    unsized: Counter[int] = Counter()
    for row, charge in charges_of_version(connection, context, version_no, settled, rates):
        total.add(charge)
        if charge.reason not in (None, PRICE, NOT_SETTLED):
            unsized[row["batch_no"]] += charge.rows
    calls = calls_without_answer(connection, context.ledger, version_no)
    for job in settled:
        unsized[job.no] += calls.get(job.no, 0)
    canaries: Counter[int] = Counter()
    for charge in canary_charges(connection, context, version_no):
        total.add(Charge(charge.rows, 0, 0, 0, charge.usd, charge.reason))
        if charge.reason not in (None, PRICE, NOT_SETTLED):
            canaries[charge.canary_no] += charge.rows
    open_ones = {job.no for job in jobs} - {job.no for job in settled}
    return SoFar(
        total.usd,
        total.unknown[PRICE],
        dict(+unsized),
        dict(canaries),
        frozenset(job.no for job in settled),
        min(open_ones, default=jobs[-1].no + 1 if jobs else 0),
        frozenset(
            one.no for one in canaries_of_version(connection, version_no) if one.state in DONE
        ),
    )


def job_cost(context: Context, job: JobRow) -> JobCost | None:
    """What a batch's results cost; None for one that cost nothing or has no results yet."""
    if job.machine != "batch" or job.mode == "embedded":
        return None
    with context.ledger.read() as connection:
        (charged,) = (
            one for one in jobs_of_version(connection, job.version_no) if one.no == job.no
        )
        rates = rates_of_jobs(connection, "batch", [charged], context.clock)
        total, answers, without = Sum(), 0, 0
        for row, charge in charges_of_version(
            connection, context, job.version_no, [charged], rates
        ):
            total.add(charge)
            answers += charge.rows if row["kind"] in ANSWERED else 0
            without += charge.rows if row["kind"] in (WITHOUT_USAGE, IMPOSSIBLE) else 0
    if not answers:
        return None
    price = rates[job.no].price
    return JobCost(
        amount=total.usd if rates[job.no].known else None,
        basis=price.basis,
        package=price.package,
        rows=answers,
        rows_without_usage=without,
        input_tokens=total.input,
        output_tokens=total.output,
        note=price.note,
        frozen=rates[job.no].frozen,
    )
